//! Why a job cannot be had or queued, and why one failed: as it is stored and told to clients, without what is the operator's
//! business, which the log has.

use crate::access::QuotaExceeded;
use crate::datasets::DatasetError;
use crate::engine::{EngineError, Refusal};
use crate::pool::{AdapterError, OpenError};
use crate::scorer::ScorerError;
use crate::store::StoreError;
use lm::panics::panic_message;
use mia::methods::Fault;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt::Display;

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
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    pub kind: FailureKind,
    pub detail: String,
    /// Faults of the methods, with pointers relative to the list of methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// There is no such model, or no longer.
    UnknownModel,
    /// The model cannot do what is asked of it.
    WrongModel,
    /// Methods that the models do not fit.
    UnfitMethods,
    /// The scores cannot be compared with those of the calibration.
    UnfitCalibration,
    /// The control has the weights of the model that is asked about.
    ControlIsTarget,
    /// The texts cannot be tuned on.
    UnfitTexts,
    /// The model cannot be tuned so.
    UnfitSettings,
    /// The tuning left the range of numbers.
    NotFinite,
    ModelFailed,
    DeviceFailed,
    /// The files of a model changed while the job ran.
    ModelChanged,
    /// It needs more than there will ever be.
    TooLarge,
    /// The service was ending, or had no time or room.
    Unavailable,
    StoreFull,
    StoreFailed,
    /// The dataset was deleted.
    DatasetGone,
    /// Each process that ran it ended before it did.
    Abandoned,
    /// Its time was over.
    DeadlineExceeded,
    /// A fault of the service itself.
    Internal,
}

impl FailureRecord {
    /// A failure whose words are for the client.
    pub fn told(kind: FailureKind, failure: &impl Display) -> Self {
        Self { kind, detail: failure.to_string(), faults: Vec::new() }
    }

    /// A failure that tells the client only what failed.
    #[must_use]
    pub fn kept_back(kind: FailureKind, what: &str) -> Self {
        Self { kind, detail: format!("the {what} failed; the service's log says why"), faults: Vec::new() }
    }
}

/// Why a job that was accepted leaves nothing behind.
#[derive(Clone, Debug)]
pub struct JobFailure {
    /// Failure shown to clients.
    pub record: FailureRecord,
    /// Message for the log.
    pub message: String,
    /// True if the process cannot go on, so that another one has to run the job.
    pub ends_process: bool,
}

impl JobFailure {
    /// A failure whose words are for the client and the log.
    pub fn told(kind: FailureKind, failure: &impl Display) -> Self {
        Self::recorded(FailureRecord::told(kind, failure), failure)
    }

    /// A failure that tells the client only what failed; the log has the message.
    pub fn kept_back(kind: FailureKind, what: &str, failure: &impl Display) -> Self {
        Self::recorded(FailureRecord::kept_back(kind, what), failure)
    }

    /// A failure with what clients are told of it.
    pub fn recorded(record: FailureRecord, failure: &impl Display) -> Self {
        Self { record, message: failure.to_string(), ends_process: false }
    }

    /// The dataset was deleted.
    #[must_use]
    pub fn dataset_gone() -> Self {
        Self::told(FailureKind::DatasetGone, &"the dataset of the job is gone")
    }

    pub(super) fn abandoned(attempts: usize) -> Self {
        let what = format!("{attempts} processes that ran the job ended before it did; it is not tried again");
        Self::told(FailureKind::Abandoned, &what)
    }

    pub(super) fn overdue() -> Self {
        Self::told(FailureKind::DeadlineExceeded, &"the job did not end within its `timeout_seconds`")
    }

    pub(super) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let what = format!("the job panicked: {}", panic_message(payload));
        Self::kept_back(FailureKind::Internal, "service", &what)
    }

    /// The record as it is stored.
    pub(super) fn json(&self) -> String {
        // A record of texts has a form as JSON; were it otherwise, the log has the failure.
        serde_json::to_string(&self.record).unwrap_or_else(|_| r#"{"kind":"internal","detail":"?"}"#.to_owned())
    }
}

