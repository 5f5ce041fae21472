//! The way of a request into the queue, and from there to its answer. Dropping a [`PendingRequest`] cancels it: its passes that
//! are still in the queue are taken out, and their room is free.

use super::admission::{Permit, RequestContext, busy, judge_time, time_ahead};
use super::error::{EngineError, Refusal};
use super::handle::Engine;
use super::metrics::RequestGuard;
use super::queued::QueuedPass;
use super::record::time_for;
use super::request::{Class, Pass, Request};
use super::shared::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::TryAcquireError;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout_at;

/// Passes of an answered request, and their cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answered {
    /// The distinct passes of the request, each with its answer.
    pub passes: Vec<Arc<Pass>>,
    pub forward_passes: usize,
    /// Number of passes answered from the cache, in memory or on disk.
    pub cached_passes: usize,
    /// Time when the first of them began to run; `None` if none had to.
    pub begun: Option<Instant>,
}

/// An admitted request. Dropping it cancels what has not run yet.
#[must_use = "dropping a pending request cancels it"]
#[derive(Debug)]
pub struct PendingRequest {
    request: Request,
    number: u64,
    outstanding: usize,
    forward_passes: usize,
    cached_passes: usize,
    failure: Option<EngineError>,
    /// Only queued passes hold senders: when they are all gone and answers are missing, none will come.
    replies: UnboundedReceiver<Result<(), EngineError>>,
    shared: Arc<Shared>,
    guard: Option<RequestGuard>,
}

impl PendingRequest {
    /// Waits for the answers, but not beyond the request's deadline.
    ///
    /// # Errors
    /// The first error of any of its passes: a request succeeds whole or fails whole.
    pub async fn wait(mut self) -> Result<Answered, EngineError> {
        while self.outstanding > 0 && self.failure.is_none() {
            match before(self.request.deadline, self.replies.recv()).await {
                Some(Some(reply)) => self.take(reply),
                Some(None) => self.failure = Some(self.shared.why_it_ended()),
                None => self.failure = Some(EngineError::DeadlineExceeded),
            }
        }
        let outcome = self.failure.as_ref().map_or("ok", Into::into);
        if let Some(guard) = self.guard.take() {
            guard.settle(outcome);
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(Answered {
                begun: self.request.passes.iter().filter_map(|pass| pass.begun()).min(),
                passes: std::mem::take(&mut self.request.passes),
                forward_passes: self.forward_passes,
                cached_passes: self.cached_passes,
            }),
        }
    }

    /// Takes in what has come so far; returns true if the request has failed, so that feeding more of it is of no use.
    fn has_failed(&mut self) -> bool {
        while let Ok(reply) = self.replies.try_recv() {
            self.take(reply);
        }
        self.failure.is_some()
    }

    fn take(&mut self, reply: Result<(), EngineError>) {
        match reply {
            Ok(()) => self.outstanding = self.outstanding.saturating_sub(1),
            Err(error) => _ = self.failure.get_or_insert(error),
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.outstanding > 0 {
            // Closed first: what a device takes up meanwhile is not wanted any more.
            self.replies.close();
            self.shared.cancel(self.request.class, &self.request.model, self.number);
        }
    }
}

/// Waits for the future, but not beyond the deadline; returns `None` if the deadline comes first.
async fn before<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}

/// A request that may be admitted if there is room.
struct Checked {
    context: Arc<RequestContext>,
    /// The passes that have to run.
    open: Vec<Arc<Pass>>,
    /// Number of passes answered from memory.
    cached: usize,
    replies: UnboundedReceiver<Result<(), EngineError>>,
}

impl Engine {
    /// Admits the whole request or refuses it, at once. What is cached or a duplicate needs no room.
    pub fn submit(&self, request: Request) -> Result<PendingRequest, Refusal> {
        let shared = self.shared();
        let guard = RequestGuard::new(Arc::clone(&shared.metrics), request.class);
        let admitted = check(shared, &request).and_then(|checked| Ok((admit(shared, &request, &checked)?, checked)));
        let ((permits, checked), guard) = guard.unless_refused(admitted)?;
        let (pending, open) = checked.pend(request, shared, guard);
        shared.push(open.into_iter().zip(permits).map(|(pass, permit)| QueuedPass::new(pass, permit)).collect());
        Ok(pending)
    }

