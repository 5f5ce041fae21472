//! The jobs of a service: they start with it, and end before it does.

use crate::api::{JobContext, JobKinds, RoutedJobs};
use crate::config::Settings;
use crate::finetunes::AdapterShelf;
use crate::scorer::Scorer;
use crate::store::Store;
use tokio_util::sync::CancellationToken;

/// Jobs of every kind.
#[derive(Clone)]
pub struct ServiceJobs {
    pub routed: RoutedJobs,
    closing: CancellationToken,
}

impl ServiceJobs {
    /// Runs the jobs of these kinds that are in the store, and those that are submitted, from now on. The models of the scorer get
    /// the adapters that are in the store.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError) where the adapters cannot be listed.
    pub async fn start(kinds: &JobKinds, scorer: &Scorer, store: &Store, settings: &Settings) -> anyhow::Result<Self> {
        let shelf = AdapterShelf::new(store.clone(), scorer.pool().clone());
        // Before any job is taken: it may name one.
        shelf.look(&Default::default()).await?;
        let closing = CancellationToken::new();
        tokio::spawn(shelf.clone().keep_up(closing.clone()));
        let routed = kinds.start(&JobContext { scorer: scorer.clone(), shelf }, store, &settings.store);
        Ok(Self { routed, closing })
    }

    /// Takes no more jobs, and waits until those that run here have stopped.
    pub async fn shutdown(&self) {
        self.closing.cancel();
        self.routed.shutdown().await;
    }
}
