//! What an audit is refused for, and what it fails of.

use crate::engine::{EngineError, Refusal};
use crate::scorer::ScorerError;
use crate::store::StoreError;
use std::any::Any;

/// Why an audit cannot be had, changed or made.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("there is no audit of this id")]
    NotFound,
    #[error("the audit has finished")]
    Finished,
    #[error("the audit has not finished; cancel it first")]
    Unfinished,
    #[error("{0} audits are queued or running, which is the limit")]
    Full(usize),
    #[error(
        "the audit asks for {scores} scores, samples times methods (16 more for each sample; 8 for each rate, method and \
         group, and for each position of a group's profile; 128 for each token listed); the limit is {limit}"
    )]
    TooManyScores { scores: usize, limit: usize },
    #[error(
        "the bootstrap would look at {draws} scores (replicates times samples times methods; a sample of a group counts \
         twice, and each group as one more sample for each rate asked for, and 1); the limit is {limit}"
    )]
    TooManyDraws { draws: u64, limit: u64 },
    #[error(
        "the bootstrap would keep {numbers} numbers (replicates times methods times rates asked for, and 1); the limit is \
         {limit}"
    )]
    TooManyNumbers { numbers: u64, limit: u64 },
    #[error("the service is shutting down")]
    Draining,
    /// The client used the same `Idempotency-Key` for something else.
    #[error("the `Idempotency-Key` belongs to an audit that was submitted with another body")]
    KeyReused,
    #[error("there is no dataset of this id")]
    UnknownDataset,
    #[error("an unfinished audit uses the dataset")]
    DatasetInUse,
    #[error(
        "the texts of the dataset were not retained: it was uploaded with `retain=false`, and an audit has used it"
    )]
    TextsGone,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Why an audit that was accepted has no report.
#[derive(Debug, thiserror::Error)]
pub enum AuditFailure {
    /// The model or the service failed.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// Scores of the files of before and of those of now do not belong in one report.
    #[error("the files of model `{0}` changed during the audit")]
    ModelChanged(String),
    /// The rows or columns of results do not fit the request, so they are results of another one.
    #[error("the results do not belong to the request of the audit")]
    ForeignResults,
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The dataset was deleted.
    #[error("the dataset of the audit is gone")]
    DatasetGone,
    /// Each process that ran it ended before the audit did.
    #[error("{0} processes that ran the audit ended before it did; it is not tried again")]
    Abandoned(usize),
    /// The time that the client gave it is over.
    #[error("the audit did not end within its `timeout_seconds`")]
    Overdue,
    /// Our own fault.
    #[error("the audit panicked: {0}")]
    Panicked(String),
}

impl AuditFailure {
    /// Whether the same may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Scorer(error) => error.is_retryable(),
            Self::Store(error) => error.is_retryable(),
            Self::ModelChanged(_)
            | Self::ForeignResults
            | Self::DatasetGone
            | Self::Abandoned(_)
            | Self::Overdue
            | Self::Panicked(_) => false,
        }
    }

    /// Whether the process cannot go on, so that another one has to run the audit.
    pub fn ends_process(&self) -> bool {
        match self {
            Self::Scorer(ScorerError::Refused(refusal)) => {
                matches!(refusal, Refusal::DeviceLost(_) | Refusal::Draining)
            }
            Self::Scorer(ScorerError::Failed(error)) => {
                matches!(error, EngineError::DeviceLost(_) | EngineError::ShuttingDown)
            }
            _ => false,
        }
    }

    /// The failure of an audit that panicked with this.
    pub fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    }
}
