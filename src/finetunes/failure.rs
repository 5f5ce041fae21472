//! Errors of failed fine-tunes as clients see them; the log has the rest.

use super::error::FinetuneError;
use crate::jobs::{FailureKind, JobFailure};
use lm::models::tuning::TuningError;

impl From<FinetuneError> for JobFailure {
    fn from(error: FinetuneError) -> Self {
        let told = |kind| Self::told(kind, &error);
        match &error {
            FinetuneError::TooFew { .. }
            | FinetuneError::TooShort { .. }
            | FinetuneError::Tokenizer { .. }
            | FinetuneError::TooManyBytes(_) => told(FailureKind::UnfitTexts),
            FinetuneError::Tuning(TuningError::TooFew { .. }) => told(FailureKind::UnfitTexts),
            FinetuneError::Tuning(TuningError::NotFinite { .. }) => told(FailureKind::NotFinite),
            FinetuneError::Tuning(TuningError::Unsupported(_)) | FinetuneError::Settings(_) => {
                told(FailureKind::UnfitSettings)
            }
            FinetuneError::ModelChanged(_) => told(FailureKind::ModelChanged),
            FinetuneError::NoModel(_) => told(FailureKind::UnknownModel),
            FinetuneError::Memory(_) => told(FailureKind::TooLarge),
            FinetuneError::Tuning(TuningError::Stopped) => told(FailureKind::Unavailable),
            FinetuneError::Tuning(TuningError::Model(_)) | FinetuneError::Model(_) | FinetuneError::Files(_) => {
                Self::kept_back(FailureKind::ModelFailed, "model", &error)
            }
            FinetuneError::Panicked(_) | FinetuneError::Unwritable(_) => {
                Self::kept_back(FailureKind::Internal, "service", &error)
            }
        }
    }
}
