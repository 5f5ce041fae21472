//! What the device threads share: the queue, the models' lifecycles, and what a thread is to do next. All of it lies
//! behind one lock that is never held while a model loads or runs.
//!
//! The rules by which a device chooses its next step, in order:
//!
//! 1. a model that drains and has no work left is dropped;
//! 2. what was ordered (eager models, loads by hand) is loaded, on every device of the model;
//! 3. the oldest work is served among the models that the device holds, and those that no device holds: such a one is
//!    loaded by the first device that comes to it.

mod model;
mod news;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::{Lead, Queue, Turn};
use super::device::Entry;
use super::meters::Meters;
use super::{Class, ModelSlot, ModelSource};

pub(super) use model::ModelBooks;
use news::UnloadWaiter;

/// What a device thread does next.
#[derive(Debug)]
pub(super) enum Step {
    /// Run these sequences of a model that it holds.
    Run(usize, Vec<Entry>),
    /// Load the model.
    Load(usize, Arc<ModelSource>),
    /// Drop the model.
    Drop(usize),
    /// End.
    End,
}

/// A device thread's own part in the choice of its next step.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) device: usize,
    pub(super) turn: Turn,
}

#[derive(Debug)]
pub(super) struct Books {
    pub(super) models: Vec<ModelBooks>,
    queue: Queue<Entry>,
    /// Whether its thread runs, by device.
    running: Vec<bool>,
    /// Whether threads without work end.
    finishing: bool,
    /// Whether all threads end after the step that each is at.
    stopped: bool,
}

impl Books {
    pub(super) fn new(slots: &[ModelSlot], devices: usize) -> Self {
        Self {
            models: slots.iter().map(ModelBooks::new).collect(),
            queue: Queue::new(slots.len(), Entry::tokens),
            running: vec![true; devices],
            finishing: false,
            stopped: false,
        }
    }

    /// Queues admitted sequences of a model. Where no thread is left to run them they are dropped.
    pub(super) fn push(&mut self, class: Class, model: usize, entries: Vec<Entry>) {
        let served = self.models[model].devices().any(|device| self.running[device]);
        if served && !self.stopped {
            for entry in entries {
                self.queue.push(class, model, entry);
            }
        }
    }

    /// Whether work waits for the model or is on its way to the queue.
    pub(super) fn is_in_use(&self, model: usize) -> bool {
        self.queue.holds(model) || self.models[model].is_leased()
    }

    /// Whether the model could be exchanged for another: it is nowhere, and nothing waits for it.
    pub(super) fn is_idle(&self, model: usize) -> bool {
        self.models[model].is_out() && !self.is_in_use(model)
    }

    /// What the device does next, none where there is nothing to do. `budget` gives the token budget of a model that
    /// the device holds.
    pub(super) fn step(
        &mut self,
        seat: &mut Seat,
        budget: impl Fn(usize) -> usize,
        now: Instant,
        meters: &Meters,
    ) -> Option<Step> {
        if self.stopped {
            return Some(Step::End);
        }
        // A thread that is woken in vain looks at fronts only.
        if self.lead(seat).is_some() {
            self.sweep(now, meters);
        }
        let step = self
            .drop_drained(seat.device)
            .or_else(|| self.load_ordered(seat.device))
            .or_else(|| self.serve(seat, budget, now))
            .or_else(|| self.end(seat.device));
        self.settle(meters);
        step
    }

    /// Refuses new work for the model and drops it when the rest is done; at once where there is nothing to do.
    pub(super) fn unload(&mut self, model: usize, waiter: UnloadWaiter) {
        self.models[model].drain(waiter);
        if self.is_idle(model) {
            self.models[model].settle();
        }
    }

    /// Ends every draining that is done.
    fn settle(&mut self, meters: &Meters) {
        for model in 0..self.models.len() {
            if self.models[model].is_draining() && self.is_idle(model) {
                self.models[model].settle();
                meters.models[model].unloads.increment(1);
            }
        }
    }

    fn drop_drained(&self, device: usize) -> Option<Step> {
        let drained = |model: &usize| {
            let books = &self.models[*model];
            books.is_draining() && books.is_resident(device) && !self.is_in_use(*model)
        };
        (0..self.models.len()).find(drained).map(Step::Drop)
    }

    fn load_ordered(&mut self, device: usize) -> Option<Step> {
        let model = self.models.iter().position(|model| model.is_ordered(device))?;
        self.load(model, device)
    }

    fn load(&mut self, model: usize, device: usize) -> Option<Step> {
        let source = self.models[model].begin(device)?;
        Some(Step::Load(model, source))
    }

    fn serve(&mut self, seat: &mut Seat, budget: impl Fn(usize) -> usize, now: Instant) -> Option<Step> {
        loop {
            let lead = self.lead(seat)?;
            let model = &self.models[lead.model];
            if model.is_resident(seat.device) {
                let batch = self.queue.take(lead, &mut seat.turn, budget(lead.model));
                return Some(Step::Run(lead.model, batch));
            }
            let Some(reason) = model.pause(now).map(str::to_owned) else {
                return self.load(lead.model, seat.device);
            };
            self.fail_waiting(lead.model, &reason);
        }
    }

    fn lead(&self, seat: &Seat) -> Option<Lead> {
        self.queue.lead(&seat.turn, |model| self.models[model].may_run_on(seat.device))
    }

    /// Drops what nobody waits for, wherever it stands in the queue, so that its room is free again. One pass over
    /// the queue a batch: a few nanoseconds an entry, against a forward pass.
    fn sweep(&mut self, now: Instant, meters: &Meters) {
        for entry in self.queue.extract(|entry| !entry.is_wanted(now)) {
            entry.discard(now, meters);
        }
    }

    /// Ends loading. Where it failed and no other replica is there or to come, all that wait for the model share its
    /// fate; each would only try in vain again.
    pub(super) fn end_load(
        &mut self,
        model: usize,
        device: usize,
        result: Result<(), String>,
        now: Instant,
        took: Duration,
    ) {
        self.models[model].end(device, result.clone(), now, took);
        if let Err(reason) = result
            && self.models[model].is_out()
        {
            self.fail_waiting(model, &reason);
        }
    }

    fn fail_waiting(&mut self, model: usize, reason: &str) {
        let waiting = self.queue.extract_model(model);
        self.models[model].fail(waiting, reason);
    }

    /// Told to finish, a thread without work that it may ever serve ends.
    fn end(&self, device: usize) -> Option<Step> {
        let works = |(model, books): (usize, &ModelBooks)| books.lives_on(device) && self.is_in_use(model);
        let works = self.models.iter().enumerate().any(works);
        (self.finishing && !works).then_some(Step::End)
    }

    /// Tells the threads to finish what is queued and end. Nothing is loaded any more but what queued work asks for.
    pub(super) fn finish(&mut self) {
        self.finishing = true;
        for model in &mut self.models {
            model.withdraw();
            model.forget_loaders();
        }
    }

    /// Ends the threads after the step that each is at, and drops all that waits for them.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        for model in 0..self.models.len() {
            drop(self.queue.extract_model(model));
            self.models[model].forget_waiters();
        }
    }

    /// Whether some thread has still to end by itself.
    pub(super) fn is_busy(&self) -> bool {
        !self.stopped && self.running.contains(&true)
    }

    /// Notes that a device's thread has ended.
    pub(super) fn end_thread(&mut self, device: usize) {
        self.running[device] = false;
        if !self.running.contains(&true) {
            self.stop();
        }
    }
}
