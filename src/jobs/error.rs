//! Errors of jobs.

use crate::datasets::DatasetError;
use crate::store::StoreError;

/// Why a job cannot be had, changed or queued. The first field is the name of its kind.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("there is no {0} of this id")]
    NotFound(&'static str),
    #[error("the {0} has finished")]
    Finished(&'static str),
    #[error("the {0} has not finished; cancel it first")]
    Unfinished(&'static str),
    #[error("{1} {0}s are queued or running, which is the limit")]
    Full(&'static str, usize),
    /// The second number is the part of all that one owner may have.
    #[error("{1} {0}s of this key are queued or running, which is the limit of a key")]
    OwnerFull(&'static str, usize),
    /// The job needs more than one may.
    #[error("{0}")]
    TooLarge(String),
    #[error("the service is shutting down")]
    Draining,
    /// The client used the same `Idempotency-Key` for something else.
    #[error("the `Idempotency-Key` belongs to a job that was submitted with another body")]
    KeyReused,
    /// An adapter has the name, or a fine-tune that has not ended.
    #[error("model `{model}` has an adapter `{name}` already, or a fine-tune that will give it one")]
    NameTaken { model: String, name: String },
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("internal error: {0}")]
    Internal(String),
}
