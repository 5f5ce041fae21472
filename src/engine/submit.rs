//! The way of a request into the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::class::Class;
use super::error::{EngineError, Refusal};
use super::handle::Engine;
use super::metrics::{RequestGuard, RequestOutcome};
use super::pending::{PendingRequest, before};
use super::queue::{Closed, Holder, NotAdmitted, Permit, QueuedPass, busy, judge_time, time_ahead};
use super::rate::time_for;
use super::record::ModelRecord;
use super::request::{Pass, Request};
use super::shared::Shared;
use crate::pool::{Lease, Model};

/// A request that may be admitted if there is room.
struct Checked {
    model: Arc<Model>,
    /// The id under which its passes wait.
    lane: Arc<str>,
    record: Arc<ModelRecord>,
    /// The passes that have to run.
    open: Vec<Arc<Pass>>,
    /// Number of passes answered from memory.
    cached: usize,
    /// None where nothing has to run.
    lease: Option<Lease>,
    caller: Caller,
}

impl Checked {
    /// Returns the holder to admit; `None` if nothing has to run.
    fn holder(&self) -> Option<Holder> {
        let lease = self.lease.clone()?;
        Some(Holder::new(Arc::clone(&self.record), lease, self.caller.clone()))
    }
}

impl Engine {
    /// Admits the whole request or refuses it, at once. What is cached or a duplicate needs no room.
    pub fn submit(&self, request: Request) -> Result<PendingRequest, Refusal> {
        let shared = self.shared();
        let guard = RequestGuard::new(Arc::clone(&shared.metrics), request.class);
        let admitted = check(shared, &request).and_then(|checked| Ok((admit(shared, &request, &checked)?, checked)));
        let (permits, checked) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                guard.settle(RequestOutcome::from(&refusal));
                return Err(refusal);
            }
        };
        checked.count_cache(&request);
        let (class, deadline) = (request.class, request.deadline);
        let (pending, reply) = checked.pend(request, shared, guard);
        let number = pending.number();
        let Checked { model, lane, open, .. } = checked;
        let queued =
            |(pass, permit)| QueuedPass::new(pass, Arc::clone(&model), number, permit, deadline, reply.clone());
        shared.push(class, &lane, &model.devices, open.into_iter().zip(permits).map(queued).collect());
        Ok(pending)
    }

    /// Refuses `tokens` tokens in `sequences` sequences if a request with them would be refused for lack of room or of time now:
    /// then they need not be made. Tokens beyond what an interactive request is allowed are not counted. Nothing is taken of the
    /// queue.
    ///
    /// # Errors
    /// [`Refusal::Busy`]
    pub fn expect_room(&self, request: &Request, tokens: usize, sequences: usize) -> Result<(), Refusal> {
        let shared = self.shared();
        let (tokens, is_room) = shared.gate.expect_room(&request.caller, tokens);
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
        RequestGuard::new(Arc::clone(&self.shared().metrics), class).settle(RequestOutcome::from(refusal));
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
        let checked = match check(shared, &request) {
            Ok(checked) => checked,
            Err(refusal) => {
                guard.settle(RequestOutcome::from(&refusal));
                return Err(refusal);
            }
        };
        checked.count_cache(&request);
        let (class, deadline) = (request.class, request.deadline);
        let (mut pending, reply) = checked.pend(request, shared, guard);
        // Without a holder there is nothing to feed.
        let Some(holder) = checked.holder() else { return Ok(pending) };
        let Checked { model, lane, open, .. } = checked;
        let devices = model.devices.clone();
        for pass in open {
            let room = shared.gate.admit_when_room(class, &holder, pass.input().tokens());
            match before(deadline, room).await {
                Some(Ok(permit)) => {
                    let (model, number) = (Arc::clone(&model), pending.number());
                    let queued = QueuedPass::new(pass, model, number, permit, deadline, reply.clone());
                    shared.push(class, &lane, &devices, vec![queued]);
                }
                Some(Err(Closed)) => pending.fail(shared.why_it_ended()),
                None => pending.fail(EngineError::DeadlineExceeded),
            }
            if pending.has_failed() {
                break;
            }
        }
        Ok(pending)
    }

    /// The request with what the cache on disk knows of it, looked up off the async threads. What is not looked up here is
    /// only found in memory. Where nothing is kept on disk this does nothing.
    pub async fn recall(&self, mut request: Request) -> Request {
        if !self.shared().cache.has_disk() {
            return request;
        }
        let shared = Arc::clone(self.shared());
        let passes: Vec<_> = request.open_passes().cloned().collect();
        let Some(key) = passes.first().map(|pass| Arc::clone(pass.cache_key())) else { return request };
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
    let (model, lease) = shared.pool.lease(&request.model, &request.identity)?;
    check_kind(&model, request)?;
    let longest = request.passes.iter().map(|pass| pass.input().tokens()).max();
    if let (Some(allowed), Some(requested)) = (model.context, longest)
        && requested > allowed
    {
        return Err(Refusal::TooLarge { limit: "model's context", allowed, requested });
    }
    let cached = request.open_passes().filter(|pass| shared.cache.answer(pass)).count();
    let open: Vec<Arc<Pass>> = request.open_passes().cloned().collect();
    if !open.is_empty()
        && request.class == Class::Interactive
        && let Some(reason) = shared.why_unanswered(&model.devices)
    {
        return Err(Refusal::Unanswered(reason));
    }
    // Cached passes are answered whatever becomes of the model.
    let lease = if open.is_empty() { None } else { Some(lease?) };
    let record = shared.record(model.base_id(), &model.devices);
    let (lane, caller) = (request.model.as_str().into(), request.caller.clone());
    Ok(Checked { lane, model, record, open, cached, lease, caller })
}

