//! Speed of a model, and the time that work takes at that speed.

use std::time::{Duration, Instant};

/// The weight of the newest measurement in a model's speed.
const RATE_WEIGHT: f64 = 0.25;

/// A speed not confirmed for this long is forgotten: a bad measurement must not refuse requests for ever, and those
/// that it refuses cannot correct it.
const RATE_LIFETIME: Duration = Duration::from_secs(300);

/// Number of batches measured before the speed is relied on: something may hold up the first of them, and a speed that is far too
/// low refuses the very requests that would correct it.
const FIRST_BATCHES: u32 = 3;

/// A model's speed: the best of its first batches, since nothing makes a batch faster than the model is, and then averaged
/// exponentially.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    value: f64,
    /// Number of batches measured, counted up to [`FIRST_BATCHES`].
    batches: u32,
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
        let rate = match before.filter(|rate| !rate.is_forgotten(now)) {
            None => Self { value: seen, batches: 1, measured: now },
            Some(rate) => rate.with(seen, now),
        };
        Some(rate)
    }

    fn with(self, seen: f64, now: Instant) -> Self {
        let value = match self.batches < FIRST_BATCHES {
            true => self.value.max(seen),
            false => self.value + RATE_WEIGHT * (seen - self.value),
        };
        Self { value, batches: FIRST_BATCHES.min(self.batches + 1), measured: now }
    }

    fn is_forgotten(self, now: Instant) -> bool {
        now.saturating_duration_since(self.measured) >= RATE_LIFETIME
    }

    /// Tokens per second, unless too few batches were measured or too long ago.
    pub(super) fn tokens_per_second(self, now: Instant) -> Option<f64> {
        (self.batches == FIRST_BATCHES && !self.is_forgotten(now)).then_some(self.value)
    }
}

/// Returns the time `tokens` take at a speed; `None` if the speed is unknown.
pub(super) fn time_for(tokens: usize, tokens_per_second: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(tokens as f64 / tokens_per_second?).ok()
}
