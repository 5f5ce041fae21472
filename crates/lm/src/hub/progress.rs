//! The progress of a download, for display and for the log.

use super::{HubError, RepoId};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The maximum time between two log lines while bytes arrive.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The progress of a download. It is shared between the thread that downloads and those that display or cancel it.
#[derive(Debug, Default)]
pub struct DownloadProgress {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl DownloadProgress {
    /// Bytes of the model that are in the cache, in complete files and partial ones.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Bytes of all files of the model; 0 until they are known.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Ends the download with [`HubError::Cancelled`], at the latest when the network times out. The received bytes are kept,
    /// and the next download continues from them.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Returns an error if the download has been cancelled.
    pub(super) fn check(&self) -> Result<(), HubError> {
        if self.cancelled.load(Relaxed) { Err(HubError::Cancelled) } else { Ok(()) }
    }

    /// Sleeps for a duration, or until the download is cancelled.
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

/// Counts the bytes of one download and logs a line at every tenth of them, and every ten seconds.
pub struct DownloadMeter<'a> {
    pub progress: &'a DownloadProgress,
    repo: &'a RepoId,
    /// Bytes of the files before the current one.
    completed: u64,
    logged_at: Instant,
    logged_tenth: u64,
}

impl<'a> DownloadMeter<'a> {
    pub fn new(progress: &'a DownloadProgress, repo: &'a RepoId) -> Self {
        Self { progress, repo, completed: 0, logged_at: Instant::now(), logged_tenth: 0 }
    }

    /// Starts counting when all files are known. They have `total` bytes.
    pub fn begin(&mut self, total: u64) {
        self.completed = 0;
        self.progress.done.store(0, Relaxed);
        self.progress.total.store(total, Relaxed);
    }

    /// Sets the number of bytes received of the current file.
    pub fn set_received(&mut self, bytes: u64) -> Result<(), HubError> {
        let done = self.completed.saturating_add(bytes);
        self.progress.done.store(done, Relaxed);
        self.log(done);
        self.progress.check()
    }

    /// Marks the current file, of `size` bytes, as complete.
    pub fn finish_file(&mut self, size: u64) {
        self.completed = self.completed.saturating_add(size);
        self.progress.done.store(self.completed, Relaxed);
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