fn check_kind(model: &Model, request: &Request) -> Result<(), Refusal> {
    if request.passes.iter().any(|pass| pass.input().is_masked() != model.masked) {
        return Err(Refusal::WrongKind { model: request.model.clone(), masked: model.masked });
    }
    Ok(())
}

/// Admission of a whole request, by time and by tokens: a permit for everything that has to run.
fn admit(shared: &Shared, request: &Request, checked: &Checked) -> Result<Vec<Permit>, Refusal> {
    let Some(holder) = checked.holder() else { return Ok(Vec::new()) };
    let lengths: Vec<usize> = checked.open.iter().map(|pass| pass.input().tokens()).collect();
    let tokens = lengths.iter().sum();
    // First what no retry would change, then what one might.
    shared.gate.judge_size(request.class, &request.caller, tokens)?;
    let ahead = judge_wait(shared, request, tokens, lengths.len())?;
    let permits = shared.gate.admit(request.class, &holder, &lengths, ahead);
    permits.map_err(|error| match error {
        NotAdmitted::Full(refusal) => refusal,
        NotAdmitted::Closed => shared.why_it_refuses(),
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
    let alone = time_for(tokens, speed.rate.map(|rate| rate * width as f64));
    let part = shared.gate.part_ahead(request.class, &request.caller, tokens);
    let all = time_ahead(request.class, &speed.queues);
    // The longest time there is has no whole as a number of seconds.
    let ahead = if part < 1.0 { all.mul_f64(part) } else { all };
    judge_time(available, alone, ahead)?;
    Ok(ahead)
}

impl Checked {
    /// Counts what the cache did for an admitted request.
    fn count_cache(&self, request: &Request) {
        let metrics = &self.record.metrics;
        metrics.cache_hits.increment(self.cached as u64);
        metrics.cache_recalls.increment(request.recalled as u64);
        let missed = self.open.iter().filter(|pass| !pass.input().is_masked());
        metrics.cache_misses.increment(missed.count() as u64);
    }

    fn pend(
        &self,
        request: Request,
        shared: &Arc<Shared>,
        guard: RequestGuard,
    ) -> (PendingRequest, tokio::sync::mpsc::UnboundedSender<Result<(), EngineError>>) {
        let (run, cached) = (self.open.len(), self.cached + request.recalled);
        PendingRequest::new(request, run, cached, Arc::clone(shared), guard)
    }
}
