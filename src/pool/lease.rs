//! Leases: a model that is leased is neither unloaded nor opened anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::signal::Signal;

/// Number of leases of a model.
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
