//! A model in a device's memory: running it, and what is learnt of it on the way.

use super::watch::PassWatch;
use crate::engine::error::Failure;
use crate::engine::queued::QueuedPass;
use crate::engine::record::ModelRecord;
use crate::engine::request::{Answer, PassInput};
use crate::pool::{Adapted, Model, largest_batch};
use lm::models::lora::{Adapter, LoadedAdapter};
use lm::models::masked::MaskedPosition;
use lm::models::{CausalLm, Continuation, Ending, GreedyPrompt, LoadedModel, MaskedLm, ModelError, Pending};
use lm::panics::panic_message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// After out-of-memory lowered a model's budget, each full batch that fits raises it by one part in this many: what
/// was scarce for a moment must not cost throughput for ever, and trying must be rare.
const BUDGET_RECOVERY: usize = 256;

/// A pass through streamed layers waits too long for them if that is more than one part in this many of its time.
const MOST_WAITING: u32 = 10;

/// Adapters that are kept on the device with their base.
const MOST_ADAPTERS: usize = 4;

pub(super) struct ResidentModel {
    loaded: LoadedModel,
    /// The adapters that batches were under last, the latest at the end.
    adapters: Vec<(Weak<Adapter>, LoadedAdapter)>,
    pub(super) model: Arc<Model>,
    pub(super) record: Arc<ModelRecord>,
    /// Its token budget of a batch: the limit, or less where that did not fit in memory.
    pub(super) budget: usize,
    /// Budget that fits beside the weights of the device's models by estimate, at most `wanted`.
    limit: usize,
    /// The budget it has where memory is no matter.
    wanted: usize,
    watch: Rc<PassWatch>,
}

impl ResidentModel {
    /// A model whose batches have `budget` tokens at first, and `wanted` at most.
    pub(super) fn new(
        mut loaded: LoadedModel,
        model: Arc<Model>,
        record: Arc<ModelRecord>,
        budget: usize,
        wanted: usize,
        watch: PassWatch,
    ) -> Self {
        let watch = Rc::new(watch);
        if let LoadedModel::Causal(loaded) = &mut loaded {
            let watch = Rc::clone(&watch);
            loaded.watch(Box::new(move |progress| watch.note(progress)));
        }
        Self { loaded, adapters: Vec::new(), model, record, budget, limit: wanted, wanted, watch }
    }

    /// Sets the limit of its batches, so that activations fit in `room` bytes; the new limit where it has changed and is less
    /// than what is wanted.
    pub(super) fn fit_to(&mut self, room: u64) -> Option<usize> {
        let limit = largest_batch(&*self.model.activation_bytes, room, self.wanted);
        let before = std::mem::replace(&mut self.limit, limit);
        self.budget = if self.budget == before { limit } else { self.budget.min(limit) };
        (limit != before && limit < self.wanted).then_some(limit)
    }

    /// The budget after a full batch. Where passes wait for layers to be read, a batch of twice the tokens takes little longer.
    fn raised(&self, took: Duration) -> usize {
        match self.model.is_streamed() {
            true if self.watch.waited() > took / MOST_WAITING => self.budget.saturating_mul(2),
            true => self.budget,
            false => self.budget.saturating_add(self.budget / BUDGET_RECOVERY + 1),
        }
    }

    pub(super) fn show_budget(&self, device: usize) {
        self.record.metrics.budgets[device].set(self.budget as f64);
    }

    /// The place of the adapter of these passes among those that are loaded; it is loaded now if it was not.
    fn adapter(&mut self, part: &[QueuedPass]) -> Result<Option<usize>, Failure> {
        // Adapters closed meanwhile leave the device.
        self.adapters.retain(|(adapter, _)| adapter.strong_count() > 0);
        let adapted = part.first().and_then(|pass| pass.request().model.adapted.as_ref());
        let Some(Adapted { adapter, .. }) = adapted else { return Ok(None) };
        let known = self.adapters.iter().position(|(known, _)| known.as_ptr() == Arc::as_ptr(adapter));
        let used = match known {
            Some(place) => self.adapters.remove(place),
            None => {
                let surplus = (self.adapters.len() + 1).saturating_sub(MOST_ADAPTERS);
                self.adapters.drain(..surplus);
                (Arc::downgrade(adapter), self.load_adapter(adapter)?)
            }
        };
        self.adapters.push(used);
        Ok(Some(self.adapters.len() - 1))
    }

