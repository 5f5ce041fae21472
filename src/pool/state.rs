//! Parts of the state of a model: where it stands, why it is not there, and when that is tried again. Pure.

use super::error::OpenError;
use super::model::Model;
use lm::hub::DownloadProgress;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelState {
    Closed,
    /// Its files are being downloaded or read.
    Fetching,
    /// Its files are open, and no device holds it; the next request loads it.
    Opened,
    /// It is being loaded, or waits for its turn.
    Loading,
    /// At least one device holds it.
    Ready,
    /// It is being unloaded: admitted requests are finished, new ones are refused.
    Draining,
    /// The last attempt to open or to load it failed, for this reason; a later request tries again, and an eager
    /// model is tried again by itself.
    Failed(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before its pause is over.
    AfterPause,
    Now,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replica {
    /// It is not there, and nobody has asked for it.
    Absent,
    /// It is to be loaded when the device comes to it.
    Ordered,
    Loading,
    Resident,
}

#[derive(Debug)]
pub(super) enum FilesState {
    Closed,
    Fetching(Fetch),
    Opened(Arc<Model>),
}

/// One attempt to open the files of a model.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    /// Progress of the download; also the identity of the attempt.
    pub(super) progress: Arc<DownloadProgress>,
    /// The model that was open before: it stays if its files have not changed.
    pub(super) previous: Option<Arc<Model>>,
}

/// A failed opening is not tried again by requests before this long, so that a broken model costs the others little.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// The pause after the first failure of an eager model, before it is tried again by itself. It doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest such pause, unless the attempt itself took longer.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct ModelFailure {
    pub(super) reason: String,
    /// Why its files could not be opened; `None` if no device could load it.
    pub(super) open_error: Option<OpenError>,
    /// Requests do not try again before.
    paused_until: Option<Instant>,
}

/// Time at which an eager model that failed is tried again by itself. Attempts of requests in between neither count nor put it
/// off: they load what is open, and only this one reads the files again.
#[derive(Debug, Default)]
pub(super) struct RetrySchedule {
    failures: u32,
    due: Option<Instant>,
}

impl RetrySchedule {
    /// Notes a failure of an attempt that ended `now`.
    pub(super) fn failed(&mut self, now: Instant, took: Duration) {
        if self.due.is_none_or(|due| due <= now) {
            self.failures = self.failures.saturating_add(1);
            self.due = now.checked_add(retry_pause(self.failures, took));
        }
    }

    /// When the next attempt is due; none before the first failure.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }
}

impl ModelFailure {
    /// The failure of an attempt that ended `now`.
    pub(super) fn new(reason: String, open_error: Option<OpenError>, now: Instant, took: Duration) -> Self {
        let pause = if open_error.is_some() { took.max(LEAST_PAUSE) } else { took };
        Self { reason, open_error, paused_until: now.checked_add(pause) }
    }

    pub(super) fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }
}

/// Returns the pause of a model that failed `count` times in a row: at least as long as the last attempt took, so that at most
/// half of the time goes into attempts.
fn retry_pause(count: u32, took: Duration) -> Duration {
    let doubled = 2_u32.checked_pow(count.saturating_sub(1)).and_then(|times| FIRST_RETRY.checked_mul(times));
    doubled.unwrap_or(LONGEST_RETRY).min(LONGEST_RETRY).max(took)
}

#[cfg(test)]
mod tests {
    use super::{Duration, retry_pause};

    #[test]
    fn the_pause_doubles_up_to_half_a_minute() {
        let pauses: Vec<_> = (1..=7).map(|count| retry_pause(count, Duration::ZERO).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retry_pause(u32::MAX, Duration::ZERO), Duration::from_secs(30));
        assert_eq!(retry_pause(1, Duration::from_secs(90)), Duration::from_secs(90), "as long as the attempt took");
    }
}
