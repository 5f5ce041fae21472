//! The way of a request into the queue.

use std::sync::Arc;
use std::time::Instant;

use super::admission::{Closed, NoEntry, Share, judge_time, time_for};
use super::device::Entry;
use super::meters::{Outcome, RequestGuard};
use super::plan::Plan;
use super::shared::Shared;
use super::task::Task;
use super::ticket::before;
use super::{Engine, EngineError, ModelSource, Refusal, Request, Ticket};

/// Keeps a model from being unloaded while a request is on its way to the queue: what was let in is served.
struct Lease {
    shared: Arc<Shared>,
    model: usize,
}

impl Lease {
    /// What the model is, and a lease of it, unless it drains or failed to load a moment ago. None where it is not
    /// opened.
    fn new(shared: &Arc<Shared>, model: usize) -> Option<(Arc<ModelSource>, Result<Self, Refusal>)> {
        shared.with_books(|books| {
            let books = &mut books.models[model];
            let source = Arc::clone(books.source()?);
            let refusal = if books.is_draining() {
                Some(Refusal::Unloading)
            } else {
                books.pause(Instant::now()).map(|reason| Refusal::ModelFailed(reason.to_owned()))
            };
            let lease = refusal.map_or_else(
                || {
                    books.lease();
                    Ok(Self { shared: Arc::clone(shared), model })
                },
                Err,
            );
            Some((source, lease))
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.change(|books| books.models[self.model].give_back());
    }
}

/// A request that may be admitted if there is room.
struct Checked {
    model: usize,
    plan: Plan,
    /// None where nothing has to run.
    lease: Option<Lease>,
}

impl Engine {
    /// Admits the whole request or refuses it, at once. What is cached or a duplicate needs no room.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn submit(&self, work: impl Into<Request>) -> Result<Ticket, Refusal> {
        let (shared, work) = (&self.0.shared, work.into());
        let guard = RequestGuard::new(Arc::clone(&shared.meters), work.class);
        let admitted = self.check(&work).and_then(|checked| Ok((self.admit(&work, &checked)?, checked)));
        match admitted {
            Ok((shares, Checked { model, plan, lease })) => {
                shared.count_cache(model, &plan);
                let (ticket, pending, reply) = Ticket::new(plan, work.deadline, Arc::clone(shared), guard);
                let entries = pending
                    .into_iter()
                    .zip(shares)
                    .map(|((slot, task), share)| Entry::new(task, slot, share, work.deadline, reply.clone()));
                shared.push(work.class, model, entries.collect());
                drop(lease);
                Ok(ticket)
            }
            Err(refusal) => {
                guard.settle(Outcome::from(&refusal));
                Err(refusal)
            }
        }
    }

    /// Feeds the request into its class's window one sequence at a time, as room comes up, and returns when all of
    /// it is queued: the way of audits and of the command line, never refused for size. Dropping the future cancels
    /// the request.
    ///
    /// # Errors
    /// See [`Refusal`]; never [`Refusal::Busy`] or [`Refusal::CannotMeetDeadline`], and
    /// [`Refusal::TooLarge`] only for a sequence above the model's context.
    pub async fn submit_when_room(&self, work: impl Into<Request>) -> Result<Ticket, Refusal> {
        let (shared, work) = (&self.0.shared, work.into());
        let guard = RequestGuard::new(Arc::clone(&shared.meters), work.class);
        let Checked { model, plan, lease } = match self.check(&work) {
            Ok(checked) => checked,
            Err(refusal) => {
                guard.settle(Outcome::from(&refusal));
                return Err(refusal);
            }
        };
        shared.count_cache(model, &plan);
        let (mut ticket, pending, reply) = Ticket::new(plan, work.deadline, Arc::clone(shared), guard);
        for (slot, task) in pending {
            let room = shared.gate.admit_when_room(work.class, model, task.tokens());
            match before(work.deadline, room).await {
                Some(Ok(share)) => {
                    let entry = Entry::new(task, slot, share, work.deadline, reply.clone());
                    shared.push(work.class, model, vec![entry]);
                }
                Some(Err(Closed)) => ticket.fail(shared.why_it_ended()),
                None => ticket.fail(EngineError::DeadlineExceeded),
            }
            if ticket.has_failed() {
                break;
            }
        }
        drop(lease);
        Ok(ticket)
    }

    /// The request with what the disk's cache knows of it, looked up off the async threads. What is not looked up here is
    /// only found in memory. Where nothing is kept on disk this does nothing.
    pub async fn recall(&self, work: impl Into<Request>) -> Request {
        let mut work = work.into();
        if self.0.shared.cache.has_disk() && !work.masked {
            let (shared, identity) = (Arc::clone(&self.0.shared), Arc::clone(&work.identity));
            let sequences: Vec<_> = work.tasks.iter().filter_map(Task::shared_sequence).collect();
            let look_up = move || shared.cache.recall(&identity, &sequences);
            // Fails only where the runtime ends, and then nobody waits for an answer.
            work.recalled = tokio::task::spawn_blocking(look_up).await.unwrap_or_default();
        }
        work
    }

    /// Every check that does not depend on room, and the plan.
    fn check(&self, work: &Request) -> Result<Checked, Refusal> {
        let shared = &self.0.shared;
        if shared.gate.is_closed() {
            return Err(shared.why_it_refuses());
        }
        let model = shared.find(&work.model).map_err(|unknown| Refusal::UnknownModel(unknown.0))?;
        let opened = Lease::new(shared, model);
        let (source, lease) = opened.ok_or_else(|| Refusal::NotOpened(work.model.clone()))?;
        if source.identity != work.identity {
            // Its files were opened anew since the request looked: these ids may mean other tokens now.
            return Err(Refusal::NotOpened(work.model.clone()));
        }
        if source.masked != work.masked {
            return Err(Refusal::WrongKind { model: work.model.clone(), masked: source.masked });
        }
        let longest = work.tasks.iter().map(Task::tokens).max();
        if let (Some(allowed), Some(requested)) = (source.context, longest)
            && requested > allowed
        {
            return Err(Refusal::TooLarge { limit: "model's context", allowed, requested });
        }
        let plan = Plan::new(&work.tasks, |ids| shared.cache.get(&work.recalled, &source.identity, ids));
        // What is cached is answered whatever becomes of the model.
        let lease = if plan.pending.is_empty() { None } else { Some(lease?) };
        Ok(Checked { model, plan, lease })
    }

    /// Admission of a whole request, by time and by tokens: a share for everything that has to run.
    fn admit(&self, work: &Request, Checked { model, plan, .. }: &Checked) -> Result<Vec<Share>, Refusal> {
        if plan.pending.is_empty() {
            return Ok(Vec::new());
        }
        let (shared, model) = (&self.0.shared, *model);
        let lengths: Vec<usize> = plan.pending.iter().map(|(_, task)| task.tokens()).collect();
        let tokens = lengths.iter().sum();
        let now = Instant::now();
        let (rate, rates) = shared.rates(model, now);
        let available = work.deadline.map(|end| end.saturating_duration_since(now));
        // First what no retry would change, then what one might.
        shared.gate.judge_size(work.class, tokens)?;
        // One sequence runs on one device.
        let width = shared.width(model).min(lengths.len());
        let own = time_for(tokens, rate.map(|rate| rate * width as f64));
        judge_time(available, own, shared.gate.ahead(work.class, &rates))?;
        let shares = shared.gate.admit(work.class, model, &lengths, &rates);
        shares.map_err(|no| match no {
            NoEntry::Full(refusal) => refusal,
            NoEntry::Closed => shared.why_it_refuses(),
        })
    }
}
