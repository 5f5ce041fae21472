//! Tells threads and tasks that the state that they share has changed; and leases, whose end is such a change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
    pub fn version(&self) -> u64 {
        *self.lock()
    }

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

#[derive(Debug)]
pub(super) struct LeaseCount {
    leases: AtomicUsize,
    signal: Arc<Signal>,
}

impl LeaseCount {
    pub(super) fn new(signal: Arc<Signal>) -> Self {
        Self { leases: AtomicUsize::new(0), signal }
    }

    /// Returns true if some request has work for the model. Under the pool's lock no first lease can come meanwhile.
    pub(super) fn is_in_use(&self) -> bool {
        self.leases.load(Ordering::Acquire) > 0
    }
}

/// The right to have work run by a model. While a lease is held the model is neither dropped by an unload nor opened anew;
/// it may be evicted, and is then loaded again.
#[derive(Debug)]
pub struct Lease(Arc<LeaseCount>);

impl Lease {
    /// The first lease of a model is only to be taken under the pool's lock.
    pub(super) fn new(usage: &Arc<LeaseCount>) -> Self {
        usage.leases.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(usage))
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0.leases.fetch_sub(1, Ordering::AcqRel) == 1 {
            // An unload may wait for this.
            self.0.signal.raise();
        }
    }
}
