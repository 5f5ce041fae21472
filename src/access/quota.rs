//! Limits of a key: requests at once, and tokens a minute.

use super::key_file::KeyLimits;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Usage of a key's limits.
#[derive(Debug, Default)]
pub struct Quota {
    usage: Mutex<QuotaUsage>,
}

#[derive(Debug, Default)]
struct QuotaUsage {
    limits: KeyLimits,
    requests: usize,
    /// Tokens that may not be scored yet: what was scored within the last minute, less what has been regained since.
    tokens: f64,
    /// When `tokens` was right.
    since: Option<Instant>,
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

/// A limit of the key that is reached.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum QuotaExceeded {
    #[error("{0} requests of this key are in flight, which is its limit")]
    Requests(usize),
    #[error("the {limit} tokens a minute of this key are used up")]
    Tokens {
        limit: u64,
        /// Until some are there again.
        wait: Duration,
    },
}

impl Quota {
    /// Nothing is used yet.
    #[must_use]
    pub fn new(limits: KeyLimits) -> Self {
        Self { usage: Mutex::new(QuotaUsage { limits, ..QuotaUsage::default() }) }
    }

    /// Replaces the limits; what is used stays used.
    pub fn set_limits(&self, limits: KeyLimits) {
        self.usage().limits = limits;
    }

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

    /// Reserves tokens that a request is expected to score. Allowed as long as the tokens of the last minute are not used up: a
    /// request that needs more than is left of them delays the next one by as much.
    pub fn reserve(self: &Arc<Self>, tokens: usize, now: Instant) -> Result<TokenReservation, QuotaExceeded> {
        let reserved = tokens as f64;
        let mut usage = self.usage();
        if let Some(limit) = usage.limits.tokens_per_minute {
            usage.regain(limit, now);
            let over = usage.tokens - limit as f64;
            if over >= 0.0 {
                // One token more, so that something is there after the wait.
                let wait = Duration::from_secs_f64((over + 1.0) * 60.0 / limit as f64);
                return Err(QuotaExceeded::Tokens { limit, wait });
            }
            usage.tokens += reserved;
        }
        drop(usage);
        Ok(TokenReservation { quota: Arc::clone(self), reserved })
    }

    fn usage(&self) -> MutexGuard<'_, QuotaUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaUsage {
    /// Gives back what the time since the last look regains.
    fn regain(&mut self, limit: u64, now: Instant) {
        let passed = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.tokens = (self.tokens - passed.as_secs_f64() * limit as f64 / 60.0).max(0.0);
        self.since = Some(now);
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
        usage.tokens = (usage.tokens + tokens as f64 - self.reserved).max(0.0);
    }

    /// Counts nothing: the request was refused.
    pub fn give_back(self) {
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_requests_are_in_flight_and_no_more() {
        let quota = Arc::new(Quota::new(KeyLimits { requests: Some(2), ..KeyLimits::default() }));
        let [first, second] = [quota.begin().unwrap(), quota.begin().unwrap()];
        assert_eq!(quota.begin().unwrap_err(), QuotaExceeded::Requests(2));
        drop(first);
        assert!(quota.begin().is_ok());
        drop(second);
        let unlimited = Arc::new(Quota::default());
        let permits: Vec<RequestPermit> = (0..1_000).map(|_| unlimited.begin().unwrap()).collect();
        assert_eq!(permits.len(), 1_000);
    }

    #[test]
    fn tokens_come_back_in_a_minute() {
        let quota = Arc::new(Quota::new(KeyLimits { tokens_per_minute: Some(600), ..KeyLimits::default() }));
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        quota.reserve(500, start).unwrap().settle(590);
        // There are ten left, and a request may take more than that.
        quota.reserve(100, start).unwrap().settle(110);
        let QuotaExceeded::Tokens { limit: 600, wait } = quota.reserve(1, start).unwrap_err() else { panic!("tokens") };
        // 100 tokens over the limit come back in 10 seconds, and one more in a tenth.
        assert!((wait.as_secs_f64() - 10.1).abs() < 1e-9, "{wait:?}");
        assert!(quota.reserve(1, start + 10 * second).is_err());
        assert!(quota.reserve(1, start + wait).is_ok());
        // Tokens of a refused request are given back; those of a request whose client does not wait are not.
        let later = start + 120 * second;
        quota.reserve(600, later).unwrap().give_back();
        drop(quota.reserve(599, later).unwrap());
        quota.reserve(1, later).unwrap().settle(1);
        assert!(quota.reserve(1, later).is_err());
        // Other limits forget nothing.
        quota.set_limits(KeyLimits { tokens_per_minute: Some(601), ..KeyLimits::default() });
        assert!(quota.reserve(1, later).is_ok() && quota.reserve(1, later).is_err());
    }
}
