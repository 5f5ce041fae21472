//! Tells threads and tasks that the state that they share has changed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// A counter of changes to wait on. Whoever waits reads the version *before* looking at the state, so a change that comes
/// between the look and the wait is never missed.
#[derive(Debug, Default)]
pub struct Signal {
    version: Mutex<u64>,
    threads: Condvar,
    tasks: watch::Sender<()>,
}

impl Signal {
    /// The number of changes so far.
    pub fn version(&self) -> u64 {
        *self.lock()
    }

    /// Announces a change.
    pub fn raise(&self) {
        *self.lock() += 1;
        self.threads.notify_all();
        self.tasks.send_replace(());
    }

    /// Blocks until there has been a change after `version`, or until the moment given.
    pub fn wait_beyond(&self, version: u64, until: Option<Instant>) {
        let mut current = self.lock();
        while *current == version {
            current = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => self.threads.wait(current).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return,
                Some(left) => self.threads.wait_timeout(current, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Waits until `answer` gives a value. It is asked now and after every change.
    pub async fn wait_for<R>(&self, mut answer: impl FnMut() -> Option<R>) -> R {
        let mut changes = self.tasks.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(answer) = answer() {
                return answer;
            }
            // The sender is `self`, which outlives this, so a change always comes.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.version.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
