//! Admission to the queue: tokens are admitted by semaphores, before the queue, so that the queue itself needs no bound.
//!
//! Invariants: a request is admitted whole or not at all; every admitted pass holds its [`Permit`] until it is answered or
//! dropped, and what the permit holds (tokens of the window, counts, the lease of the model) goes back with it, whoever drops
//! it. Batch work has windows of its own, so audits can never keep a client out.
//!
//! A closed gate stays closed: the engine drains, or its device is lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::engine::caller::Caller;
use crate::engine::class::{Class, PerClass};
use crate::engine::error::Refusal;
use crate::engine::rate::time_for;
use crate::engine::record::ModelRecord;
use crate::engine::settings::DeviceSlot;
use crate::pool::Lease;

/// The window of batch work of a model, in budgets of a forward pass on every device: enough that no device ever waits for
/// the next texts of an audit, and little enough that an audit holds no more than it needs.
const BATCH_WINDOW: usize = 4;

/// The part of the queue that one caller with a name may have: one in this many.
const CALLER_SHARE: usize = 2;

/// Bounds of the advice when to retry: clients that come back at once only ask again, and an estimate is an estimate.
const RETRY_SECONDS: (u64, u64) = (1, 60);

/// Checks whether a request can be done in the time it has. `alone` is the estimated time of the request itself, `ahead` that of
/// what is queued before it. If the speed is unknown, the request is admitted; a deadline already passed is not a question of
/// speed, and is answered as such when the request's turn comes.
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
pub(in crate::engine) fn busy(wait: Duration) -> Refusal {
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

/// So many tokens that may be admitted and not yet answered.
#[derive(Debug)]
struct AdmissionWindow {
    permits: Arc<Semaphore>,
    size: u32,
    /// Tokens admitted and not yet answered.
    tokens: AtomicUsize,
    /// Those of each caller, by name; one that has none is not there.
    by_caller: Mutex<HashMap<Arc<str>, usize>>,
    gauge: Gauge,
}

impl AdmissionWindow {
    fn new(size: usize, gauge: Gauge) -> Self {
        // The semaphore counts in `u32`; four billion queued tokens are without limit.
        let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
        let (permits, tokens, by_caller) =
            (Arc::new(Semaphore::new(size as usize)), AtomicUsize::new(0), Mutex::default());
        Self { permits, size, tokens, by_caller, gauge }
    }

    /// Returns the cost of a sequence of `tokens`: one longer than the window takes all of it.
    fn cost(&self, tokens: usize) -> u32 {
        u32::try_from(tokens).unwrap_or(u32::MAX).min(self.size)
    }

    /// Returns the number of tokens a caller may have in it: one with a name gets a share, so that no caller can keep the others
    /// out.
    fn share(&self, caller: &Caller) -> usize {
        let size = self.size as usize;
        if caller.has_name() { (size / CALLER_SHARE).max(1) } else { size }
    }

    /// Takes so much of the caller's share; whether there was as much left.
    fn take_share(&self, caller: &Caller, tokens: usize) -> bool {
        let name = caller.name();
        let mut by_caller = self.by_caller();
        let taken = by_caller.get(name).copied().unwrap_or(0).saturating_add(tokens);
        let fits = taken <= self.share(caller);
        if fits {
            by_caller.insert(Arc::clone(name), taken);
        }
        fits
    }

    fn give_share_back(&self, caller: &Caller, tokens: usize) {
        let name = caller.name();
        let mut by_caller = self.by_caller();
        let Some(taken) = by_caller.get_mut(name) else { return };
        *taken = taken.saturating_sub(tokens);
        if *taken == 0 {
            by_caller.remove(name);
        }
    }

    fn by_caller(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.by_caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The windows of batch work, by model.
#[derive(Debug, Default)]
struct BatchWindows {
    by_model: HashMap<Arc<str>, Arc<AdmissionWindow>>,
    closed: bool,
}

/// Whose work is admitted: the model's record, its lease for as long as the work lasts, and who asks.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Holder {
    record: Arc<ModelRecord>,
    _lease: Lease,
    caller: Caller,
}

impl Holder {
    pub(in crate::engine) fn new(record: Arc<ModelRecord>, lease: Lease, caller: Caller) -> Self {
        Self { record, _lease: lease, caller }
    }
}

/// A pass's part of its window, given back when dropped.
#[derive(Debug)]
pub(in crate::engine) struct Permit {
    _permits: OwnedSemaphorePermit,
    window: Arc<AdmissionWindow>,
    holder: Holder,
    class: Class,
    tokens: usize,
}

impl Permit {
    /// Only for tokens whose `permits` were taken from the window, and of interactive work from the caller's share.
    fn new(
        permits: OwnedSemaphorePermit,
        window: Arc<AdmissionWindow>,
        holder: Holder,
        class: Class,
        tokens: usize,
    ) -> Self {
        holder.record.queued(class).fetch_add(tokens, Ordering::Relaxed);
        window.tokens.fetch_add(tokens, Ordering::Relaxed);
        window.gauge.increment(tokens as f64);
        Self { _permits: permits, window, holder, class, tokens }
    }

    pub(in crate::engine) fn class(&self) -> Class {
        self.class
    }

    /// The name of who asks.
    pub(in crate::engine) fn caller(&self) -> &Arc<str> {
        self.holder.caller.name()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.holder.record.queued(self.class).fetch_sub(self.tokens, Ordering::Relaxed);
        self.window.tokens.fetch_sub(self.tokens, Ordering::Relaxed);
        self.window.gauge.decrement(self.tokens as f64);
        if self.class == Class::Interactive {
            self.window.give_share_back(&self.holder.caller, self.tokens);
        }
    }
}

/// The windows and what they have let in.
#[derive(Debug)]
pub(in crate::engine) struct Gate {
    /// One for all models: a client waits for whatever is before it.
    interactive: Arc<AdmissionWindow>,
    /// One for each model, so that an audit of one model never takes the room of another's, and a device that has loaded a
    /// model finds work for it as long as there is some.
    batch: Mutex<BatchWindows>,
    batch_size: usize,
    batch_gauge: Gauge,
}

impl Gate {
    pub(in crate::engine) fn new(max_queue_tokens: usize, devices: &[DeviceSlot], gauges: &PerClass<Gauge>) -> Self {
        let widest = devices.iter().map(|device| device.max_batch_tokens).max().unwrap_or(1);
        Self {
            interactive: Arc::new(AdmissionWindow::new(max_queue_tokens, gauges.get(Class::Interactive).clone())),
            batch: Mutex::default(),
            batch_size: widest.saturating_mul(devices.len()).saturating_mul(BATCH_WINDOW),
            batch_gauge: gauges.get(Class::Batch).clone(),
        }
    }

    fn batch(&self) -> MutexGuard<'_, BatchWindows> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window of the class for a model.
    fn window(&self, class: Class, model: &Arc<str>) -> Arc<AdmissionWindow> {
        match class {
            Class::Interactive => Arc::clone(&self.interactive),
            Class::Batch => {
                let mut batch = self.batch();
                let closed = batch.closed;
                let window = batch.by_model.entry(Arc::clone(model)).or_insert_with(|| {
                    let window = AdmissionWindow::new(self.batch_size, self.batch_gauge.clone());
                    if closed {
                        window.permits.close();
                    }
                    Arc::new(window)
                });
                Arc::clone(window)
            }
        }
    }

    /// Refuses a request of `requested` tokens if it exceeds the whole window of its class, or what its caller may have of it.
    pub(in crate::engine) fn judge_size(&self, class: Class, caller: &Caller, requested: usize) -> Result<(), Refusal> {
        let (allowed, limit) = match class {
            Class::Interactive if caller.has_name() => (self.interactive.share(caller), "share of the queue of a key"),
            Class::Interactive => (self.interactive.size as usize, "queue"),
            Class::Batch => (self.batch_size, "window of batch work"),
        };
        if requested > allowed {
            return Err(Refusal::TooLarge { limit, allowed, requested });
        }
        Ok(())
    }

    /// Returns how many of `tokens` interactive tokens a caller may queue at most, and whether there is room for them now. A
    /// closed gate says so when somebody comes.
    pub(in crate::engine) fn expect_room(&self, caller: &Caller, tokens: usize) -> (usize, bool) {
        let window = &self.interactive;
        let share = window.share(caller);
        let (tokens, queued) = (tokens.min(share), window.by_caller().get(caller.name()).copied().unwrap_or(0));
        let is_room = window.permits.available_permits() >= tokens && queued + tokens <= share;
        (tokens, is_room || self.is_closed())
    }

    /// Returns the part of the queue that runs before another `tokens` tokens of a caller: it takes turns with others, so that it
    /// waits for as much of each as it has queued itself.
    pub(in crate::engine) fn part_ahead(&self, class: Class, caller: &Caller, tokens: usize) -> f64 {
        let total = self.tokens(class);
        if class == Class::Batch || total == 0 {
            return 1.0;
        }
        let by_caller = self.interactive.by_caller();
        let queued = by_caller.get(caller.name()).copied().unwrap_or(0);
        let others = by_caller.len() - usize::from(queued > 0);
        let ahead = (queued + tokens).saturating_mul(others).saturating_add(queued);
        (ahead as f64 / total as f64).min(1.0)
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
        let window = self.window(class, &holder.record.id);
        let requested: usize = lengths.iter().sum();
        let permits = u32::try_from(requested).unwrap_or(u32::MAX);
        let mut all = Arc::clone(&window.permits).try_acquire_many_owned(permits).map_err(|error| match error {
            TryAcquireError::Closed => NotAdmitted::Closed,
            TryAcquireError::NoPermits => NotAdmitted::Full(busy(ahead)),
        })?;
        if class == Class::Interactive && !window.take_share(&holder.caller, requested) {
            return Err(NotAdmitted::Full(busy(ahead)));
        }
        // All parts come out of the whole, so none is ever missing.
        let permits = lengths.iter().filter_map(|&tokens| {
            let permits = all.split(tokens)?;
            Some(Permit::new(permits, Arc::clone(&window), holder.clone(), class, tokens))
        });
        Ok(permits.collect())
    }

    /// Lets in one pass as soon as its window has room for it, in order of asking.
    pub(in crate::engine) async fn admit_when_room(
        &self,
        class: Class,
        holder: &Holder,
        tokens: usize,
    ) -> Result<Permit, Closed> {
        let window = self.window(class, &holder.record.id);
        let permits = Arc::clone(&window.permits).acquire_many_owned(window.cost(tokens)).await.map_err(|_| Closed)?;
        Ok(Permit::new(permits, window, holder.clone(), class, tokens))
    }

    /// Tokens of the class admitted and not yet answered.
    pub(in crate::engine) fn tokens(&self, class: Class) -> usize {
        let tokens = |window: &AdmissionWindow| window.tokens.load(Ordering::Relaxed);
        match class {
            Class::Interactive => tokens(&self.interactive),
            Class::Batch => self.batch().by_model.values().map(|window| tokens(window)).sum(),
        }
    }

    /// Forgets the windows of models for which `is_there` does not hold.
    pub(in crate::engine) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.batch().by_model.retain(|id, _| is_there(id));
    }

    /// Lets nobody in from now on, and wakes those who wait.
    pub(in crate::engine) fn close(&self) {
        self.interactive.permits.close();
        let mut batch = self.batch();
        batch.closed = true;
        batch.by_model.values().for_each(|window| window.permits.close());
    }

    pub(in crate::engine) fn is_closed(&self) -> bool {
        self.interactive.permits.is_closed()
    }
}

/// The estimated time of what a new pass of the class waits for: interactive work for interactive work, batch work for all.
/// `queues` are the models' records with the speeds at which their queues move. Models of unknown speed count nothing: it is
/// a lower bound, and what it lets through in vain the deadline catches.
pub(in crate::engine) fn time_ahead(class: Class, queues: &[(Arc<ModelRecord>, Option<f64>)]) -> Duration {
    let times = queues.iter().filter_map(|(record, rate)| time_for(record.queued_up_to(class), *rate));
    times.fold(Duration::ZERO, Duration::saturating_add)
}
