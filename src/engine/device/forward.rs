//! One forward pass and everything it may do instead of answering.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::Stats;
use crate::models::{CausalLm, ModelError};

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

/// Runs the model. An answer has one entry per sequence, and in it one per id but the first: anything else is a
/// failure, for nothing behind this could tell whose numbers are whose.
pub(super) fn forward(model: &dyn CausalLm, sequences: &[&[u32]]) -> Result<Vec<Stats>, Failure> {
    // A model that panics is used again: it is only read, and its next answer is checked like any other.
    let result = catch_unwind(AssertUnwindSafe(|| model.token_stats(sequences)));
    let stats = match result {
        Ok(Ok(stats)) => stats,
        Ok(Err(error)) => {
            let reason = error.to_string();
            return Err(match error {
                ModelError::OutOfMemory(_) => Failure::OutOfMemory(reason),
                ModelError::Device(_) => Failure::DeviceLost(reason),
                _ => Failure::Failed(reason),
            });
        }
        Err(panic) => {
            let reason = format!("the forward pass panicked: {}", panic_message(&*panic));
            return Err(Failure::Panicked(reason));
        }
    };
    let expected = sequences.iter().map(|ids| ids.len().saturating_sub(1));
    if !stats.iter().map(Vec::len).eq(expected) {
        let reason = "the forward pass answered with the wrong number of statistics";
        return Err(Failure::Failed(reason.to_owned()));
    }
    Ok(stats.into_iter().map(Arc::from).collect())
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
