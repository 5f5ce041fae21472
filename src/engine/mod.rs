//! The pool that runs the models: requests for statistics of token sequences in,
//! [`TokenStats`](crate::token_stats::TokenStats) out.
//!
//! One device thread loads, runs and drops all models; everything else only talks to it through a queue. A request
//! passes four stations:
//!
//! 1. `plan`: equal sequences are merged, those in the `cache` answered;
//! 2. `admission`: the rest is let in whole or refused, by tokens and by the time it would take;
//! 3. `batch`: whenever the device is free, the oldest sequences form a batch; there is no waiting for more, for a
//!    batch grows while the device is busy;
//! 4. `device`: the batch runs, results go back through the request's `ticket`.
//!
//! Invariants:
//!
//! - the queue is never full: what is in it was admitted before, and no path that a client can reach panics;
//! - every admitted sequence is answered, dropped because its request no longer wants it, or lost with the engine,
//!   and in each case what it held goes back;
//! - health is read from facts that the device thread writes, never asked through the queue.

mod admission;
mod batch;
mod cache;
mod device;
mod error;
mod meters;
mod plan;
mod shared;
mod status;
mod ticket;
mod work;

#[cfg(test)]
mod tests;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use error::{EngineError, Refusal, StartError};
pub use status::{EngineStatus, ModelState, ModelStatus};
pub use ticket::{Output, Ticket};
pub use work::{Class, EngineSettings, Load, ModelSource, Stats, Work};

use admission::{NoEntry, Share, judge_time, time_for};
use device::{Entry, Message};
use meters::{Outcome, RequestGuard};
use plan::Plan;
use shared::Shared;
use ticket::before;

/// The handle of the engine; clones are handles of the same one.
///
/// When the last handle is gone, the device thread finishes what is queued and ends on its own;
/// [`Engine::shutdown`] is the way to wait for that.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    models: Vec<ModelInfo>,
    shared: Arc<Shared>,
    sender: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct ModelInfo {
    id: String,
    context: Option<usize>,
}

impl Engine {
    /// Starts the device thread and returns at once; the eager models load behind it, in order. Metrics go to the
    /// recorder installed now.
    ///
    /// # Errors
    /// [`StartError`] where the operating system refuses the threads.
    pub fn start(sources: Vec<ModelSource>, settings: EngineSettings) -> Result<Self, StartError> {
        let models = sources.iter().map(|source| ModelInfo { id: source.id.clone(), context: source.context });
        let models = models.collect();
        let shared = Arc::new(Shared::new(&sources, &settings));
        let (sender, inbox) = channel();
        let thread = device::spawn(sources, &settings, inbox, Arc::clone(&shared))?;
        Ok(Self(Arc::new(Inner { models, shared, sender, thread: Mutex::new(Some(thread)) })))
    }