    /// Refuses `tokens` tokens in `sequences` sequences if a request with them would be refused for lack of room or of time now:
    /// then they need not be made. Tokens beyond what an interactive request is allowed are not counted. Nothing is taken of the
    /// queue.
    pub fn expect_room(&self, request: &Request, tokens: usize, sequences: usize) -> Result<(), Refusal> {
        let shared = self.shared();
        let (tokens, is_room) = shared.gate.expect_room(&request.principal, tokens);
        let judged = judge_wait(shared, request, tokens, sequences);
        match judged {
            Err(refusal @ Refusal::Busy { .. }) => Err(refusal),
            Ok(ahead) if !is_room => Err(busy(ahead)),
            // Permanent faults are reported by the request itself.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts a request that ends with this refusal before it is submitted.
    pub fn count_refusal(&self, class: Class, refusal: &Refusal) {
        RequestGuard::new(Arc::clone(&self.shared().metrics), class).settle(refusal.into());
    }

    /// Feeds the request into its class's window one pass at a time, as room comes up, and returns when all of it is
    /// queued: the way of audits and of the command line, never refused for size. Dropping the future cancels the request.
    ///
    /// # Errors
    /// See [`Refusal`]; never [`Refusal::Busy`] or [`Refusal::CannotMeetDeadline`], and
    /// [`Refusal::TooLarge`] only for a sequence above the model's context.
    pub async fn submit_when_room(&self, request: Request) -> Result<PendingRequest, Refusal> {
        let shared = self.shared();
        let guard = RequestGuard::new(Arc::clone(&shared.metrics), request.class);
        let (checked, guard) = guard.unless_refused(check(shared, &request))?;
        let context = Arc::clone(&checked.context);
        let (mut pending, open) = checked.pend(request, shared, guard);
        for pass in open {
            let room = shared.gate.admit_when_room(&context, pass.input.tokens());
            match before(context.deadline, room).await {
                Some(Ok(permit)) => shared.push(vec![QueuedPass::new(pass, permit)]),
                Some(Err(_)) => pending.take(Err(shared.why_it_ended())),
                None => pending.take(Err(EngineError::DeadlineExceeded)),
            }
            if pending.has_failed() {
                break;
            }
        }
        Ok(pending)
    }

    /// Returns the request with what the cache on disk knows of it, looked up off the async threads. What is in memory is left for
    /// admission. Where nothing is kept on disk this does nothing.
    pub async fn recall(&self, mut request: Request) -> Request {
        let shared = Arc::clone(self.shared());
        let passes = shared.cache.to_recall(&request.cache_key, request.open_passes());
        if passes.is_empty() {
            return request;
        }
        let key = Arc::clone(&request.cache_key);
        let look_up = move || shared.cache.recall(&key, &passes);
        // Fails only where the runtime ends, and then nobody waits for an answer.
        request.recalled += tokio::task::spawn_blocking(look_up).await.unwrap_or_default();
        request
    }
}

/// Every check that does not depend on room; answers what the memory knows.
fn check(shared: &Shared, request: &Request) -> Result<Checked, Refusal> {
    if shared.gate.is_closed() {
        return Err(shared.why_it_refuses());
    }
    let leased = shared.pool.lease(&request.model, &request.identity)?;
    let (model, lease) = leased.ok_or_else(|| Refusal::NotOpened(request.model.clone()))?;
    if request.passes.iter().any(|pass| pass.input.is_masked() != model.masked) {
        return Err(Refusal::WrongKind { model: request.model.clone(), masked: model.masked });
    }
    let longest = request.passes.iter().map(|pass| pass.input.tokens()).max();
    if let (Some(allowed), Some(requested)) = (model.context, longest)
        && requested > allowed
    {
        return Err(Refusal::TooLarge { limit: "model's context", allowed, requested });
    }
    let cached = request.open_passes().filter(|pass| shared.cache.answer(&request.cache_key, pass)).count();
    let open: Vec<Arc<Pass>> = request.open_passes().cloned().collect();
    if !open.is_empty()
        && request.class == Class::Interactive
        && let Some(reason) = shared.why_unanswered(&model.devices)
    {
        return Err(Refusal::Unanswered(reason));
    }
    // Cached passes are answered whatever becomes of the model.
    let lease = if open.is_empty() { None } else { Some(lease?) };
    let (reply, replies) = unbounded_channel();
    let context = RequestContext {
        number: shared.number_request(),
        lane: request.model.as_str().into(),
        record: shared.record(model.base_id(), &model.devices),
        model,
        principal: request.principal.clone(),
        cache_key: Arc::clone(&request.cache_key),
        class: request.class,
        deadline: request.deadline,
        reply,
        _lease: lease,
    };
    Ok(Checked { context: Arc::new(context), open, cached, replies })
}

/// Admission of a whole request, by time and by tokens: a permit for everything that has to run.
fn admit(shared: &Shared, request: &Request, checked: &Checked) -> Result<Vec<Permit>, Refusal> {
    if checked.open.is_empty() {
        return Ok(Vec::new());
    }
    let lengths: Vec<usize> = checked.open.iter().map(|pass| pass.input.tokens()).collect();
    let tokens = lengths.iter().sum();
    // First what no retry would change, then what one might.
    shared.gate.judge_size(request.class, &request.principal, tokens)?;
    let ahead = judge_wait(shared, request, tokens, lengths.len())?;
    shared.gate.admit(&checked.context, &lengths).map_err(|error| match error {
        TryAcquireError::NoPermits => busy(ahead),
        TryAcquireError::Closed => shared.why_it_refuses(),
    })
}

/// Checks that `tokens` tokens in `sequences` sequences can be done in the time of the request, and returns the estimated time of
/// what is queued before them.
fn judge_wait(shared: &Shared, request: &Request, tokens: usize, sequences: usize) -> Result<Duration, Refusal> {
    let now = Instant::now();
    let unknown = || Refusal::UnknownModel(request.model.clone());
    let speed = shared.speed_for(&request.model, now).ok_or_else(unknown)?;
    let available = request.deadline.map(|end| end.saturating_duration_since(now));
    // One sequence runs on one device.
    let width = speed.width.min(sequences);
    let alone = time_for(tokens, speed.rate.map(|rate| rate * width as f64)).max(speed.pass);
    let part = shared.gate.part_ahead(request.class, &request.principal, tokens);
    let all = time_ahead(request.class, &speed.queues);
    // The longest time there is has no whole as a number of seconds.
    let ahead = if part < 1.0 { all.mul_f64(part) } else { all };
    judge_time(available, alone, ahead)?;
    Ok(ahead)
}

impl Checked {
    /// Counts what the cache did for an admitted request, and returns it with the passes to queue.
    fn pend(self, request: Request, shared: &Arc<Shared>, guard: RequestGuard) -> (PendingRequest, Vec<Arc<Pass>>) {
        let metrics = &self.context.record.metrics;
        metrics.cache_hits.increment(self.cached as u64);
        metrics.cache_recalls.increment(request.recalled as u64);
        metrics.cache_misses.increment(self.open.iter().filter(|pass| pass.input.sequence().is_some()).count() as u64);
        let pending = PendingRequest {
            number: self.context.number,
            outstanding: self.open.len(),
            forward_passes: self.open.len(),
            cached_passes: self.cached + request.recalled,
            request,
            failure: None,
            replies: self.replies,
            shared: Arc::clone(shared),
            guard: Some(guard),
        };
        (pending, self.open)
    }
}
