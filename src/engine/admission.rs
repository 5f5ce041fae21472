//! Admission to the queue: tokens are admitted by semaphores, before the queue, so that the queue itself needs no bound.
//!
//! Invariants: a request is admitted whole or not at all; every admitted pass holds its [`Permit`] until it is answered or
//! dropped, and what the permit holds (tokens of the window, counts, the lease of the model) goes back with it, whoever drops
//! it. Batch work has windows of its own, so audits can never keep a client out.
//!
//! A closed gate stays closed: the engine drains, or its device is lost.

use super::DeviceSlot;
use super::error::{EngineError, Refusal};
use super::record::{ModelRecord, time_for};
use super::request::{Class, PerClass};
use crate::access::Principal;
use crate::pool::{Lease, Model};
use metrics::Gauge;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

/// The window of a principal's batch work on a model, in budgets of a forward pass on every device: enough that no device ever
/// waits for the next texts of an audit, and little enough that an audit holds no more than it needs.
const BATCH_WINDOW: usize = 4;

/// The part of the queue that one principal with a name may have: one in this many.
const PRINCIPAL_SHARE: usize = 2;

/// Bounds of the advice when to retry: clients that come back at once only ask again, and an estimate is an estimate.
const RETRY_SECONDS: (u64, u64) = (1, 60);

