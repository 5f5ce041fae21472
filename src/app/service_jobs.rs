//! The jobs of a service: they start with it, and end before it does.

use crate::api::RoutedJobs;
use crate::audits::{AuditKind, CalibrationKind, TrialJob};
use crate::config::Settings;
use crate::finetunes::{AdapterShelf, FinetuneKind};
use crate::jobs::Jobs;
use crate::memorization::MemorizationKind;
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
    /// Runs the jobs that are in the store, and those that are submitted, from now on. The models of the scorer get the adapters
    /// that are in the store.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError) where the adapters cannot be listed.
    pub async fn start(scorer: &Scorer, store: &Store, settings: &Settings) -> anyhow::Result<Self> {
        let shelf = AdapterShelf::new(store.clone(), scorer.pool().clone());
        // Before any job is taken: it may name one.
        shelf.look(&Default::default()).await?;
        let finetune = FinetuneKind::new(scorer.clone(), shelf.clone());
        let closing = CancellationToken::new();
        tokio::spawn(shelf.keep_up(closing.clone()));
        let routed = RoutedJobs {
            audits: Jobs::start(store.clone(), settings.store.clone(), AuditKind::new(scorer.clone())),
            calibrations: Jobs::start(store.clone(), settings.store.clone(), CalibrationKind::new(scorer.clone())),
            trials: Jobs::start(store.clone(), settings.store.clone(), TrialJob::new(scorer.clone())),
            finetunes: Jobs::start(store.clone(), settings.store.clone(), finetune),
            memorizations: Jobs::start(store.clone(), settings.store.clone(), MemorizationKind::new(scorer.clone())),
        };
        Ok(Self { routed, closing })
    }

    /// Takes no more jobs, and waits until those that run here have stopped.
    pub async fn shutdown(&self) {
        self.closing.cancel();
        self.routed.shutdown().await;
    }
}