    /// Where the device has no memory for it, the others make room; a smaller batch would not help.
    fn load_adapter(&mut self, adapter: &Adapter) -> Result<LoadedAdapter, Failure> {
        let load = || match &self.loaded {
            LoadedModel::Causal(model) => model.load_adapter(adapter),
            LoadedModel::Masked(_) => Err(ModelError::Forward("a masked model takes no adapters".into())),
        };
        match caught(load) {
            Err(Failure::OutOfMemory(_)) => {
                self.adapters.clear();
                caught(load).map_err(|failure| match failure {
                    Failure::OutOfMemory(reason) => Failure::Failed(format!("no memory for the adapter: {reason}")),
                    failure => failure,
                })
            }
            loaded => loaded,
        }
    }

    pub(super) fn probe(&self) -> Result<(), Failure> {
        caught(|| match &self.loaded {
            LoadedModel::Causal(model) => model.probe(),
            LoadedModel::Masked(_) => Ok(()),
        })
    }

    /// Begins a forward pass, under an adapter if there is one. There will be one answer per pass, of its kind, in order.
    pub(super) fn begin(&mut self, part: &[QueuedPass]) -> Result<Pending<Vec<Answer>>, Failure> {
        let inputs: Vec<&PassInput> = part.iter().map(QueuedPass::input).collect();
        let place = self.adapter(part)?;
        let adapter = place.map(|place| &self.adapters[place].1);
        self.watch.begin(part);
        let begun = caught(|| match &self.loaded {
            LoadedModel::Causal(model) => run(&**model, &inputs, adapter),
            LoadedModel::Masked(model) => fill(&**model, &inputs).map(Pending::Ready),
        });
        self.watch.end();
        begun
    }

    /// Notes how a forward pass went that has ended now: metrics, the model's speed and its budget.
    pub(super) fn note(
        &mut self,
        part: &[QueuedPass],
        result: &Result<Vec<Answer>, Failure>,
        now: Instant,
        took: Duration,
    ) {
        let tokens: usize = part.iter().map(QueuedPass::tokens).sum();
        self.record.metrics.note_forward(result, part.len(), tokens, took);
        self.record.note_use(now);
        match result {
            Ok(_) => {
                if tokens.saturating_mul(2) >= self.budget {
                    self.budget = self.raised(took).min(self.limit);
                }
                self.record.note_speed(tokens, self.budget, took, now);
                if self.model.is_streamed() {
                    self.record.note_pass(took, now);
                }
            }
            Err(failure) => {
                let (model, reason) = (self.model.id(), failure.reason());
                tracing::warn!(model, sequences = part.len(), tokens, reason, "a forward pass failed");
                if matches!(failure, Failure::OutOfMemory(_)) {
                    self.budget = (tokens / 2).clamp(1, self.budget);
                }
            }
        }
    }
}

/// The answers of a pass that has begun, as soon as they are there.
pub(super) fn finish(answers: Pending<Vec<Answer>>) -> Result<Vec<Answer>, Failure> {
    caught(|| answers.wait())
}

/// Returns the result of the model, or its failure. A model that panics is used again: it is only read, and its next answer is
/// checked like any other.
fn caught<T>(run: impl FnOnce() -> Result<T, ModelError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let reason = error.to_string();
            Err(match error {
                ModelError::OutOfMemory(_) => Failure::OutOfMemory(reason),
                ModelError::File { .. } => Failure::Unreadable(reason),
                ModelError::Cancelled => Failure::Cancelled(reason),
                ModelError::Device(_) => Failure::DeviceLost(reason),
                ModelError::Unavailable { had_batch, retry_after, .. } => {
                    Failure::Unavailable { reason, had_batch, retry_after }
                }
                _ => Failure::Failed(reason),
            })
        }
        Err(panic) => Err(Failure::Panicked(format!("the forward pass panicked: {}", panic_message(&*panic)))),
    }
}

