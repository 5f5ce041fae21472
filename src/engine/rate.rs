//! How fast a model is, and how long work takes at that speed.

use std::time::{Duration, Instant};

/// The weight of the newest measurement in a model's speed.
const RATE_WEIGHT: f64 = 0.25;

/// A speed not confirmed for this long is forgotten: a bad measurement must not refuse requests for ever, and those
/// that it refuses cannot correct it.
const RATE_LIFETIME: Duration = Duration::from_secs(300);

/// A model's speed, averaged exponentially over its batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    value: f64,
    measured: Instant,
}

impl Rate {
    /// The speed after one more batch. A batch less than half full measures fixed costs, not speed, and is passed
    /// over.
    pub(super) fn observe(
        before: Option<Self>,
        tokens: usize,
        budget: usize,
        took: Duration,
        now: Instant,
    ) -> Option<Self> {
        if tokens.saturating_mul(2) < budget || took.is_zero() {
            return before;
        }
        let seen = tokens as f64 / took.as_secs_f64();
        let value =
            before.and_then(|rate| rate.tokens_per_second(now)).map_or(seen, |old| old + RATE_WEIGHT * (seen - old));
        Some(Self { value, measured: now })
    }

    /// Tokens per second, unless the measurement is too old to be relied on.
    pub(super) fn tokens_per_second(self, now: Instant) -> Option<f64> {
        (now.saturating_duration_since(self.measured) < RATE_LIFETIME).then_some(self.value)
    }
}

/// The time `tokens` take at a speed; none where the speed is unknown.
pub(super) fn time_for(tokens: usize, tokens_per_second: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(tokens as f64 / tokens_per_second?).ok()
}
