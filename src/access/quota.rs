//! Limits of a client: requests in flight, and tokens a minute and a day. They hold in one process, and are not kept when it ends.

use super::key_file::ClientLimits;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::error::Elapsed;

/// Usage of a client's limits.
#[derive(Debug, Default)]
pub struct Quota {
    usage: Mutex<QuotaUsage>,
    additions: Changes,
    deletions: Changes,
    /// True for one of several clients, whose changes of the store are followed by pauses.
    has_pauses: bool,
}

/// Maximum time that a request waits for the client's others that change the store.
const STORING_TIME: Duration = Duration::from_secs(10);

/// Length of the pause after a submission, a deletion or the beginning of an upload, in multiples of the time that it took. So one
/// client's changes take at most a quarter of the time, as long as each of them takes less than a third of [`MAX_PAUSE`].
const PAUSE: u32 = 3;
/// The same after a part of an upload.
const PAUSE_OF_PART: u32 = 1;
/// Maximum length of that pause.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// The end of the pause after a client's last change of the store; locked while the client changes it.
type Changes = tokio::sync::Mutex<Option<tokio::time::Instant>>;

/// A change of the store; the client's others wait until it is dropped.
#[derive(Debug)]
pub struct StoreChange<'a> {
    pause_ends: tokio::sync::MutexGuard<'a, Option<tokio::time::Instant>>,
    begun: tokio::time::Instant,
    /// Length of the pause after it, in multiples of its time.
    pause: u32,
}

impl Drop for StoreChange<'_> {
    fn drop(&mut self) {
        let pause = (self.begun.elapsed() * self.pause).min(MAX_PAUSE);
        *self.pause_ends = Some(tokio::time::Instant::now() + pause);
    }
}

#[derive(Debug, Default)]
struct QuotaUsage {
    limits: ClientLimits,
    requests: usize,
    minute: UsedTokens,
    day: UsedTokens,
}

/// Tokens that may not be scored yet: those that were scored, less those that were regained since. The limit of a window is regained evenly
/// over its length.
#[derive(Debug, Default)]
struct UsedTokens {
    tokens: f64,
    /// When `tokens` was right, by a clock that nobody sets.
    since: Option<Instant>,
}

/// Length of time over which a limit of tokens holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum QuotaWindow {
    Minute,
    Day,
}

impl QuotaWindow {
    /// Length of the window, in seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        match self {
            Self::Minute => 60,
            Self::Day => 24 * 3_600,
        }
    }
}

/// A request in flight; it ends when this is dropped.
#[derive(Debug)]
pub struct RequestPermit(Arc<Quota>);

/// Tokens that a request is expected to score. They count, also where its client goes away, unless they are settled.
#[derive(Debug)]
pub struct TokenReservation {
    quota: Arc<Quota>,
    reserved: f64,
}

/// A limit of a client that is reached.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum QuotaExceeded {
    #[error("{0} requests of this client are in flight, which is its limit")]
    Requests(usize),
    #[error("the {limit} tokens a {window} of this client are used up")]
    Tokens {
        limit: u64,
        window: QuotaWindow,
        /// Time until some are regained.
        wait: Duration,
    },
    #[error("this client may have {limit} {counted} in the store; delete some")]
    Stored { limit: u64, counted: &'static str },
}

/// Amount that a client has in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredUsage {
    /// Size of its samples, as lines of JSON in bytes.
    pub bytes: u64,
    pub datasets: u64,
    /// Finished or not.
    pub jobs: u64,
}

/// State of a limit of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingTokens {
    pub window: QuotaWindow,
    pub limit: u64,
    /// Tokens that may be scored now.
    pub remaining: u64,
    /// Seconds until all are regained.
    pub reset: u64,
}

impl Quota {
    /// Creates the unused quota of one of several clients.
    #[must_use]
    pub fn new(limits: ClientLimits) -> Self {
        Self { usage: Mutex::new(QuotaUsage { limits, ..QuotaUsage::default() }), has_pauses: true, ..Self::default() }
    }

