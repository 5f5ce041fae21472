//! Choice of a device's next step. Pure: the queue and the models in, a step out; the caller holds both locks, and no longer than
//! that.
//!
//! The rules by which a device chooses its next step, in order:
//!
//! 1. a model that drains and has no work left is dropped;
//! 2. what was ordered (eager models, loads by hand) is loaded, on every device of the model;
//! 3. the oldest work is served among the models that the device holds, and those that no device holds: such a one is
//!    loaded by the first device that comes to it.
//!
//! Where two models share memory that only has room for one, the oldest work alternates between them, and every batch would
//! cost a load. So a device that had to evict a model to load another stays with the models that it holds for [`STAY`] times
//! as long as the load took: while a model that could be evicted has work as urgent as the work that leads, and the model of
//! the latter has no room beside them. A client never waits for the turn of an audit.

use super::error::EngineError;
use super::queue::Queue;
use super::queued::QueuedPass;
use super::request::Class;
use super::status::MOST_SILENCE;
use super::turn::{Lead, Turn};
use crate::pool::{Lifecycle, Model, Models};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that a device stays with the models that it holds after a load, in multiples of the time of that load.
const STAY: u32 = 4;

#[derive(Debug)]
pub(super) enum Step {
    /// Run these passes of a model that it holds, all under the same adapter or none.
    Run(Arc<str>, Vec<QueuedPass>),
    Load(Arc<str>, Arc<Model>),
    Drop(Arc<str>),
    Probe,
    End,
}

/// A device thread's own part in the choice of its next step.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) device: usize,
    turn: Turn,
    /// Until when it stays with the models that it holds.
    stays_until: Option<Instant>,
    /// Until when it runs nothing, since it did not answer.
    pub(super) paused_until: Option<Instant>,
}

impl Seat {
    pub(super) fn new(device: usize, max_batch_tokens: usize) -> Self {
        Self { device, turn: Turn::new(max_batch_tokens), stays_until: None, paused_until: None }
    }

    /// Notes the end of a load for which another model was evicted.
    pub(super) fn note_exchange(&mut self, now: Instant, took: Duration) {
        self.stays_until = took.checked_mul(STAY).and_then(|stay| now.checked_add(stay));
    }
}

/// A device's view of the models on it.
pub(super) trait Holdings {
    /// The token budget of a batch of a model that the device holds.
    fn budget(&self, model: &str) -> usize;

    /// Returns true if a model that it does not hold has room beside those that it does.
    fn has_room_for(&self, model: &Model) -> bool;
}

/// State that the device threads share beside the models: the queue, and whether it goes on.
#[derive(Debug)]
pub(super) struct Scheduler {
    queue: Queue<QueuedPass>,
    running: Vec<bool>,
    /// Since when each device takes nothing, since it does not answer.
    paused: Vec<Option<Instant>>,
    finishing: bool,
    stopped: bool,
}

impl Scheduler {
    pub(super) fn new(devices: usize) -> Self {
        let queue = Queue::new(QueuedPass::tokens, QueuedPass::batch_tokens, QueuedPass::principal);
        Self { queue, running: vec![true; devices], paused: vec![None; devices], finishing: false, stopped: false }
    }

    /// Queues admitted passes of one request. Where no thread is left to run them they are dropped.
    pub(super) fn push(&mut self, passes: Vec<QueuedPass>) {
        for pass in passes {
            let served = pass.request().model.devices.iter().any(|device| self.running[*device]);
            if served && !self.stopped {
                let (class, lane) = (pass.request().class, Arc::clone(&pass.request().lane));
                self.queue.push(class, &lane, pass);
            }
        }
    }

