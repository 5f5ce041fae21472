//! One model on the device thread: loading it, running it, and what is learnt of it on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::entry::Entry;
use super::forward::{Failure, forward, panic_message};
use crate::engine::admission::Rate;
use crate::engine::shared::Shared;
use crate::engine::status::ModelState;
use crate::engine::{ModelSource, Stats};
use crate::models::CausalLm;

/// After out-of-memory lowered a model's budget, each full batch that fits raises it by one part in this many: what
/// was scarce for a moment must not cost throughput for ever, and trying must be rare.
const BUDGET_RECOVERY: usize = 256;

/// A model as the device thread holds it.
pub(super) struct Slot {
    index: usize,
    source: ModelSource,
    model: Option<Box<dyn CausalLm>>,
    /// Its token budget of a batch: the configured one, or less where that did not fit in memory.
    budget: usize,
    max_batch_tokens: usize,
}

impl Slot {
    /// The model at `index` of the configuration, not loaded.
    pub(super) fn new(index: usize, source: ModelSource, max_batch_tokens: usize) -> Self {
        Self { index, source, model: None, budget: max_batch_tokens, max_batch_tokens }
    }

    pub(super) fn is_eager(&self) -> bool {
        self.source.eager
    }

    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// Runs one forward pass and notes how it went: facts, metrics, the model's speed and its budget. The model is
    /// loaded.
    pub(super) fn forward(&mut self, part: &[Entry], shared: &Shared) -> Result<Vec<Stats>, Failure> {
        let Some(model) = &self.model else {
            return Err(Failure::Failed("the model is not loaded".to_owned()));
        };
        let started = Instant::now();
        shared.board.note(|facts| facts.busy_since = Some(started));
        let sequences: Vec<&[u32]> = part.iter().map(|entry| &**entry.ids()).collect();
        let result = forward(model.as_ref(), &sequences);

        let (now, took) = (Instant::now(), started.elapsed());
        let tokens: usize = sequences.iter().map(|ids| ids.len()).sum();
        let meters = &shared.meters.models[self.index];
        meters.note_forward(&result, part.len(), tokens, took);
        match &result {
            Ok(_) if tokens.saturating_mul(2) >= self.budget => {
                let raised = self.budget.saturating_add(self.budget / BUDGET_RECOVERY + 1);
                self.budget = raised.min(self.max_batch_tokens);
            }
            Err(Failure::OutOfMemory(_)) => self.budget = (tokens / 2).clamp(1, self.budget),
            _ => {}
        }
        shared.board.note(|facts| {
            facts.busy_since = None;
            match &result {
                Ok(_) => {
                    facts.last_ok = Some(now);
                    let rate = &mut facts.models[self.index].rate;
                    *rate = Rate::observe(*rate, tokens, self.budget, took, now);
                }
                Err(failure) => facts.last_error = Some((now, failure.reason().to_owned())),
            }
        });
        if let Err(failure) = &result {
            let (model, reason) = (&self.source.id, failure.reason());
            tracing::warn!(model, sequences = part.len(), tokens, reason, "a forward pass failed");
        }
        result
    }

    /// Loads the model unless it is loaded, or failed to load a moment ago. The error is the reason in words.
    ///
    /// Whatever goes wrong here is the model's failure: were the device itself lost, the next forward pass would
    /// say so, and a file that cannot be read must not end a service that runs other models.
    pub(super) fn load(&mut self, shared: &Shared) -> Result<(), String> {
        if self.model.is_some() {
            return Ok(());
        }
        let started = Instant::now();
        let board = &shared.board;
        if let Some(reason) = board.read().models[self.index].refusal(started) {
            return Err(reason.to_owned());
        }
        board.announce(|facts| facts.models[self.index].state = ModelState::Loading);
        let loaded = match catch_unwind(AssertUnwindSafe(|| (self.source.load)())) {
            Ok(loaded) => loaded.map_err(|error| error.to_string()),
            Err(panic) => Err(format!("loading panicked: {}", panic_message(&*panic))),
        };
        let (now, took) = (Instant::now(), started.elapsed());
        let (id, seconds) = (&self.source.id, took.as_secs_f64());
        let meters = &shared.meters.models[self.index];
        match loaded {
            Ok(loaded) => {
                tracing::info!(model = id, seconds, "model loaded");
                meters.loads_ok.increment(1);
                self.model = Some(loaded);
                board.announce(|facts| facts.models[self.index].state = ModelState::Ready);
                Ok(())
            }
            Err(reason) => {
                tracing::error!(model = id, reason, "model failed to load");
                meters.loads_failed.increment(1);
                board.announce(|facts| {
                    facts.models[self.index].fail(reason.clone(), now, took);
                    facts.last_error = Some((now, reason.clone()));
                });
                Err(reason)
            }
        }
    }
}
