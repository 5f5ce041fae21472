//! One forward pass, from its beginning to its answers or the failure that takes their place.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::failure::Failure;
use crate::engine::request::{Answer, PassInput};
use lm::models::lora::{Adapter, LoadedAdapter};
use lm::models::masked::MaskedPosition;
use lm::models::{CausalLm, LoadedModel, MaskedLm, ModelError, Pending};
use lm::panics::panic_message;

/// Begins to run the model, under an adapter if there is one. There will be one answer per input, of its kind, in order.
pub(super) fn begin(
    model: &LoadedModel,
    inputs: &[&PassInput],
    adapter: Option<&LoadedAdapter>,
) -> Result<Pending<Vec<Answer>>, Failure> {
    caught(|| match model {
        LoadedModel::Causal(model) => score(&**model, inputs, adapter),
        LoadedModel::Masked(model) => fill(&**model, inputs).map(Pending::Ready),
    })
}

/// The answers of a pass that has begun, as soon as they are there.
pub(super) fn finish(answers: Pending<Vec<Answer>>) -> Result<Vec<Answer>, Failure> {
    caught(|| answers.wait())
}

/// Brings an adapter to the device of its base.
pub(super) fn load_adapter(model: &LoadedModel, adapter: &Adapter) -> Result<LoadedAdapter, Failure> {
    caught(|| match model {
        LoadedModel::Causal(model) => model.load_adapter(adapter),
        LoadedModel::Masked(_) => Err(ModelError::Forward("a masked model takes no adapters".into())),
    })
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

/// Checks that the device answers, if that is not certain.
pub(super) fn probe(model: &LoadedModel) -> Result<(), Failure> {
    caught(|| match model {
        LoadedModel::Causal(model) => model.probe(),
        LoadedModel::Masked(_) => Ok(()),
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