/// Scores sequences in one forward pass and continues others in another, whichever of both there are.
fn run(
    model: &dyn CausalLm,
    inputs: &[&PassInput],
    adapter: Option<&LoadedAdapter>,
) -> Result<Pending<Vec<Answer>>, ModelError> {
    let is_prompt = |input: &&PassInput| input.prompt().is_some();
    let (prompts, sequences): (Vec<&PassInput>, Vec<&PassInput>) = inputs.iter().copied().partition(is_prompt);
    if prompts.is_empty() {
        return score(model, &sequences, adapter);
    }
    let continued = continue_greedily(model, &prompts, adapter)?;
    if sequences.is_empty() {
        return Ok(continued);
    }
    let kinds: Vec<bool> = inputs.iter().map(is_prompt).collect();
    score(model, &sequences, adapter)?.then(move |scored| {
        let (mut scored, mut continued) = (scored.into_iter(), continued.wait()?.into_iter());
        let answer = |is_prompt: bool| if is_prompt { continued.next() } else { scored.next() };
        Ok(kinds.into_iter().filter_map(answer).collect())
    })
}

/// Continues prompts, as [`score`] scores sequences. Each answer has one id at least and no more than are wanted; others are refused.
fn continue_greedily(
    model: &dyn CausalLm,
    inputs: &[&PassInput],
    adapter: Option<&LoadedAdapter>,
) -> Result<Pending<Vec<Answer>>, ModelError> {
    let prompts: Vec<&GreedyPrompt> = inputs.iter().filter_map(|input| input.prompt()).collect();
    let most: Vec<usize> = prompts.iter().map(|prompt| prompt.most).collect();
    model.begin_continuation(&prompts, adapter)?.then(move |continuations| {
        let goes_on = |(continuation, most): (&Continuation, &usize)| {
            let least = if continuation.ended == Ending::EndToken { 0 } else { 1 };
            (least..=*most).contains(&continuation.ids.len())
        };
        if continuations.len() != most.len() || !continuations.iter().zip(&most).all(goes_on) {
            return Err(ModelError::Forward("answered with the wrong number of ids".into()));
        }
        Ok(continuations.into_iter().map(Answer::Continued).collect())
    })
}

/// An answer has one entry per sequence, and in it one per id but the first: anything else is a failure, for nothing
/// behind this could tell whose numbers are whose.
fn score(
    model: &dyn CausalLm,
    inputs: &[&PassInput],
    adapter: Option<&LoadedAdapter>,
) -> Result<Pending<Vec<Answer>>, ModelError> {
    let sequences: Option<Vec<&[u32]>> = inputs.iter().map(|input| Some(&**input.sequence()?)).collect();
    let sequences = sequences.ok_or_else(|| ModelError::Forward("a causal model fills no masked positions".into()))?;
    let expected: Vec<usize> = sequences.iter().map(|ids| ids.len().saturating_sub(1)).collect();
    model.begin(&sequences, adapter)?.then(move |stats| {
        if !stats.iter().map(Vec::len).eq(expected) {
            return Err(ModelError::Forward("answered with the wrong number of statistics".into()));
        }
        Ok(stats.into_iter().map(|stats| Answer::Stats(Arc::from(stats))).collect())
    })
}

/// As [`score`]: an answer has one entry per masked position.
fn fill(model: &dyn MaskedLm, inputs: &[&PassInput]) -> Result<Vec<Answer>, ModelError> {
    let positions: Option<Vec<&MaskedPosition>> = inputs.iter().map(|input| input.masked_position()).collect();
    let positions = positions.ok_or_else(|| ModelError::Forward("a masked model scores no sequences".into()))?;
    let filled = model.fill(&positions)?;
    if filled.len() != positions.len() {
        return Err(ModelError::Forward("answered for the wrong number of masked positions".into()));
    }
    Ok(filled.into_iter().map(Answer::Filled).collect())
}