    /// Replaces the limits; what is used stays used.
    pub fn set_limits(&self, limits: ClientLimits) {
        self.usage().limits = limits;
    }

    /// Begins a request.
    ///
    /// # Errors
    /// [`QuotaExceeded::Requests`] if the client has as many in flight as it may.
    pub fn begin(self: &Arc<Self>) -> Result<RequestPermit, QuotaExceeded> {
        let mut usage = self.usage();
        match usage.limits.requests {
            Some(limit) if usage.requests >= limit => Err(QuotaExceeded::Requests(limit)),
            _ => {
                usage.requests += 1;
                Ok(RequestPermit(Arc::clone(self)))
            }
        }
    }

    /// Reserves tokens that a request is expected to score. Allowed as long as those of the last minute and day are not used up: a
    /// request that needs more than the rest delays the next one by as much.
    ///
    /// # Errors
    /// [`QuotaExceeded::Tokens`] for the window whose limit takes longer to regain.
    pub fn reserve(self: &Arc<Self>, tokens: u64, now: Instant) -> Result<TokenReservation, QuotaExceeded> {
        let reserved = tokens as f64;
        let mut usage = self.usage();
        let refused = usage.windows().filter_map(|(window, limit, used)| {
            let wait = used.wait(window, limit, now)?;
            Some((wait, QuotaExceeded::Tokens { limit, window, wait }))
        });
        if let Some((_, exceeded)) = refused.max_by_key(|(wait, _)| *wait) {
            return Err(exceeded);
        }
        usage.windows().for_each(|(_, _, used)| used.tokens += reserved);
        drop(usage);
        Ok(TokenReservation { quota: Arc::clone(self), reserved })
    }

    /// Checks what the client would have in the store.
    ///
    /// # Errors
    /// [`QuotaExceeded::Stored`] for a limit that this is beyond.
    pub fn check_stored(&self, usage: StoredUsage) -> Result<(), QuotaExceeded> {
        let limits = self.usage().limits;
        let checks = [
            (limits.stored_bytes, usage.bytes, "bytes of samples"),
            (limits.datasets, usage.datasets, "datasets"),
            (limits.jobs, usage.jobs, "jobs"),
        ];
        for (limit, used, counted) in checks {
            if let Some(limit) = limit.filter(|limit| used > *limit) {
                return Err(QuotaExceeded::Stored { limit, counted });
            }
        }
        Ok(())
    }

    /// Begins a submission or an upload. The client's others wait until the change is dropped, and a pause longer if there are other clients:
    /// they see what was added, and one client never has more than one of them before those of others in the queue of a database that
    /// writes one at a time.
    ///
    /// # Errors
    /// [`Elapsed`] if the client's others take longer than ten seconds, as where the database does not answer.
    pub async fn begin_storing(&self) -> Result<StoreChange<'_>, Elapsed> {
        self.change(&self.additions, PAUSE).await
    }

    /// Begins a further part of an upload; the pause after it is shorter than that of [`Quota::begin_storing`].
    ///
    /// # Errors
    /// [`Elapsed`] if the client's others take longer than ten seconds.
    pub async fn go_on_storing(&self) -> Result<StoreChange<'_>, Elapsed> {
        self.change(&self.additions, PAUSE_OF_PART).await
    }

    /// Begins a deletion, for which the client's other deletions wait, at most ten seconds: a large one may take longer.
    pub async fn begin_deleting(&self) -> Option<StoreChange<'_>> {
        self.change(&self.deletions, PAUSE).await.ok()
    }

    async fn change<'a>(&'a self, changes: &'a Changes, pause: u32) -> Result<StoreChange<'a>, Elapsed> {
        let turn = async {
            let pause_ends = changes.lock().await;
            if let Some(end) = *pause_ends {
                tokio::time::sleep_until(end).await;
            }
            pause_ends
        };
        let pause_ends = tokio::time::timeout(STORING_TIME, turn).await?;
        let pause = if self.has_pauses { pause } else { 0 };
        Ok(StoreChange { pause_ends, begun: tokio::time::Instant::now(), pause })
    }

    /// Returns true if there is a limit of what the client has in the store.
    #[must_use]
    pub fn limits_stored(&self) -> bool {
        let ClientLimits { stored_bytes, datasets, jobs, .. } = self.usage().limits;
        stored_bytes.or(datasets).or(jobs).is_some()
    }

    /// Returns the state of the client's limits of tokens.
    #[must_use]
    pub fn remaining(&self, now: Instant) -> Vec<RemainingTokens> {
        let mut usage = self.usage();
        let state = |(window, limit, used): (QuotaWindow, u64, &mut UsedTokens)| {
            used.regain(window, limit, now);
            let remaining = (limit as f64 - used.tokens).max(0.0) as u64;
            let reset = (used.tokens * window.seconds() as f64 / limit as f64).ceil() as u64;
            RemainingTokens { window, limit, remaining, reset }
        };
        usage.windows().map(state).collect()
    }

    fn usage(&self) -> MutexGuard<'_, QuotaUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaUsage {
    /// Returns the windows that have a limit, with it and with what is used of it.
    fn windows(&mut self) -> impl Iterator<Item = (QuotaWindow, u64, &mut UsedTokens)> {
        let minute = self.limits.tokens_per_minute.map(|limit| (QuotaWindow::Minute, limit, &mut self.minute));
        let day = self.limits.tokens_per_day.map(|limit| (QuotaWindow::Day, limit, &mut self.day));
        minute.into_iter().chain(day)
    }
}

