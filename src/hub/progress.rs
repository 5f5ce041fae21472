//! How far a download is, for whoever shows it and for the log.

use super::{HubError, RepoId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The log gets a line at least this often while bytes arrive.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// How far a download is. Shared between the thread that downloads and whoever shows it or stops it.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Bytes of the model that are in the cache, whole or in part.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Bytes of all files of the model; 0 until they are known.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Makes the download end with [`HubError::Cancelled`], at the latest when the network times out. What has arrived
    /// stays, and is continued by the next download.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Fails once the download is cancelled.
    pub(super) fn check(&self) -> Result<(), HubError> {
        if self.cancelled.load(Relaxed) { Err(HubError::Cancelled) } else { Ok(()) }
    }

    /// Waits, unless the download is cancelled.
    pub(super) fn pause(&self, duration: Duration) -> Result<(), HubError> {
        let end = Instant::now() + duration;
        loop {
            self.check()?;
            match end.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => std::thread::sleep(left.min(Duration::from_millis(50))),
            }
        }
    }
}

/// Counts the bytes of one download and logs them: a line every tenth, or every ten seconds.
pub struct Meter<'a> {
    pub progress: &'a Progress,
    repo: &'a RepoId,
    /// Bytes of the files before the current one.
    before: u64,
    logged_at: Instant,
    logged_tenth: u64,
}

impl<'a> Meter<'a> {
    pub fn new(progress: &'a Progress, repo: &'a RepoId) -> Self {
        Self { progress, repo, before: 0, logged_at: Instant::now(), logged_tenth: 0 }
    }

    /// All files are known: `total` bytes, of which none is counted yet.
    pub fn begin(&mut self, total: u64) {
        self.before = 0;
        self.progress.done.store(0, Relaxed);
        self.progress.total.store(total, Relaxed);
    }

    /// There are `bytes` of the current file.
    ///
    /// # Errors
    /// [`HubError::Cancelled`].
    pub fn at(&mut self, bytes: u64) -> Result<(), HubError> {
        let done = self.before.saturating_add(bytes);
        self.progress.done.store(done, Relaxed);
        self.log(done);
        self.progress.check()
    }

    /// The current file is whole, of `size` bytes; the next begins.
    pub fn next(&mut self, size: u64) {
        self.before = self.before.saturating_add(size);
        self.progress.done.store(self.before, Relaxed);
    }

    fn log(&mut self, done: u64) {
        let total = self.progress.total();
        let tenth = u128::from(done) * 10 / u128::from(total.max(1));
        let tenth = u64::try_from(tenth).unwrap_or(10);
        if total > 0 && (tenth > self.logged_tenth || self.logged_at.elapsed() >= LOG_EVERY) {
            tracing::info!(repo = %self.repo, bytes = done, total_bytes = total, "downloading");
            self.logged_at = Instant::now();
        }
        self.logged_tenth = tenth;
    }
}
