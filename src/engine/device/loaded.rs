//! A model in a device's memory: running it, and what is learnt of it on the way.

use std::sync::Arc;
use std::time::Instant;

use super::entry::Entry;
use super::forward::{Failure, forward};
use crate::engine::ModelSource;
use crate::engine::admission::Rate;
use crate::engine::calibration::Pass;
use crate::engine::memory::largest_batch;
use crate::engine::shared::Shared;
use crate::engine::task::{Answer, Task};
use crate::models;

/// After out-of-memory lowered a model's budget, each full batch that fits raises it by one part in this many: what
/// was scarce for a moment must not cost throughput for ever, and trying must be rare.
const BUDGET_RECOVERY: usize = 256;

/// A model that is loaded.
pub(super) struct Loaded {
    model: models::LoadedModel,
    source: Arc<ModelSource>,
    /// Its token budget of a batch: the limit, or less where that did not fit in memory.
    budget: usize,
    /// What fits beside the weights of the device's models by estimate, at most what is wanted.
    limit: usize,
    /// The budget it has where memory is no matter, and where that comes from.
    wanted: usize,
    origin: Origin,
}

/// Where the budget that is wanted comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The device's own.
    Device,
    /// It was measured when the model was loaded.
    Measured,
    /// It was measured before.
    Remembered,
}

impl Origin {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Device => "configured",
            Self::Measured => "measured",
            Self::Remembered => "remembered",
        }
    }
}

impl Loaded {
    pub(super) fn new(model: models::LoadedModel, source: Arc<ModelSource>, wanted: usize) -> Self {
        Self { model, source, budget: wanted, limit: wanted, wanted, origin: Origin::Device }
    }

    pub(super) fn source(&self) -> &Arc<ModelSource> {
        &self.source
    }

    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// The budget it has where memory is no matter, and where that comes from.
    pub(super) fn wanted(&self) -> (usize, Origin) {
        (self.wanted, self.origin)
    }

    /// Sets the budget that is wanted. Batches have it from the next [`Loaded::fit_to`] on.
    pub(super) fn want(&mut self, tokens: usize, origin: Origin) {
        (self.wanted, self.origin) = (tokens, origin);
    }

    /// Sets the limit of its batches, so that activations fit in `room` bytes; the new limit where it has changed and is less
    /// than what is wanted.
    pub(super) fn fit_to(&mut self, room: u64) -> Option<usize> {
        let limit = largest_batch(&*self.source.activation_bytes, room, self.wanted);
        let before = std::mem::replace(&mut self.limit, limit);
        self.budget = if self.budget == before { limit } else { self.budget.min(limit) };
        (limit != before && limit < self.wanted).then_some(limit)
    }

    /// Sets the gauge of its budget.
    pub(super) fn show_budget(&self, model: usize, device: usize, shared: &Shared) {
        shared.meters.models[model].budgets[device].set(self.budget as f64);
    }

    /// Runs a pass whose answers nobody waits for.
    pub(super) fn rehearse(&self, texts: &[Task]) -> Result<Pass, Failure> {
        let tasks: Vec<&Task> = texts.iter().collect();
        let (tokens, started) = (texts.iter().map(Task::tokens).sum(), Instant::now());
        let result = forward(&self.model, &tasks);
        let took = started.elapsed();
        result?;
        tracing::debug!(tokens, seconds = took.as_secs_f64(), "a trial pass");
        Ok(Pass { tokens, took })
    }

    /// Runs one forward pass and notes how it went: facts, metrics, the model's speed and its budget.
    pub(super) fn forward(
        &mut self,
        part: &[Entry],
        model: usize,
        device: usize,
        shared: &Shared,
    ) -> Result<Vec<Answer>, Failure> {
        let started = Instant::now();
        shared.board.note(|facts| facts.devices[device].busy_since = Some(started));
        let tasks: Vec<&Task> = part.iter().map(Entry::task).collect();
        let result = forward(&self.model, &tasks);

        let (now, took) = (Instant::now(), started.elapsed());
        let tokens: usize = part.iter().map(Entry::tokens).sum();
        shared.meters.models[model].note_forward(&result, part.len(), tokens, took);
        match &result {
            Ok(_) if tokens.saturating_mul(2) >= self.budget => {
                let raised = self.budget.saturating_add(self.budget / BUDGET_RECOVERY + 1);
                self.budget = raised.min(self.limit);
            }
            Err(Failure::OutOfMemory(_)) => self.budget = (tokens / 2).clamp(1, self.budget),
            _ => {}
        }
        self.show_budget(model, device, shared);
        shared.board.note(|facts| {
            facts.devices[device].busy_since = None;
            let model = &mut facts.models[model];
            model.last_used = Some(now);
            match &result {
                Ok(_) => {
                    facts.last_ok = Some(now);
                    model.rate = Rate::observe(model.rate, tokens, self.budget, took, now);
                }
                Err(failure) => facts.last_error = Some((now, failure.reason().to_owned())),
            }
        });
        if let Err(failure) = &result {
            let (model, reason) = (&shared.models[model].id, failure.reason());
            tracing::warn!(model, sequences = part.len(), tokens, reason, "a forward pass failed");
        }
        result
    }
}