impl UsedTokens {
    /// Gives back what the time since the last look regains.
    fn regain(&mut self, window: QuotaWindow, limit: u64, now: Instant) {
        let passed = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.tokens = (self.tokens - passed.as_secs_f64() * limit as f64 / window.seconds() as f64).max(0.0);
        self.since = Some(now);
    }

    /// Returns the time until a token may be scored; `None` if one may be scored now.
    fn wait(&mut self, window: QuotaWindow, limit: u64, now: Instant) -> Option<Duration> {
        self.regain(window, limit, now);
        let over = self.tokens - limit as f64;
        // One token more, so that something is there after the wait.
        (over >= 0.0).then(|| Duration::from_secs_f64((over + 1.0) * window.seconds() as f64 / limit as f64))
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let mut usage = self.0.usage();
        usage.requests = usage.requests.saturating_sub(1);
    }
}

impl TokenReservation {
    /// Counts what was scored instead of what was expected.
    pub fn settle(self, tokens: usize) {
        let mut usage = self.quota.usage();
        usage.windows().for_each(|(_, _, used)| used.tokens = (used.tokens + tokens as f64 - self.reserved).max(0.0));
    }

    /// Counts nothing: the request was refused.
    pub fn give_back(self) {
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn per_minute(tokens: u64) -> ClientLimits {
        ClientLimits { tokens_per_minute: Some(tokens), ..ClientLimits::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_the_store_come_one_after_another() {
        let quota = Quota::default();
        let (storing, deleting) = (quota.begin_storing().await.unwrap(), quota.begin_deleting().await.unwrap());
        let begun = tokio::time::Instant::now();
        assert!(quota.begin_storing().await.is_err());
        assert!(quota.begin_deleting().await.is_none());
        assert_eq!(begun.elapsed(), 2 * STORING_TIME);
        drop((storing, deleting));
        assert!(quota.begin_storing().await.is_ok() && quota.begin_deleting().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_one_client_of_several_leave_time_for_others() {
        let change = async |quota: &Quota, took: Duration| {
            let change = quota.begin_storing().await.unwrap();
            tokio::time::sleep(took).await;
            drop(change);
        };
        let (begun, of_one) = (tokio::time::Instant::now(), Quota::new(ClientLimits::default()));
        change(&of_one, 20 * MILLISECOND).await;
        assert_eq!(begun.elapsed(), 20 * MILLISECOND);
        // Deletions have pauses of their own.
        assert!(of_one.begin_deleting().await.is_some());
        assert_eq!(begun.elapsed(), 20 * MILLISECOND);
        drop(of_one.go_on_storing().await.unwrap());
        assert_eq!(begun.elapsed(), 80 * MILLISECOND);
        change(&of_one, SECOND).await;
        change(&of_one, MILLISECOND).await;
        assert_eq!(begun.elapsed(), 80 * MILLISECOND + SECOND + MAX_PAUSE + MILLISECOND);

        let (begun, of_all) = (tokio::time::Instant::now(), Quota::default());
        change(&of_all, SECOND).await;
        change(&of_all, SECOND).await;
        assert_eq!(begun.elapsed(), 2 * SECOND);
    }

    #[test]
    fn requests_in_flight_are_limited() {
        let quota = Arc::new(Quota::new(ClientLimits { requests: Some(2), ..ClientLimits::default() }));
        let [first, second] = [quota.begin().unwrap(), quota.begin().unwrap()];
        assert_eq!(quota.begin().unwrap_err(), QuotaExceeded::Requests(2));
        drop(first);
        assert!(quota.begin().is_ok());
        drop(second);
        let unlimited = Arc::new(Quota::default());
        let permits: Vec<RequestPermit> = (0..1_000).map(|_| unlimited.begin().unwrap()).collect();
        assert_eq!(permits.len(), 1_000);
        assert_eq!(unlimited.remaining(Instant::now()), []);
    }

    #[test]
    fn tokens_come_back_in_a_minute() {
        let (quota, start) = (Arc::new(Quota::new(per_minute(600))), Instant::now());
        quota.reserve(500, start).unwrap().settle(590);
        // There are ten left, and a request may take more than that.
        quota.reserve(100, start).unwrap().settle(110);
        let QuotaExceeded::Tokens { limit: 600, window: QuotaWindow::Minute, wait } =
            quota.reserve(1, start).unwrap_err()
        else {
            panic!("tokens")
        };
        // 100 tokens over the limit come back in 10 seconds, and one more in a tenth.
        assert!((wait.as_secs_f64() - 10.1).abs() < 1e-9, "{wait:?}");
        assert!(quota.reserve(1, start + 10 * SECOND).is_err());
        assert!(quota.reserve(1, start + wait).is_ok());
        // Tokens of a refused request are given back; those of a request whose client does not wait are not.
        let later = start + 120 * SECOND;
        quota.reserve(600, later).unwrap().give_back();
        drop(quota.reserve(599, later).unwrap());
        quota.reserve(1, later).unwrap().settle(1);
        assert!(quota.reserve(1, later).is_err());
        // Other limits forget nothing.
        quota.set_limits(per_minute(601));
        assert!(quota.reserve(1, later).is_ok() && quota.reserve(1, later).is_err());
    }

    #[test]
    fn both_windows_limit_and_say_what_is_left() {
        let limits =
            ClientLimits { tokens_per_minute: Some(60), tokens_per_day: Some(86_400), ..ClientLimits::default() };
        let (quota, start) = (Arc::new(Quota::new(limits)), Instant::now());
        let left = |now| quota.remaining(now).iter().map(|left| (left.remaining, left.reset)).collect::<Vec<_>>();
        assert_eq!(left(start), [(60, 0), (86_400, 0)]);
        quota.reserve(40, start).unwrap().settle(45);
        assert_eq!(left(start), [(15, 45), (86_355, 45)]);
        quota.reserve(100, start).unwrap().settle(86_355);
        assert_eq!(left(start), [(0, 86_400), (0, 86_400)]);
        // The minute, which 86,400 tokens exceed by more than the day.
        let exceeded = quota.reserve(1, start).unwrap_err();
        assert!(matches!(exceeded, QuotaExceeded::Tokens { window: QuotaWindow::Minute, .. }), "{exceeded}");
        quota.set_limits(ClientLimits { tokens_per_minute: None, ..limits });
        let QuotaExceeded::Tokens { window: QuotaWindow::Day, wait, .. } = quota.reserve(1, start).unwrap_err() else {
            panic!("the day")
        };
        assert_eq!(wait, SECOND, "exactly at the bound, the next token comes back in a second");
        assert!(quota.reserve(1, start + wait).is_ok());
    }
}
