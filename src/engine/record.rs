//! The engine's record of each model: its series, what is queued for it, its speed, and the time that work takes at that speed.

use super::metrics::ModelMetrics;
use super::request::{Class, PerClass};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct ModelRecord {
    pub(super) id: Arc<str>,
    pub(super) metrics: ModelMetrics,
    /// Tokens admitted and not yet answered.
    queued: PerClass<AtomicUsize>,
    rate: Mutex<Option<Rate>>,
    /// The shortest of the latest passes through streamed layers, and when it ended: however few tokens a pass has, it reads all
    /// layers.
    shortest_pass: Mutex<Option<(Duration, Instant)>>,
    /// When a load or a forward pass of it last ended.
    last_used: Mutex<Option<Instant>>,
}

impl ModelRecord {
    pub(super) fn queued(&self, class: Class) -> &AtomicUsize {
        self.queued.get(class)
    }

    /// Tokens of this class and of the more urgent ones, admitted and not yet answered.
    pub(super) fn queued_up_to(&self, class: Class) -> usize {
        self.queued.iter().take(class as usize + 1).map(|tokens| tokens.load(Ordering::Relaxed)).sum()
    }

    /// Returns its speed on one device in tokens per second; `None` if it was not measured lately.
    pub(super) fn tokens_per_second(&self, now: Instant) -> Option<f64> {
        (*lock(&self.rate))?.tokens_per_second(now)
    }

    /// Records a forward pass through streamed layers.
    pub(super) fn note_pass(&self, took: Duration, now: Instant) {
        let before = self.shortest_pass(now);
        if before.is_none_or(|shortest| took <= shortest) {
            *lock(&self.shortest_pass) = Some((took, now));
        }
    }

    /// Returns the time of the shortest pass through streamed layers; `None` if there was none lately.
    pub(super) fn shortest_pass(&self, now: Instant) -> Option<Duration> {
        let (took, ended) = (*lock(&self.shortest_pass))?;
        (now.saturating_duration_since(ended) < RATE_LIFETIME).then_some(took)
    }

    pub(super) fn last_used(&self) -> Option<Instant> {
        *lock(&self.last_used)
    }

    pub(super) fn note_use(&self, now: Instant) {
        *lock(&self.last_used) = Some(now);
    }

    /// Records a forward pass of `tokens` tokens under this token budget.
    pub(super) fn note_speed(&self, tokens: usize, budget: usize, took: Duration, now: Instant) {
        let mut rate = lock(&self.rate);
        *rate = Rate::observe(*rate, tokens, budget, took, now);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(super) struct Records {
    records: RwLock<HashMap<Arc<str>, Arc<ModelRecord>>>,
    device_names: Vec<String>,
}

impl Records {
    pub(super) fn new(device_names: Vec<String>) -> Self {
        Self { records: RwLock::default(), device_names }
    }

    /// The record of a model that may be on these devices, made now if there is none.
    pub(super) fn get(&self, id: &str, devices: &[usize]) -> Arc<ModelRecord> {
        if let Some(known) = self.records.read().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Arc::clone(known);
        }
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let metrics = ModelMetrics::new(id, devices, &self.device_names);
            Arc::new(ModelRecord {
                id: id.into(),
                metrics,
                queued: PerClass::default(),
                rate: Mutex::default(),
                shortest_pass: Mutex::default(),
                last_used: Mutex::default(),
            })
        };
        Arc::clone(records.entry(id.into()).or_insert_with(new))
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<ModelRecord>> {
        self.records.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Forgets the models for which `is_there` does not hold, where there are more records than these `models`.
    pub(super) fn retain(&self, models: usize, is_there: impl Fn(&str) -> bool) {
        if self.records.read().unwrap_or_else(PoisonError::into_inner).len() <= models {
            return;
        }
        self.records.write().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_there(id));
    }
}

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