    /// Puts passes that a device took and did not answer before all others. Returns those that nobody waits for any more:
    /// a request is cancelled under the same lock. Once the engine has stopped, all of them are dropped.
    pub(super) fn put_back(&mut self, model: &Arc<str>, passes: Vec<QueuedPass>, now: Instant) -> Vec<QueuedPass> {
        if self.stopped {
            return Vec::new();
        }
        let (wanted, unwanted): (Vec<_>, Vec<_>) = passes.into_iter().partition(|pass| pass.is_wanted(now));
        for pass in wanted {
            self.queue.put_back(pass.request().class, model, pass);
        }
        unwanted
    }

    /// Notes whether a device takes nothing, since it does not answer.
    pub(super) fn set_paused(&mut self, device: usize, is_paused: bool, now: Instant) {
        self.paused[device] = is_paused.then(|| self.paused[device].unwrap_or(now));
    }

    fn take(&mut self, models: &Models, lead: &Lead, seat: &mut Seat, budget: usize) -> Vec<QueuedPass> {
        let Self { queue, paused, .. } = self;
        let runs = |id: &str| {
            models.get(id).is_some_and(|model| model.declaration().devices.iter().any(|at| paused[*at].is_none()))
        };
        queue.take(lead, &mut seat.turn, budget, runs)
    }

    pub(super) fn cancel(&mut self, class: Class, model: &str, request: u64) -> Vec<QueuedPass> {
        self.queue.extract(class, model, |pass| pass.request().number == request)
    }

    /// Returns the next step of the device; `None` if there is nothing to do.
    pub(super) fn step(
        &mut self,
        models: &mut Models,
        seat: &mut Seat,
        holdings: &impl Holdings,
        now: Instant,
    ) -> Option<Step> {
        if self.stopped {
            return Some(Step::End);
        }
        self.fail_unanswered(models, now);
        drop_drained(models, seat.device)
            .or_else(|| load_ordered(models, seat.device))
            .or_else(|| match seat.paused_until {
                None => self.serve(models, seat, holdings, now),
                Some(until) => (until <= now).then_some(Step::Probe),
            })
            .or_else(|| self.end(models, seat.device))
    }

    fn serve(&mut self, models: &mut Models, seat: &mut Seat, holdings: &impl Holdings, now: Instant) -> Option<Step> {
        loop {
            let lead = self.lead(models, seat, holdings, now)?;
            if models.get(&lead.model)?.is_resident(seat.device) {
                let batch = self.take(models, &lead, seat, holdings.budget(&lead.model));
                return Some(Step::Run(lead.model, batch));
            }
            let model = models.get_mut(&lead.model)?;
            let Some(reason) = model.pause(now).map(str::to_owned) else {
                let loaded = model.begin_load(seat.device)?;
                return Some(Step::Load(loaded.id().into(), loaded));
            };
            self.fail_waiting(&lead.model, &EngineError::LoadFailed(reason));
        }
    }

    /// A batch for a device that has not yet finished the one before it: a full one, since any other may grow until the
    /// device is free. None where something else comes first.
    pub(super) fn full_batch(
        &mut self,
        models: &Models,
        seat: &mut Seat,
        holdings: &impl Holdings,
        now: Instant,
    ) -> Option<Step> {
        let is_ordered = || models.iter().any(|(_, model)| model.is_ordered(seat.device));
        let is_paused = seat.paused_until.is_some();
        if self.stopped || is_paused || drop_drained(models, seat.device).is_some() || is_ordered() {
            return None;
        }
        let lead = self.lead(models, seat, holdings, now)?;
        let budget = holdings.budget(&lead.model);
        let is_resident = models.get(&lead.model)?.is_resident(seat.device);
        (is_resident && self.queue.fills(&lead, budget))
            .then(|| Step::Run(Arc::clone(&lead.model), self.take(models, &lead, seat, budget)))
    }

