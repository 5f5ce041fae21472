//! Threads of our own for tokenizing and arithmetic, apart from the async runtime and from the threads that compute.

use super::error::ScorerError;
use crate::engine::Class;
use crate::priority;
use futures::channel::oneshot;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Maximum number of bytes of texts and their neighbours in a request that counts as small.
const SMALL_REQUEST_BYTES: usize = 256 << 10;

/// Origin of work on texts, which decides whom it may hold up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextWork {
    /// A client, for a few texts.
    Small,
    /// A client, for enough texts to take seconds to tokenize.
    Large,
    /// A job or a file.
    Batch,
}

impl TextWork {
    /// Returns the kind of work of a request of this class with `bytes` bytes of text.
    #[must_use]
    pub fn new(class: Class, bytes: usize) -> Self {
        match class {
            Class::Batch => Self::Batch,
            Class::Interactive if bytes > SMALL_REQUEST_BYTES => Self::Large,
            Class::Interactive => Self::Small,
        }
    }
}

#[derive(Clone)]
pub struct Workers {
    pool: Arc<rayon::ThreadPool>,
    /// For the texts of large requests, at a low priority, so that neither those of small ones nor forward passes wait behind them.
    large: Arc<rayon::ThreadPool>,
    /// For the texts of audits and files, so that those of clients do not wait behind them; the operating system shares the
    /// processors out.
    batch: Arc<rayon::ThreadPool>,
    /// For what takes long and nobody waits for: a thread of rayon that is at work on something large takes up nothing
    /// else until it is done, so it must not be one that clients wait for.
    behind: Arc<rayon::ThreadPool>,
}

impl Workers {
    /// Starts the threads of each pool; 0 for as many as the machine has.
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = |name: &'static str, start: fn(usize)| {
            let name = move |index| format!("{name}-{index}");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).start_handler(start);
            pool.build().map(Arc::new)
        };
        let usual = |_| ();
        let low = |_| priority::lower();
        Ok(Self {
            pool: pool("worker", usual)?,
            large: pool("large", low)?,
            batch: pool("batch", usual)?,
            behind: pool("report", usual)?,
        })
    }

    /// Applies `f` to every item, one item a task, and gives the results in order. Stops early once nobody waits.
    pub async fn map<T, R>(
        &self,
        work: TextWork,
        items: Vec<T>,
        f: impl Fn(T) -> R + Send + Sync + 'static,
    ) -> Result<Vec<R>, ScorerError>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        let pool = match work {
            TextWork::Small => &self.pool,
            TextWork::Large => &self.large,
            TextWork::Batch => &self.batch,
        };
        Self::spawn(pool, move |wanted| {
            items.into_par_iter().with_max_len(1).map(|item| wanted().then(|| f(item))).collect()
        })
        .await
    }

    /// Runs `f` on one of the threads.
    pub async fn run<R: Send + 'static>(&self, f: impl FnOnce() -> R + Send + 'static) -> Result<R, ScorerError> {
        Self::spawn(&self.pool, move |wanted| wanted().then(f)).await
    }

    /// Runs what may take long on threads that no client waits for; it may ask whether its result is still wanted.
    pub async fn run_behind<R: Send + 'static>(
        &self,
        f: impl FnOnce(&dyn Fn() -> bool) -> R + Send + 'static,
    ) -> Result<R, ScorerError> {
        Self::spawn(&self.behind, move |wanted| wanted().then(|| f(&|| wanted()))).await
    }

    /// `f` may ask whether its result is still wanted, and returns `None` if it is not.
    async fn spawn<R>(
        pool: &rayon::ThreadPool,
        f: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Option<R> + Send + 'static,
    ) -> Result<R, ScorerError>
    where
        R: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        pool.spawn(move || {
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
