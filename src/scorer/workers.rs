//! Threads of our own for tokenizing and arithmetic, apart from the async runtime and from the threads that compute.

use super::ScorerError;
use futures::channel::oneshot;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A pool of threads; cheap to clone.
#[derive(Clone)]
pub struct Workers {
    pool: Arc<rayon::ThreadPool>,
}

impl Workers {
    /// Starts the threads; 0 for as many as the machine has.
    ///
    /// # Errors
    /// Where the operating system refuses a thread.
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let name = |index| format!("worker-{index}");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()?;
        Ok(Self { pool: Arc::new(pool) })
    }

    /// Applies `f` to every item, one item a task, and gives the results in order. Stops early once nobody waits.
    ///
    /// # Errors
    /// [`ScorerError::Internal`] where `f` panics.
    pub async fn map<T, R>(
        &self,
        items: Vec<T>,
        f: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Result<Vec<R>, ScorerError>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        self.spawn(move |wanted| items.into_par_iter().with_max_len(1).map(|item| wanted().then(|| f(item))).collect())
            .await
    }

    /// Runs `f` on one of the threads.
    ///
    /// # Errors
    /// [`ScorerError::Internal`] where `f` panics.
    pub async fn run<R: Send + 'static>(&self, f: impl FnOnce() -> R + Send + 'static) -> Result<R, ScorerError> {
        self.spawn(move |wanted| wanted().then(f)).await
    }

    /// `f` may ask whether its result is still wanted, and gives none where it is not.
    async fn spawn<R>(
        &self,
        f: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Option<R> + Send + 'static,
    ) -> Result<R, ScorerError>
    where
        R: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.pool.spawn(move || {
            let wanted = || !sender.is_canceled();
            // A panic must not end the process, which is what rayon does with one that leaves a task.
            let result = catch_unwind(AssertUnwindSafe(|| f(&wanted))).unwrap_or_default();
            if let Some(result) = result {
                // Nobody waits any more: nothing to tell.
                let _ = sender.send(result);
            }
        });
        receiver.await.map_err(|_| ScorerError::Internal("a worker thread panicked".into()))
    }
}