impl From<StoreError> for JobFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::told(FailureKind::StoreFull, &error),
            StoreError::Damaged(_) => {
                let detail = "what the store has of the job is damaged; the service's log names it";
                Self::recorded(FailureRecord::told(FailureKind::Internal, &detail), &error)
            }
            error => Self::kept_back(FailureKind::StoreFailed, "store", &error),
        }
    }
}

impl From<ScorerError> for JobFailure {
    fn from(error: ScorerError) -> Self {
        Self { ends_process: ends_process(&error), ..Self::recorded(record(&error), &error) }
    }
}

/// True if the process cannot go on, so that another one has to run the job.
fn ends_process(error: &ScorerError) -> bool {
    match error {
        ScorerError::Refused(refusal) => matches!(refusal, Refusal::DeviceLost(_) | Refusal::Draining),
        ScorerError::Failed(error) => matches!(error, EngineError::DeviceLost(_) | EngineError::ShuttingDown),
        _ => false,
    }
}

fn record(error: &ScorerError) -> FailureRecord {
    let told = |kind| FailureRecord::told(kind, error);
    let kept_back = FailureRecord::kept_back;
    match error {
        ScorerError::Unopened(
            OpenError::UnknownModel(_)
            | OpenError::Adapter(AdapterError::UnknownModel(_) | AdapterError::Unknown { .. }),
        ) => told(FailureKind::UnknownModel),
        ScorerError::Unopened(OpenError::Adapter(_)) => kept_back(FailureKind::ModelFailed, "adapter"),
        ScorerError::Unopened(_) => kept_back(FailureKind::ModelFailed, "model"),
        ScorerError::Masked(_) | ScorerError::CannotContinue { .. } => told(FailureKind::WrongModel),
        ScorerError::Unfit(faults) => FailureRecord { faults: faults.clone(), ..told(FailureKind::UnfitMethods) },
        ScorerError::Refused(refusal) => match refusal {
            Refusal::UnknownModel(_) => told(FailureKind::UnknownModel),
            Refusal::WrongKind { .. } => told(FailureKind::WrongModel),
            Refusal::TooLarge { .. } | Refusal::CannotMeetDeadline { .. } => told(FailureKind::TooLarge),
            Refusal::Busy { .. } | Refusal::Draining | Refusal::Unloading | Refusal::NotOpened(_) => {
                told(FailureKind::Unavailable)
            }
            Refusal::ModelFailed(_) | Refusal::Unanswered(_) => kept_back(FailureKind::ModelFailed, "model"),
            Refusal::DeviceLost(_) => kept_back(FailureKind::DeviceFailed, "device"),
        },
        ScorerError::Failed(error) => match error {
            EngineError::ModelFailed(_) | EngineError::LoadFailed(_) => kept_back(FailureKind::ModelFailed, "model"),
            EngineError::DeviceLost(_) => kept_back(FailureKind::DeviceFailed, "device"),
            EngineError::DeadlineExceeded | EngineError::Unloaded | EngineError::ShuttingDown => {
                told(FailureKind::Unavailable)
            }
        },
        // A job has no answer whose size is bounded.
        ScorerError::AnswerTooLong { .. } | ScorerError::NoMemory(_) | ScorerError::Internal(_) => {
            kept_back(FailureKind::Internal, "service")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_back_and_faults_survive_being_stored() {
        let panicked = JobFailure::panicked(&"a secret");
        assert_eq!(panicked.record.detail, "the service failed; the service's log says why");
        assert!(panicked.message.contains("a secret") && !panicked.json().contains("a secret"));
        let json = r#"{"kind":"unfit_methods","detail":"d","faults":[{"pointer":"/0","detail":"e"}]}"#;
        let record: FailureRecord = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
    }

    #[test]
    fn what_a_model_says_is_for_the_log() {
        let failure = JobFailure::from(ScorerError::Failed(EngineError::ModelFailed("a secret".to_owned())));
        assert_eq!(
            (failure.record.kind, &*failure.record.detail),
            (FailureKind::ModelFailed, "the model failed; the service's log says why")
        );
        assert!(failure.message.contains("a secret") && !failure.ends_process);
        let lost = ScorerError::Refused(Refusal::DeviceLost("gone".to_owned()));
        assert!(JobFailure::from(lost).ends_process);
    }
}
