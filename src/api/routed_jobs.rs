//! The jobs that routes submit and show.

use super::problem::Problem;
use crate::jobs::{JobKind, Jobs};
use crate::store::{Principal, Store};
use futures::future::{BoxFuture, FutureExt, join_all};
use std::any::Any;
use std::sync::Arc;

/// The jobs of every kind; cheap to clone.
#[derive(Clone)]
pub struct RoutedJobs {
    running: Arc<[Box<dyn RunningJobs>]>,
    store: Store,
    client: Principal,
}

/// The jobs of one kind, whichever it is.
pub trait RunningJobs: Any + Send + Sync {
    /// Takes no more jobs, and waits until those that run here have stopped.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

impl<K: JobKind> RunningJobs for Jobs<K> {
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Jobs::shutdown(self).boxed()
    }
}

impl RoutedJobs {
    /// The jobs of some kinds, all of them in this store.
    #[must_use]
    pub fn new(running: Vec<Box<dyn RunningJobs>>, store: Store) -> Self {
        Self { running: running.into(), store, client: Principal::default() }
    }

    /// The jobs of a kind as the client sees them.
    ///
    /// # Errors
    /// Where the service does not have the kind.
    pub fn kind<K: JobKind>(&self) -> Result<Jobs<K>, Problem> {
        let jobs = self.running.iter().find_map(|jobs| (&**jobs as &dyn Any).downcast_ref::<Jobs<K>>());
        let jobs = jobs.ok_or_else(|| Problem::internal(format!("there are no jobs of the kind {}", K::NAME)))?;
        Ok(jobs.seen_by(self.client.clone()))
    }

    /// The store that all of them are in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The client that sees them.
    #[must_use]
    pub fn client(&self) -> &Principal {
        &self.client
    }

    /// The same jobs as a client sees them.
    #[must_use]
    pub fn seen_by(&self, client: &Principal) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// Takes no more jobs, and waits until those that run here have stopped.
    pub async fn shutdown(&self) {
        join_all(self.running.iter().map(|jobs| jobs.shutdown())).await;
    }
}
