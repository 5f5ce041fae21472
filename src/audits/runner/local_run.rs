//! What a process knows of an audit that it runs.

use crate::audits::run::RunEvent;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// An audit that this process runs.
#[derive(Debug, Default)]
pub struct LocalRun {
    done: AtomicUsize,
    numerics: Mutex<Option<String>>,
    /// Asks it to stop.
    pub cancel: CancellationToken,
}

impl LocalRun {
    /// Notes how far it is.
    pub fn note(&self, event: RunEvent) {
        match event {
            RunEvent::Bound { numerics } => {
                *self.numerics.lock().unwrap_or_else(PoisonError::into_inner) = Some(numerics);
            }
            RunEvent::Scored { done } => self.done.store(done, Ordering::Relaxed),
        }
    }

    /// How many samples are done.
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// What the bits of its numbers depend on, once that is known.
    pub fn numerics(&self) -> Option<String> {
        self.numerics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
