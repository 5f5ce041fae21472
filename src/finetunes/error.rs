//! Why a fine-tune gives no adapter.

use crate::engine::MemoryShortage;
use crate::jobs::{FailureKind, JobFailure};
use crate::pool::FindError;
use lm::models::ModelError;
use lm::models::tuning::TuningError;
use lm::tokenizer::TokenizerError;
use mia::methods::Fault;

#[derive(Debug, thiserror::Error)]
pub enum FinetuneError {
    /// A setting is out of range.
    #[error("{}", .0.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join("; "))]
    Settings(Vec<Fault>),
    /// There is nothing to learn from.
    #[error("there are {found} texts to tune on; it takes at least {fewest}")]
    TooFew { found: usize, fewest: usize },
    /// A text has no token that follows another.
    #[error("text {index} has {tokens} tokens; a text to tune on has at least 2")]
    TooShort { index: usize, tokens: usize },
    /// A text has a part for which the tokenizer has no token.
    #[error("text {index}: {error}")]
    Tokenizer { index: usize, error: TokenizerError },
    /// The files of the model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The files of the tokenizer cannot be used.
    #[error(transparent)]
    Files(#[from] TokenizerError),
    /// The tuning was refused, or failed.
    #[error(transparent)]
    Tuning(#[from] TuningError),
    /// The model is not there any more.
    #[error(transparent)]
    NoModel(#[from] FindError),
    /// The files of the model are others than when it was opened.
    #[error("the files of model `{0}` changed since it was opened")]
    ModelChanged(String),
    /// The texts are too long to be in memory together.
    #[error("the texts to tune on have more than {0} bytes")]
    TooManyBytes(u64),
    /// The device has too little memory.
    #[error("tuning {0}")]
    Memory(#[from] MemoryShortage),
    /// Our own fault.
    #[error("the adapter cannot be written: {0}")]
    Unwritable(String),
    /// The code that tunes panicked.
    #[error("tuning panicked: {0}")]
    Panicked(String),
}

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
