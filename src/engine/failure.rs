//! Why a forward pass has no answer.

use std::time::Duration;

/// Why a forward pass has no answer, in the words of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// A smaller batch may fit.
    OutOfMemory(String),
    /// The model failed on these sequences.
    Failed(String),
    /// The model's code panicked on these sequences.
    Panicked(String),
    /// The device gave no answer: the same sequences may run later, or on another device.
    Unavailable {
        reason: String,
        /// True if it had the sequences, which may then be the cause.
        had_batch: bool,
        /// The pause that it asks for.
        retry_after: Option<Duration>,
    },
    /// The device is not to be used again.
    DeviceLost(String),
}

impl Failure {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::OutOfMemory(reason)
            | Self::Failed(reason)
            | Self::Panicked(reason)
            | Self::Unavailable { reason, .. }
            | Self::DeviceLost(reason) => reason,
        }
    }

    /// The pause that the device asks for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
