//! Who may queue: tokens are admitted by a semaphore per class, before the queue, so that the queue itself needs no
//! bound.
//!
//! Invariants: a request is admitted whole or not at all; every admitted pass holds its [`Permit`] until it is answered or
//! dropped, and what the permit holds (tokens of the window, counts, the lease of the model) goes back with it, whoever drops
//! it. The two classes have windows of their own, so audits can never keep a client out.
//!
//! A closed gate stays closed: the engine drains, or its device is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::engine::class::{Class, PerClass};
use crate::engine::error::Refusal;
use crate::engine::rate::time_for;
use crate::engine::record::ModelRecord;
use crate::engine::settings::DeviceSlot;
use crate::pool::Lease;

/// The window of batch work, in budgets of a forward pass on every device: enough that no device ever waits for the next
/// texts of an audit, and little enough that an audit holds no more than it needs.
const BATCH_WINDOW: usize = 4;

/// Bounds of the advice when to retry: clients that come back at once only ask again, and an estimate is an estimate.
const RETRY_SECONDS: (u64, u64) = (1, 60);

/// Whether a request can be done in the time it has. `alone` is the estimated time of the request itself, `ahead` that of
/// what is queued before it. Where the speed is unknown the request is admitted; a deadline already passed is not a
/// question of speed, and is answered as such when the request's turn comes.
pub(in crate::engine) fn judge_time(
    available: Option<Duration>,
    alone: Option<Duration>,
    ahead: Duration,
) -> Result<(), Refusal> {
    let (Some(available), Some(alone)) = (available, alone) else {
        return Ok(());
    };
    if available.is_zero() {
        Ok(())
    } else if alone > available {
        Err(Refusal::CannotMeetDeadline { estimate: alone, available })
    } else if alone + ahead > available {
        Err(busy((alone + ahead).saturating_sub(available)))
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
pub(in crate::engine) struct Closed;

/// Why a request was not let in.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::engine) enum NotAdmitted {
    /// There is no room now; the refusal says when there may be.
    Full(Refusal),
    Closed,
}

/// One class's window, in tokens.
#[derive(Debug)]
struct AdmissionWindow {
    permits: Arc<Semaphore>,
    size: u32,
    /// What the limit is called.
    name: &'static str,
    /// Tokens admitted and not yet answered.
    tokens: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl AdmissionWindow {
    fn new(size: usize, name: &'static str, gauge: Gauge) -> Self {
        // The semaphore counts in `u32`; four billion queued tokens are without limit.
        let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
        Self { permits: Arc::new(Semaphore::new(size as usize)), size, name, tokens: Arc::default(), gauge }
    }

    /// What a sequence of `tokens` costs: one longer than the window takes all of it.
    fn cost(&self, tokens: usize) -> u32 {
        u32::try_from(tokens).unwrap_or(u32::MAX).min(self.size)
    }
}

/// Whose work is admitted: the model's record, and its lease for as long as the work lasts.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Holder {
    record: Arc<ModelRecord>,
    _lease: Lease,
}

impl Holder {
    pub(in crate::engine) fn new(record: Arc<ModelRecord>, lease: Lease) -> Self {
        Self { record, _lease: lease }
    }
}

/// A pass's part of its window, given back when dropped.
#[derive(Debug)]
pub(in crate::engine) struct Permit {
    _permits: OwnedSemaphorePermit,
    holder: Holder,
    class: Class,
    tokens: usize,
    admitted: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl Permit {
    pub(in crate::engine) fn class(&self) -> Class {
        self.class
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.holder.record.queued(self.class).fetch_sub(self.tokens, Ordering::Relaxed);
        self.admitted.fetch_sub(self.tokens, Ordering::Relaxed);
        self.gauge.decrement(self.tokens as f64);
    }
}

/// The windows of both classes and what they have let in.
#[derive(Debug)]
pub(in crate::engine) struct Gate {
    windows: PerClass<AdmissionWindow>,
}

impl Gate {
    pub(in crate::engine) fn new(max_queue_tokens: usize, devices: &[DeviceSlot], gauges: &PerClass<Gauge>) -> Self {
        let widest = devices.iter().map(DeviceSlot::largest_budget).max().unwrap_or(1);
        let batch_window = widest.saturating_mul(devices.len()).saturating_mul(BATCH_WINDOW);
        let window = |class| {
            let (size, name) = match class {
                Class::Interactive => (max_queue_tokens, "queue"),
                Class::Batch => (batch_window, "window of batch work"),
            };
            AdmissionWindow::new(size, name, gauges.get(class).clone())
        };
        Self { windows: PerClass::new(window) }
    }

    /// Refuses a request of so many tokens if it exceeds the whole window of its class.
    pub(in crate::engine) fn judge_size(&self, class: Class, requested: usize) -> Result<(), Refusal> {
        let window = self.windows.get(class);
        let allowed = window.size as usize;
        if requested > allowed {
            return Err(Refusal::TooLarge { limit: window.name, allowed, requested });
        }
        Ok(())
    }

    /// Lets in all passes of the given lengths, or none; answers at once. The permits come in the order of `lengths`.
    /// `ahead` is the estimated time of what is queued before them, for the advice when to retry.
    pub(in crate::engine) fn admit(
        &self,
        class: Class,
        holder: &Holder,
        lengths: &[usize],
        ahead: Duration,
    ) -> Result<Vec<Permit>, NotAdmitted> {
        let requested: usize = lengths.iter().sum();
        let permits = u32::try_from(requested).unwrap_or(u32::MAX);
        let semaphore = Arc::clone(&self.windows.get(class).permits);
        let mut all = semaphore.try_acquire_many_owned(permits).map_err(|error| match error {
            TryAcquireError::Closed => NotAdmitted::Closed,
            TryAcquireError::NoPermits => NotAdmitted::Full(busy(ahead)),
        })?;
        // All parts come out of the whole, so none is ever missing.
        let permits = lengths.iter().filter_map(|&tokens| {
            let permits = all.split(tokens)?;
            Some(self.permit(permits, class, holder.clone(), tokens))
        });
        Ok(permits.collect())
    }

    /// Lets in one pass as soon as its class's window has room for it, in order of asking.
    pub(in crate::engine) async fn admit_when_room(
        &self,
        class: Class,
        holder: &Holder,
        tokens: usize,
    ) -> Result<Permit, Closed> {
        let window = self.windows.get(class);
        let permits = Arc::clone(&window.permits).acquire_many_owned(window.cost(tokens)).await.map_err(|_| Closed)?;
        Ok(self.permit(permits, class, holder.clone(), tokens))
    }

    fn permit(&self, permits: OwnedSemaphorePermit, class: Class, holder: Holder, tokens: usize) -> Permit {
        let window = self.windows.get(class);
        holder.record.queued(class).fetch_add(tokens, Ordering::Relaxed);
        window.tokens.fetch_add(tokens, Ordering::Relaxed);
        window.gauge.increment(tokens as f64);
        let (admitted, gauge) = (Arc::clone(&window.tokens), window.gauge.clone());
        Permit { _permits: permits, holder, class, tokens, admitted, gauge }
    }

    /// Tokens of the class admitted and not yet answered.
    pub(in crate::engine) fn tokens(&self, class: Class) -> usize {
        self.windows.get(class).tokens.load(Ordering::Relaxed)
    }

    /// Lets nobody in from now on, and wakes those who wait.
    pub(in crate::engine) fn close(&self) {
        for window in self.windows.iter() {
            window.permits.close();
        }
    }

    pub(in crate::engine) fn is_closed(&self) -> bool {
        self.windows.iter().all(|window| window.permits.is_closed())
    }
}

/// The estimated time of what a new pass of the class waits for: interactive work for interactive work, batch work for all.
/// `queues` are the models' records with the speeds at which their queues move. Models of unknown speed count nothing: it is
/// a lower bound, and what it lets through in vain the deadline catches.
pub(in crate::engine) fn time_ahead(class: Class, queues: &[(Arc<ModelRecord>, Option<f64>)]) -> Duration {
    let times = queues.iter().filter_map(|(record, rate)| time_for(record.queued_up_to(class), *rate));
    times.fold(Duration::ZERO, Duration::saturating_add)
}
