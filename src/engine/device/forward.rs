//! One forward pass and everything it may do instead of answering.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::task::{Answer, Task};
use crate::models::masked::MaskedPosition;
use crate::models::{CausalLm, LoadedModel, MaskedLm, ModelError};

/// Why a forward pass has no answer, in the words of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Failure {
    /// A smaller batch may fit.
    OutOfMemory(String),
    /// The model failed on these sequences.
    Failed(String),
    /// The model's code panicked on these sequences.
    Panicked(String),
    /// The device is not to be used again.
    DeviceLost(String),
}

impl Failure {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::OutOfMemory(reason) | Self::Failed(reason) | Self::Panicked(reason) | Self::DeviceLost(reason) => {
                reason
            }
        }
    }
}

/// Runs the model. There is one answer per task, of its kind, in order.
pub(super) fn forward(model: &LoadedModel, tasks: &[&Task]) -> Result<Vec<Answer>, Failure> {
    // A model that panics is used again: it is only read, and its next answer is checked like any other.
    let result = catch_unwind(AssertUnwindSafe(|| match model {
        LoadedModel::Causal(model) => score(&**model, tasks),
        LoadedModel::Masked(model) => fill(&**model, tasks),
    }));
    match result {
        Ok(Ok(answers)) => Ok(answers),
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
fn score(model: &dyn CausalLm, tasks: &[&Task]) -> Result<Vec<Answer>, ModelError> {
    let sequences: Option<Vec<&[u32]>> = tasks.iter().map(|task| task.sequence()).collect();
    let sequences = sequences.ok_or_else(|| ModelError::Forward("a causal model fills no blanks".into()))?;
    let stats = model.token_stats(&sequences)?;
    let expected = sequences.iter().map(|ids| ids.len().saturating_sub(1));
    if !stats.iter().map(Vec::len).eq(expected) {
        return Err(ModelError::Forward("answered with the wrong number of statistics".into()));
    }
    Ok(stats.into_iter().map(|stats| Answer::Stats(Arc::from(stats))).collect())
}

/// As [`score`]: an answer has one entry per blank.
fn fill(model: &dyn MaskedLm, tasks: &[&Task]) -> Result<Vec<Answer>, ModelError> {
    let blanks: Option<Vec<&MaskedPosition>> = tasks.iter().map(|task| task.blank()).collect();
    let blanks = blanks.ok_or_else(|| ModelError::Forward("a masked model scores no sequences".into()))?;
    let filled = model.fill(&blanks)?;
    if filled.len() != blanks.len() {
        return Err(ModelError::Forward("answered for the wrong number of blanks".into()));
    }
    Ok(filled.into_iter().map(Answer::Filled).collect())
}

/// The message of a panic.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else {
        "no message"
    }
}
