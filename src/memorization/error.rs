//! Why there is no report.

use crate::jobs::{FailureKind, JobFailure};
use crate::scorer::ScorerError;
use crate::store::StoreError;

/// Reason why texts have no report.
#[derive(Debug, thiserror::Error)]
pub enum MemorizationError {
    /// The model or the service failed.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Numbers of the files of before and of those of now do not belong in one report.
    #[error("the files of model `{0}` changed meanwhile")]
    ModelChanged(String),
    /// Nothing tells which windows the model would complete greedily.
    #[error("the server of model `{0}` reports no most probable tokens, which windows are compared with")]
    WithoutFirstChoice(String),
    /// No window can run.
    #[error("a window of {prefix} + {suffix} tokens, with what the tokenizer puts before a text, has {fault}")]
    WindowTooLong {
        prefix: usize,
        suffix: usize,
        /// The number of tokens, and the maximum.
        fault: String,
    },
    /// No continuation can run.
    #[error(
        "a prefix of {prefix} tokens and a continuation of {tokens}, whose last takes no pass, with what the tokenizer puts before a text, are {fault}"
    )]
    ContinuationTooLong {
        prefix: usize,
        tokens: usize,
        /// The number of tokens, and the maximum.
        fault: String,
    },
    /// The report would be too long.
    #[error("the texts have {windows} windows; the limit of a job is {limit}; a larger `stride` makes fewer")]
    TooManyWindows { windows: usize, limit: usize },
    /// A work that counts twice is no second one.
    #[error("text {second} of the control is also text {first} of it; each work counts once")]
    SameControl { first: usize, second: usize },
    /// A text compared with itself shows nothing.
    #[error("text {control} of the control is also text {text} of those that it is to be compared with")]
    SameText { control: usize, text: usize },
}

impl MemorizationError {
    /// Returns true if a retry may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Scorer(error) => error.is_retryable(),
            Self::Store(error) => error.is_retryable(),
            Self::ModelChanged(_)
            | Self::WithoutFirstChoice(_)
            | Self::WindowTooLong { .. }
            | Self::ContinuationTooLong { .. }
            | Self::TooManyWindows { .. }
            | Self::SameControl { .. }
            | Self::SameText { .. } => false,
        }
    }
}

impl From<MemorizationError> for JobFailure {
    fn from(error: MemorizationError) -> Self {
        match error {
            MemorizationError::Scorer(error) => error.into(),
            MemorizationError::Store(error) => error.into(),
            MemorizationError::ModelChanged(_) => Self::told(FailureKind::ModelChanged, &error),
            MemorizationError::WithoutFirstChoice(_)
            | MemorizationError::WindowTooLong { .. }
            | MemorizationError::ContinuationTooLong { .. } => Self::told(FailureKind::UnfitSettings, &error),
            MemorizationError::SameControl { .. } | MemorizationError::SameText { .. } => {
                Self::told(FailureKind::UnfitTexts, &error)
            }
            MemorizationError::TooManyWindows { .. } => Self::told(FailureKind::TooLarge, &error),
        }
    }
}
