//! How far a job is that this process runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// A job that this process runs.
#[derive(Debug, Default)]
pub struct LocalRun {
    done: AtomicUsize,
    note: Mutex<Option<String>>,
    numerics: Mutex<Option<String>>,
    pub(super) cancel: CancellationToken,
}

impl LocalRun {
    /// Notes how many parts of the work are done.
    pub fn set_done(&self, done: usize) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// How many parts of the work are done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Says something of the run beside how much is done, as JSON, or nothing any more.
    pub fn set_note(&self, note: Option<String>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    /// What the run says of itself.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what the bits of its numbers depend on.
    pub fn set_numerics(&self, numerics: String) {
        *self.numerics.lock().unwrap_or_else(PoisonError::into_inner) = Some(numerics);
    }

    /// What the bits of its numbers depend on, once that is known.
    #[must_use]
    pub fn numerics(&self) -> Option<String> {
        self.numerics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