    /// Admits the whole request or refuses it, at once. What is cached or a duplicate needs no room.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn submit(&self, work: Work) -> Result<Ticket, Refusal> {
        let guard = RequestGuard::new(Arc::clone(&self.0.shared.meters), work.class);
        match self.admit(&work) {
            Ok((model, plan, shares)) => {
                let shared = Arc::clone(&self.0.shared);
                shared.count_cache(model, &plan);
                let (ticket, pending, reply) = Ticket::new(plan, work.deadline, shared, guard);
                let entries = pending
                    .into_iter()
                    .zip(shares)
                    .map(|((slot, ids), share)| Entry::new(ids, slot, share, work.deadline, reply.clone()));
                self.send(entries.collect());
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
    /// # Errors See [`Refusal`]; never [`Refusal::Busy`] or [`Refusal::CannotMeetDeadline`], and
    /// [`Refusal::TooLarge`] only for a sequence above the model's context.
    pub async fn submit_when_room(&self, work: Work) -> Result<Ticket, Refusal> {
        let guard = RequestGuard::new(Arc::clone(&self.0.shared.meters), work.class);
        let (model, plan) = match self.check(&work) {
            Ok(checked) => checked,
            Err(refusal) => {
                guard.settle(Outcome::from(&refusal));
                return Err(refusal);
            }
        };
        let shared = Arc::clone(&self.0.shared);
        shared.count_cache(model, &plan);
        let (mut ticket, pending, reply) = Ticket::new(plan, work.deadline, Arc::clone(&shared), guard);
        for (slot, ids) in pending {
            let room = shared.gate.admit_when_room(work.class, model, ids.len());
            match before(work.deadline, room).await {
                Some(Ok(share)) => self.send(vec![Entry::new(ids, slot, share, work.deadline, reply.clone())]),
                Some(Err(admission::Closed)) => ticket.fail(shared.why_it_ended()),
                None => ticket.fail(EngineError::DeadlineExceeded),
            }
            if ticket.has_failed() {
                break;
            }
        }
        Ok(ticket)
    }

    /// Every check that does not depend on room, and the plan.
    fn check(&self, work: &Work) -> Result<(usize, Plan), Refusal> {
        let shared = &self.0.shared;
        if shared.gate.is_closed() {
            return Err(shared.why_it_refuses());
        }
        let mut models = self.0.models.iter().enumerate();
        let (index, model) = models
            .find(|(_, model)| model.id == work.model)
            .ok_or_else(|| Refusal::UnknownModel(work.model.clone()))?;
        let longest = work.sequences.iter().map(|ids| ids.len()).max();
        if let (Some(allowed), Some(requested)) = (model.context, longest)
            && requested > allowed
        {
            return Err(Refusal::TooLarge { limit: "model's context", allowed, requested });
        }
        let plan = Plan::new(&work.sequences, |ids| shared.cache.get(index, ids));
        if !plan.pending.is_empty()
            && let Some(reason) = shared.board.read().models[index].refusal(Instant::now())
        {
            return Err(Refusal::ModelFailed(reason.to_owned()));
        }
        Ok((index, plan))
    }

    /// Admission of a whole request, by time and by tokens.
    fn admit(&self, work: &Work) -> Result<(usize, Plan, Vec<Share>), Refusal> {
        let shared = &self.0.shared;
        let (model, plan) = self.check(work)?;
        if plan.pending.is_empty() {
            return Ok((model, plan, Vec::new()));
        }
        let lengths: Vec<usize> = plan.pending.iter().map(|(_, ids)| ids.len()).collect();
        let tokens = lengths.iter().sum();
        let now = Instant::now();
        let rates = shared.rates(now);
        let available = work.deadline.map(|end| end.saturating_duration_since(now));
        // First what no retry would change, then what one might.
        shared.gate.judge_size(work.class, tokens)?;
        let own = time_for(tokens, rates[model]);
        judge_time(available, own, shared.gate.ahead(work.class, &rates))?;
        let shares = shared.gate.admit(work.class, model, &lengths, &rates);
        let shares = shares.map_err(|no| match no {
            NoEntry::Full(refusal) => refusal,
            NoEntry::Closed => shared.why_it_refuses(),
        })?;
        Ok((model, plan, shares))
    }

    fn send(&self, entries: Vec<Entry>) {
        // Without a device thread the entries are dropped here, and the ticket says why.
        let _ = self.0.sender.send(Message::Work(entries));
    }

    /// The engine at a glance.
    pub fn status(&self) -> EngineStatus {
        self.0.shared.status(self.0.models.iter().map(|model| model.id.as_str()))
    }

    /// Whether requests are served as configured: the device thread runs, every eager model is loaded, nothing
    /// drains.
    pub fn is_ready(&self) -> bool {
        let open = !self.0.shared.gate.is_closed();
        let facts = self.0.shared.board.read();
        open && facts.alive && facts.lost.is_none() && facts.loaded()
    }

    /// Waits until every eager model is loaded.
    ///
    /// # Errors
    /// The failure of the first eager model that cannot be loaded, or what else ended the engine.
    pub async fn wait_until_loaded(&self) -> Result<(), EngineError> {
        let board = &self.0.shared.board;
        let answer = |facts: &status::Facts| {
            if let Some((model, reason)) = facts.failed() {
                let id = &self.0.models[model].id;
                Some(Err(EngineError::ModelFailed(format!("{id}: {reason}"))))
            } else if facts.loaded() {
                Some(Ok(()))
            } else if let Some(reason) = &facts.lost {
                Some(Err(EngineError::DeviceLost(reason.clone())))
            } else if !facts.alive {
                Some(Err(EngineError::ShuttingDown))
            } else {
                None
            }
        };
        board.wait_for(answer).await
    }

    /// Waits until the device is lost, and says why; for ever where it never is. Only a new process can help then.
    pub async fn device_lost(&self) -> String {
        self.0.shared.board.wait_for(|facts| facts.lost.clone()).await
    }

    /// Stops admitting, lets the device thread finish what is queued for at most `grace`, and waits for its end:
    /// what has not started by then fails with [`EngineError::ShuttingDown`]; the forward pass in flight, which
    /// nothing can stop, is waited for. Blocks. Calling it again waits for the same end.
    pub fn shutdown(&self, grace: Duration) {
        self.0.shared.gate.close();
        let until = Instant::now().checked_add(grace);
        let mut thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // Either fails only where the thread has ended already, which is what is wanted.
            let _ = self.0.sender.send(Message::Finish { until });
            let _ = thread.join();
        }
    }
}
