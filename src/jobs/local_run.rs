//! Progress of a job that this process runs.

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
    /// Sets the number of finished parts of the work.
    pub fn set_done(&self, done: usize) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Number of finished parts of the work.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Sets or clears the note on the run, as JSON.
    pub fn set_note(&self, note: Option<String>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    /// Note on the run.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets everything that the bits of its numbers depend on.
    pub fn set_numerics(&self, numerics: String) {
        *self.numerics.lock().unwrap_or_else(PoisonError::into_inner) = Some(numerics);
    }

    /// Everything that the bits of its numbers depend on, once known.
    #[must_use]
    pub fn numerics(&self) -> Option<String> {
        self.numerics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
