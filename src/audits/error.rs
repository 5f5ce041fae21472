//! What an audit is refused for, and what it fails of.

use crate::scorer::ScorerError;
use std::any::Any;

/// Why an audit cannot be had, changed or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// Our own fault.
    #[error("the audit panicked: {0}")]
    Panicked(String),
}

impl AuditFailure {
    /// The failure of an audit that panicked with this.
    pub fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "no message".to_owned()))
    }
}
