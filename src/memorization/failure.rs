//! Errors of failed memorization jobs as clients see them; the log has the rest.

use super::error::MemorizationError;
use crate::jobs::{FailureKind, JobFailure};

impl From<MemorizationError> for JobFailure {
    fn from(error: MemorizationError) -> Self {
        match error {
            MemorizationError::Scorer(error) => error.into(),
            MemorizationError::Store(error) => error.into(),
            MemorizationError::ModelChanged(_) => Self::told(FailureKind::ModelChanged, &error),
            MemorizationError::WindowTooLong { .. } => Self::told(FailureKind::UnfitSettings, &error),
            MemorizationError::SameText { .. } => Self::told(FailureKind::UnfitTexts, &error),
            MemorizationError::TooManyWindows { .. } => Self::told(FailureKind::TooLarge, &error),
        }
    }
}