/// Checks whether a request can be done in the time it has. `alone` is the estimated time of the request itself, `ahead` that of
/// the work queued before it. If the speed is unknown, the request is admitted; a deadline already passed is not a question of
/// speed, and is answered as such when the request's turn comes.
pub(super) fn judge_time(available: Option<Duration>, alone: Option<Duration>, ahead: Duration) -> Result<(), Refusal> {
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
pub(super) fn busy(wait: Duration) -> Refusal {
    let (least, most) = RETRY_SECONDS;
    let seconds = wait.as_secs().saturating_add(1).clamp(least, most);
    Refusal::Busy { retry_after: Duration::from_secs(seconds) }
}

/// A number of tokens that may be admitted and not yet answered.
#[derive(Debug)]
struct AdmissionWindow {
    permits: Arc<Semaphore>,
    size: u32,
    /// Tokens admitted and not yet answered.
    tokens: AtomicUsize,
    /// Those of each principal, by name; one that has none is not there.
    by_principal: Mutex<HashMap<Arc<str>, usize>>,
    gauge: Gauge,
}

impl AdmissionWindow {
    fn new(size: usize, gauge: Gauge) -> Self {
        // The semaphore counts in `u32`; four billion queued tokens are without limit.
        let size = u32::try_from(size).unwrap_or(u32::MAX).max(1);
        let permits = Arc::new(Semaphore::new(size as usize));
        Self { permits, size, tokens: AtomicUsize::new(0), by_principal: Mutex::default(), gauge }
    }

    /// Returns the cost of a sequence of `tokens`: one longer than the window takes all of it.
    fn cost(&self, tokens: usize) -> u32 {
        u32::try_from(tokens).unwrap_or(u32::MAX).min(self.size)
    }

    /// Returns the number of tokens a principal may have in it: one with a name gets a share, so that none can keep the others
    /// out.
    fn share(&self, principal: &Principal) -> usize {
        let size = self.size as usize;
        if principal.has_name() { (size / PRINCIPAL_SHARE).max(1) } else { size }
    }

    /// Takes tokens of the principal's share; returns false if fewer are left.
    fn take_share(&self, principal: &Principal, tokens: usize) -> bool {
        let mut by_principal = self.by_principal();
        let taken = by_principal.get(principal.name()).copied().unwrap_or(0).saturating_add(tokens);
        let fits = taken <= self.share(principal);
        if fits {
            by_principal.insert(Arc::clone(principal.shared_name()), taken);
        }
        fits
    }

    fn give_share_back(&self, principal: &Principal, tokens: usize) {
        let mut by_principal = self.by_principal();
        let Some(taken) = by_principal.get_mut(principal.name()) else { return };
        *taken = taken.saturating_sub(tokens);
        if *taken == 0 {
            by_principal.remove(principal.name());
        }
    }

    fn by_principal(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.by_principal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Properties that the queued passes of one request have in common.
#[derive(Debug)]
pub(super) struct RequestContext {
    /// The number by which its passes are found in the queue.
    pub(super) number: u64,
    /// The id under which its passes wait: that of the model, with its adapter.
    pub(super) lane: Arc<str>,
    /// The model that they run through, with its adapter.
    pub(super) model: Arc<Model>,
    pub(super) record: Arc<ModelRecord>,
    pub(super) principal: Principal,
    /// The key of its statistics in the caches, beside the ids.
    pub(super) cache_key: Arc<str>,
    pub(super) class: Class,
    pub(super) deadline: Option<Instant>,
    /// Is told of every pass that is answered, or why there is no answer.
    pub(super) reply: UnboundedSender<Result<(), EngineError>>,
    /// Held for as long as any of its passes is; none if nothing has to run.
    pub(super) _lease: Option<Lease>,
}

impl RequestContext {
    /// Returns true if somebody still waits for its answers and they would come in time.
    pub(super) fn is_wanted(&self, now: Instant) -> bool {
        !self.reply.is_closed() && !self.is_late(now)
    }

    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// A pass's part of its window, given back when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _permits: OwnedSemaphorePermit,
    window: Arc<AdmissionWindow>,
    pub(super) request: Arc<RequestContext>,
    tokens: usize,
}

impl Permit {
    /// Only for tokens whose `permits` were taken from the window, and of interactive work from the principal's share.
    fn new(
        permits: OwnedSemaphorePermit,
        window: Arc<AdmissionWindow>,
        request: &Arc<RequestContext>,
        tokens: usize,
    ) -> Self {
        request.record.queued(request.class).fetch_add(tokens, Ordering::Relaxed);
        window.tokens.fetch_add(tokens, Ordering::Relaxed);
        window.gauge.increment(tokens as f64);
        Self { _permits: permits, window, request: Arc::clone(request), tokens }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.request.record.queued(self.request.class).fetch_sub(self.tokens, Ordering::Relaxed);
        self.window.tokens.fetch_sub(self.tokens, Ordering::Relaxed);
        self.window.gauge.decrement(self.tokens as f64);
        if self.request.class == Class::Interactive {
            self.window.give_share_back(&self.request.principal, self.tokens);
        }
    }
}

/// A model and the name of a principal.
type BatchKey = (Arc<str>, Arc<str>);

/// The windows and what they have let in.
#[derive(Debug)]
pub(super) struct Gate {
    /// One for all models: a client waits for whatever is before it.
    interactive: Arc<AdmissionWindow>,
    /// One for each model and principal, so that an audit never takes the room of another's: admission is in order of asking, and
    /// an audit asks for hundreds of passes at once. A device that has loaded a model finds work for it as long as there is some.
    batch: Mutex<HashMap<BatchKey, Arc<AdmissionWindow>>>,
    batch_size: usize,
    /// Size of the window of a model whose layers are streamed.
    streamed_size: usize,
    batch_gauge: Gauge,
}

impl Gate {
    pub(super) fn new(max_queue_tokens: usize, devices: &[DeviceSlot], gauges: &PerClass<Gauge>) -> Self {
        let size = |tokens: fn(&DeviceSlot) -> usize| {
            let widest = devices.iter().map(tokens).max().unwrap_or(1);
            widest.saturating_mul(devices.len()).saturating_mul(BATCH_WINDOW)
        };
        let batch_size = size(|device| device.max_batch_tokens);
        Self {
            interactive: Arc::new(AdmissionWindow::new(max_queue_tokens, gauges.get(Class::Interactive).clone())),
            batch: Mutex::default(),
            batch_size,
            streamed_size: size(|device| device.max_streamed_tokens).max(batch_size),
            batch_gauge: gauges.get(Class::Batch).clone(),
        }
    }

    fn batch(&self) -> MutexGuard<'_, HashMap<BatchKey, Arc<AdmissionWindow>>> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn window(&self, request: &RequestContext) -> Arc<AdmissionWindow> {
        if request.class == Class::Interactive {
            return Arc::clone(&self.interactive);
        }
        let new = || {
            let size = if request.model.is_streamed() { self.streamed_size } else { self.batch_size };
            let window = AdmissionWindow::new(size, self.batch_gauge.clone());
            // Closing closes this one first, so that no window opens behind it.
            if self.is_closed() {
                window.permits.close();
            }
            Arc::new(window)
        };
        let key = (Arc::clone(&request.record.id), Arc::clone(request.principal.shared_name()));
        let mut batch = self.batch();
        if !batch.contains_key(&key) {
            // Nothing holds these, and nothing waits for them.
            batch.retain(|_, window| Arc::strong_count(window) > 1);
        }
        Arc::clone(batch.entry(key).or_insert_with(new))
    }

    /// Refuses a request of `requested` tokens if it exceeds the whole window of its class, or the principal's share of it.
    pub(super) fn judge_size(&self, class: Class, principal: &Principal, requested: usize) -> Result<(), Refusal> {
        let (allowed, limit) = match class {
            Class::Interactive if principal.has_name() => {
                (self.interactive.share(principal), "share of the queue of a key")
            }
            Class::Interactive => (self.interactive.size as usize, "queue"),
            Class::Batch => (self.batch_size, "window of batch work"),
        };
        if requested > allowed {
            return Err(Refusal::TooLarge { limit, allowed, requested });
        }
        Ok(())
    }

    /// Returns how many of `tokens` interactive tokens a principal may queue at most, and whether there is room for them now. A
    /// closed gate says so when somebody comes.
    pub(super) fn expect_room(&self, principal: &Principal, tokens: usize) -> (usize, bool) {
        let window = &self.interactive;
        let share = window.share(principal);
        let (tokens, queued) = (tokens.min(share), window.by_principal().get(principal.name()).copied().unwrap_or(0));
        let is_room = window.permits.available_permits() >= tokens && queued + tokens <= share;
        (tokens, is_room || self.is_closed())
    }

    /// Returns the part of the queue that runs before another `tokens` tokens of a principal: it takes turns with others, so
    /// that it waits for as much of each as it has queued itself.
    pub(super) fn part_ahead(&self, class: Class, principal: &Principal, tokens: usize) -> f64 {
        let total = self.tokens(class);
        if class == Class::Batch || total == 0 {
            return 1.0;
        }
        let by_principal = self.interactive.by_principal();
        let queued = by_principal.get(principal.name()).copied().unwrap_or(0);
        let others = by_principal.len() - usize::from(queued > 0);
        let ahead = (queued + tokens).saturating_mul(others).saturating_add(queued);
        (ahead as f64 / total as f64).min(1.0)
    }

    /// Lets in all passes of the given lengths, or none; answers at once. The permits come in the order of `lengths`.
    pub(super) fn admit(
        &self,
        request: &Arc<RequestContext>,
        lengths: &[usize],
    ) -> Result<Vec<Permit>, TryAcquireError> {
        let window = self.window(request);
        let requested: usize = lengths.iter().sum();
        let permits = u32::try_from(requested).unwrap_or(u32::MAX);
        let mut all = Arc::clone(&window.permits).try_acquire_many_owned(permits)?;
        if request.class == Class::Interactive && !window.take_share(&request.principal, requested) {
            return Err(TryAcquireError::NoPermits);
        }
        // All parts come out of the whole, so none is ever missing.
        let permits = lengths
            .iter()
            .filter_map(|&tokens| Some(Permit::new(all.split(tokens)?, Arc::clone(&window), request, tokens)));
        Ok(permits.collect())
    }

    /// Lets in one pass as soon as its window has room for it, in order of asking. Fails where the gate is closed.
    pub(super) async fn admit_when_room(
        &self,
        request: &Arc<RequestContext>,
        tokens: usize,
    ) -> Result<Permit, AcquireError> {
        let window = self.window(request);
        let permits = Arc::clone(&window.permits).acquire_many_owned(window.cost(tokens)).await?;
        Ok(Permit::new(permits, window, request, tokens))
    }

    /// Tokens of the class admitted and not yet answered.
    pub(super) fn tokens(&self, class: Class) -> usize {
        let tokens = |window: &AdmissionWindow| window.tokens.load(Ordering::Relaxed);
        match class {
            Class::Interactive => tokens(&self.interactive),
            Class::Batch => self.batch().values().map(|window| tokens(window)).sum(),
        }
    }

    pub(super) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.batch().retain(|(id, _), _| is_there(id));
    }

    /// Lets nobody in from now on, and wakes those who wait.
    pub(super) fn close(&self) {
        self.interactive.permits.close();
        self.batch().values().for_each(|window| window.permits.close());
    }

    pub(super) fn is_closed(&self) -> bool {
        self.interactive.permits.is_closed()
    }
}

/// The estimated time of what a new pass of the class waits for: interactive work for interactive work, batch work for all.
/// `queues` are the models' records with the speeds at which their queues move. Models of unknown speed count nothing: it is
/// a lower bound, and what it lets through in vain the deadline catches.
pub(super) fn time_ahead(class: Class, queues: &[(Arc<ModelRecord>, Option<f64>)]) -> Duration {
    let times = queues.iter().filter_map(|(record, rate)| time_for(record.queued_up_to(class), *rate));
    times.fold(Duration::ZERO, Duration::saturating_add)
}
