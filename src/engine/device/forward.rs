//! One forward pass, and the failures that take the place of its answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::failure::Failure;
use crate::engine::request::{Answer, PassInput};
use crate::models::lora::{Adapter, LoadedAdapter};
use crate::models::masked::MaskedPosition;
use crate::models::{CausalLm, LoadedModel, MaskedLm, ModelError};
use crate::telemetry::panic_message;

/// Runs the model, under an adapter if there is one. There is one answer per input, of its kind, in order.
pub(super) fn forward(
    model: &LoadedModel,
    inputs: &[&PassInput],
    adapter: Option<&LoadedAdapter>,
) -> Result<Vec<Answer>, Failure> {
    caught(|| match model {
        LoadedModel::Causal(model) => score(&**model, inputs, adapter),
        LoadedModel::Masked(model) => fill(&**model, inputs),
    })
}

/// Brings an adapter to the device of its base.
pub(super) fn load_adapter(model: &LoadedModel, adapter: &Adapter) -> Result<LoadedAdapter, Failure> {
    caught(|| match model {
        LoadedModel::Causal(model) => model.load_adapter(adapter),
        LoadedModel::Masked(_) => Err(ModelError::Forward("a masked model takes no adapters".into())),
    })
}

/// What the model does, or how it fails. A model that panics is used again: it is only read, and its next answer is checked
/// like any other.
fn caught<T>(run: impl FnOnce() -> Result<T, ModelError>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let reason = error.to_string();
            Err(match error {
                ModelError::OutOfMemory(_) => Failure::OutOfMemory(reason),
                ModelError::Device(_) => Failure::DeviceLost(reason),
                _ => Failure::Failed(reason),
            })
        }
        Err(panic) => Err(Failure::Panicked(format!("the forward pass panicked: {}", panic_message(&*panic)))),
    }
}

/// An answer has one entry per sequence, and in it one per id but the first: anything else is a failure, for nothing
/// behind this could tell whose numbers are whose.
fn score(
    model: &dyn CausalLm,
    inputs: &[&PassInput],
    adapter: Option<&LoadedAdapter>,
) -> Result<Vec<Answer>, ModelError> {
    let sequences: Option<Vec<&[u32]>> = inputs.iter().map(|input| Some(&**input.sequence()?)).collect();
    let sequences = sequences.ok_or_else(|| ModelError::Forward("a causal model fills no masked positions".into()))?;
    let stats = match adapter {
        Some(adapter) => model.adapted_stats(&sequences, adapter)?,
        None => model.token_stats(&sequences)?,
    };
    let expected = sequences.iter().map(|ids| ids.len().saturating_sub(1));
    if !stats.iter().map(Vec::len).eq(expected) {
        return Err(ModelError::Forward("answered with the wrong number of statistics".into()));
    }
    Ok(stats.into_iter().map(|stats| Answer::Stats(Arc::from(stats))).collect())
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
