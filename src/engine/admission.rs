//! Who may queue: tokens are admitted by a semaphore per class, before the queue, so that the queue itself needs no
//! bound.
//!
//! Invariants: a request is admitted whole or not at all; every admitted sequence holds its [`Share`] until it is
//! answered or dropped, and what the share holds (permits, counts, the gauge) goes back with it, whoever drops it.
//! The two classes have windows of their own, so audits can never keep a client out.
//!
//! A closed gate stays closed: the engine drains, or its device is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::{Class, DeviceSlot, Refusal};

/// The window of batch work, in budgets of a forward pass on every device: enough that no device ever waits for the next
/// texts of an audit, and little enough that an audit holds no more than it needs.
const BATCH_WINDOW: usize = 4;

/// The weight of the newest measurement in a model's speed.
const RATE_WEIGHT: f64 = 0.25;

/// A speed not confirmed for this long is forgotten: a bad measurement must not refuse requests for ever, and those
/// that it refuses cannot correct it.
const RATE_LIFETIME: Duration = Duration::from_secs(300);

/// Bounds of the advice when to retry: clients that come back at once only ask again, and an estimate is an estimate.
const RETRY_SECONDS: (u64, u64) = (1, 60);

/// A model's speed, averaged exponentially over its batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rate {
    tokens_per_second: f64,
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
        let tokens_per_second =
            before.and_then(|rate| rate.at(now)).map_or(seen, |old| old + RATE_WEIGHT * (seen - old));
        Some(Self { tokens_per_second, measured: now })
    }

    /// Tokens per second, unless the measurement is too old to be relied on.
    pub(super) fn at(self, now: Instant) -> Option<f64> {
        (now.saturating_duration_since(self.measured) < RATE_LIFETIME).then_some(self.tokens_per_second)
    }
}

/// The time `tokens` take at a speed; none where the speed is unknown.
pub(super) fn time_for(tokens: usize, tokens_per_second: Option<f64>) -> Option<Duration> {
    Duration::try_from_secs_f64(tokens as f64 / tokens_per_second?).ok()
}

/// Whether a request can be done in the time it has. `own` is its own estimated time, `ahead` that of what is
/// queued before it. Where the speed is unknown the request is admitted; a deadline already passed is not a
/// question of speed, and is answered as such when the request's turn comes.
pub(super) fn judge_time(available: Option<Duration>, own: Option<Duration>, ahead: Duration) -> Result<(), Refusal> {
    let (Some(available), Some(own)) = (available, own) else {
        return Ok(());
    };
    if available.is_zero() {
        Ok(())
    } else if own > available {
        Err(Refusal::CannotMeetDeadline { estimate: own, available })
    } else if own + ahead > available {
        Err(busy((own + ahead).saturating_sub(available)))
    } else {
        Ok(())
    }
}

/// The refusal of a request for which there may be room after about `wait`.
fn busy(wait: Duration) -> Refusal {
    let (least, most) = RETRY_SECONDS;
    let seconds = wait.as_secs().saturating_add(1).clamp(least, most);
    Refusal::Busy { retry_after: Duration::from_secs(seconds) }
}

/// The gate is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closed;

/// Why a request was not let in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NoEntry {
    /// There is no room now; the refusal says when there may be.
    Full(Refusal),
    Closed,
}

/// One class's window, in tokens.
#[derive(Debug)]
struct Window {
    permits: Arc<Semaphore>,
    size: u32,
    limit: &'static str,
}

impl Window {
    fn new(size: usize, limit: &'static str) -> Self {
        // The semaphore counts in `u32`; four billion queued tokens are without limit.
        let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
        Self { permits: Arc::new(Semaphore::new(size as usize)), size, limit }
    }

    /// What a sequence of `tokens` costs: one longer than the window takes all of it.
    fn cost(&self, tokens: usize) -> u32 {
        u32::try_from(tokens).unwrap_or(u32::MAX).min(self.size)
    }
}

/// Tokens admitted and not yet answered, per model and class.
#[derive(Debug)]
struct Depth {
    tokens: Vec<[AtomicUsize; Class::ALL.len()]>,
    gauges: [Gauge; Class::ALL.len()],
}

/// A sequence's part of its window, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    _permits: OwnedSemaphorePermit,
    depth: Arc<Depth>,
    model: usize,
    class: Class,
    tokens: usize,
}