    fn lead(&self, models: &Models, seat: &Seat, holdings: &impl Holdings, now: Instant) -> Option<Lead> {
        let may_run = |model: &str| models.get(model).is_some_and(|model| model.may_run_on(seat.device));
        let is_resident = |model: &str| models.get(model).is_some_and(|model| model.is_resident(seat.device));
        let precedence = self.queue.precedence(&seat.turn, may_run);
        let lead = self.queue.lead(&seat.turn, &precedence, may_run)?;
        let stays = seat.stays_until.is_some_and(|until| now < until);
        let model = models.get(&lead.model).and_then(|model| model.model());
        let is_crowded_out = |model: &Arc<Model>| !is_resident(&lead.model) && !holdings.has_room_for(model);
        if !stays || !model.is_some_and(is_crowded_out) {
            return Some(lead);
        }
        let is_at_stake =
            |id: &str| is_resident(id) && models.get(id).is_some_and(|model| !model.declaration().stays());
        let urgent = |other: &Lead| other.class <= lead.class;
        let has_a_claim = self.queue.lead(&seat.turn, &precedence, is_at_stake).is_some_and(|other| urgent(&other));
        let resident =
            self.queue.lead(&seat.turn, &precedence, is_resident).filter(|other| has_a_claim && urgent(other));
        resident.or(Some(lead))
    }

    /// Ends loading. Where it failed and no other replica is there or to come, all that wait for the model share its
    /// fate; each would only try in vain again.
    pub(super) fn finish_load(
        &mut self,
        models: &mut Models,
        id: &str,
        device: usize,
        result: Result<(), String>,
        now: Instant,
        took: Duration,
    ) {
        let Some(model) = models.get_mut(id) else { return };
        model.finish_load(device, result.clone(), now, took);
        if let Err(reason) = result
            && model.is_absent()
        {
            self.fail_waiting(id, &EngineError::LoadFailed(reason));
        }
    }

    fn fail_waiting(&mut self, model: &str, error: &EngineError) {
        for pass in self.queue.extract_model(model) {
            pass.fail(error.clone());
        }
    }

    /// Fails what waits for a model that drains while none of its devices answers: it would drain for as long as that.
    fn fail_unanswered(&mut self, models: &Models, now: Instant) {
        let silent = |device: &usize| self.paused[*device].is_some_and(|since| now - since > MOST_SILENCE);
        let is_stuck = |model: &Lifecycle| model.is_draining() && model.declaration().devices.iter().all(silent);
        let stuck: Vec<Arc<str>> =
            models.iter().filter(|(_, model)| is_stuck(model)).map(|(id, _)| Arc::clone(id)).collect();
        for id in stuck {
            self.fail_waiting(&id, &EngineError::Unloaded);
        }
    }

    /// Told to finish, a thread without work that it may ever serve ends.
    fn end(&self, models: &Models, device: usize) -> Option<Step> {
        let has_work = models.iter().any(|(_, model)| model.devices().any(|own| own == device) && model.is_in_use());
        (self.finishing && !has_work).then_some(Step::End)
    }

    pub(super) fn finish(&mut self) {
        self.finishing = true;
    }

    /// Ends the threads after the step that each is at, and drops all that waits for them.
    pub(super) fn stop(&mut self, models: &mut Models) {
        self.stopped = true;
        self.queue.clear();
        models.forget_waiters();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Returns true if some thread has still to end by itself.
    pub(super) fn is_busy(&self) -> bool {
        !self.stopped && self.running.contains(&true)
    }

    /// Notes that a device's thread has ended.
    pub(super) fn end_thread(&mut self, models: &mut Models, device: usize) {
        self.running[device] = false;
        if !self.running.contains(&true) {
            self.stop(models);
        }
    }
}

fn drop_drained(models: &Models, device: usize) -> Option<Step> {
    let mut drained =
        models.iter().filter(|(_, model)| model.is_draining() && model.is_resident(device) && !model.is_in_use());
    drained.next().map(|(id, _)| Step::Drop(Arc::clone(id)))
}

fn load_ordered(models: &mut Models, device: usize) -> Option<Step> {
    let id = models.iter().find(|(_, model)| model.is_ordered(device)).map(|(id, _)| Arc::clone(id))?;
    let model = models.get_mut(&id)?.begin_load(device)?;
    Some(Step::Load(id, model))
}