impl Share {
    pub(super) fn class(&self) -> Class {
        self.class
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let class = self.class.index();
        self.depth.tokens[self.model][class].fetch_sub(self.tokens, Ordering::Relaxed);
        self.depth.gauges[class].decrement(self.tokens as f64);
    }
}

/// The windows of both classes and what they have let in.
#[derive(Debug)]
pub(super) struct Gate {
    windows: [Window; Class::ALL.len()],
    depth: Arc<Depth>,
}

impl Gate {
    pub(super) fn new(
        models: usize,
        max_queue_tokens: usize,
        devices: &[DeviceSlot],
        gauges: [Gauge; Class::ALL.len()],
    ) -> Self {
        let widest = devices.iter().map(DeviceSlot::largest_budget).max().unwrap_or(1);
        let batch_window = widest.saturating_mul(devices.len()).saturating_mul(BATCH_WINDOW);
        Self {
            windows: [Window::new(max_queue_tokens, "queue"), Window::new(batch_window, "window of batch work")],
            depth: Arc::new(Depth { tokens: (0..models).map(|_| Default::default()).collect(), gauges }),
        }
    }

    /// Refuses a request of so many tokens if it exceeds the whole window of its class.
    pub(super) fn judge_size(&self, class: Class, requested: usize) -> Result<(), Refusal> {
        let window = &self.windows[class.index()];
        let allowed = window.size as usize;
        if requested > allowed {
            return Err(Refusal::TooLarge { limit: window.limit, allowed, requested });
        }
        Ok(())
    }

    /// Lets in all sequences of the given lengths, or none; answers at once. The shares come in the order of
    /// `lengths`. `rates` are the models' speeds, for the advice when to retry.
    pub(super) fn admit(
        &self,
        class: Class,
        model: usize,
        lengths: &[usize],
        rates: &[Option<f64>],
    ) -> Result<Vec<Share>, NoEntry> {
        let window = &self.windows[class.index()];
        let requested: usize = lengths.iter().sum();
        let permits = u32::try_from(requested).unwrap_or(u32::MAX);
        let mut all = Arc::clone(&window.permits).try_acquire_many_owned(permits).map_err(|error| match error {
            TryAcquireError::Closed => NoEntry::Closed,
            TryAcquireError::NoPermits => NoEntry::Full(busy(self.ahead(class, rates))),
        })?;
        // All parts come out of the whole, so none is ever missing.
        let shares = lengths.iter().filter_map(|&tokens| {
            let permits = all.split(tokens)?;
            Some(self.share(permits, class, model, tokens))
        });
        Ok(shares.collect())
    }

    /// Lets in one sequence as soon as its class's window has room for it, in order of asking.
    pub(super) async fn admit_when_room(&self, class: Class, model: usize, tokens: usize) -> Result<Share, Closed> {
        let window = &self.windows[class.index()];
        let permits = Arc::clone(&window.permits).acquire_many_owned(window.cost(tokens)).await.map_err(|_| Closed)?;
        Ok(self.share(permits, class, model, tokens))
    }

    fn share(&self, permits: OwnedSemaphorePermit, class: Class, model: usize, tokens: usize) -> Share {
        self.depth.tokens[model][class.index()].fetch_add(tokens, Ordering::Relaxed);
        self.depth.gauges[class.index()].increment(tokens as f64);
        Share { _permits: permits, depth: Arc::clone(&self.depth), model, class, tokens }
    }

    /// The estimated time of what a new sequence of the class waits for: interactive work for interactive work,
    /// batch work for all. `rates` are the speeds at which the models' queues move. Models of unknown speed count nothing:
    /// it is a lower bound, and what it lets through in vain the deadline catches.
    pub(super) fn ahead(&self, class: Class, rates: &[Option<f64>]) -> Duration {
        let classes = &Class::ALL[..=class.index()];
        self.depth
            .tokens
            .iter()
            .zip(rates)
            .filter_map(|(tokens, rate)| {
                let queued = classes.iter().map(|class| tokens[class.index()].load(Ordering::Relaxed)).sum();
                time_for(queued, *rate)
            })
            .fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Tokens of the class admitted and not yet answered.
    pub(super) fn tokens(&self, class: Class) -> usize {
        let models = self.depth.tokens.iter();
        models.map(|tokens| tokens[class.index()].load(Ordering::Relaxed)).sum()
    }

    /// Lets nobody in from now on, and wakes those who wait.
    pub(super) fn close(&self) {
        for window in &self.windows {
            window.permits.close();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.windows.iter().all(|window| window.permits.is_closed())
    }
}
