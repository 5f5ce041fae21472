//! Why an audit failed, as it is stored and told to clients: without what is the operator's business, which the log has.

use super::error::AuditFailure;
use crate::engine::{EngineError, Refusal};
use crate::methods::Fault;
use crate::pool::OpenError;
use crate::scorer::ScorerError;
use serde::{Deserialize, Serialize};

/// Why an audit failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    pub kind: FailureKind,
    /// In words.
    pub detail: String,
    /// Faults of the methods, with pointers relative to the list of methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// There is no such model, or no longer.
    UnknownModel,
    /// The model cannot do what is asked of it.
    WrongModel,
    /// Methods that the models do not fit.
    UnfitMethods,
    /// The model failed.
    ModelFailed,
    /// The device failed.
    DeviceFailed,
    /// The files of a model changed while the audit ran.
    ModelChanged,
    /// A text needs more than there will ever be.
    TooLarge,
    /// The service was ending, or had no time.
    Unavailable,
    /// The disk of the store is full.
    StoreFull,
    /// The store failed.
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

impl From<&AuditFailure> for FailureRecord {
    fn from(failure: &AuditFailure) -> Self {
        let told = |kind| Self { kind, detail: failure.to_string(), faults: Vec::new() };
        let kept_back = |kind, what: &str| Self {
            kind,
            detail: format!("the {what} failed; the service's log says why"),
            faults: Vec::new(),
        };
        match failure {
            AuditFailure::Scorer(error) => match error {
                ScorerError::Unopened(OpenError::UnknownModel(_)) => told(FailureKind::UnknownModel),
                ScorerError::Unopened(_) => kept_back(FailureKind::ModelFailed, "model"),
                ScorerError::Masked(_) => told(FailureKind::WrongModel),
                ScorerError::Unfit(faults) => Self { faults: faults.clone(), ..told(FailureKind::UnfitMethods) },
                ScorerError::Refused(refusal) => match refusal {
                    Refusal::UnknownModel(_) => told(FailureKind::UnknownModel),
                    Refusal::WrongKind { .. } => told(FailureKind::WrongModel),
                    Refusal::TooLarge { .. } | Refusal::CannotMeetDeadline { .. } => told(FailureKind::TooLarge),
                    Refusal::Busy { .. } | Refusal::Draining | Refusal::Unloading | Refusal::NotOpened(_) => {
                        told(FailureKind::Unavailable)
                    }
                    Refusal::ModelFailed(_) => kept_back(FailureKind::ModelFailed, "model"),
                    Refusal::DeviceLost(_) => kept_back(FailureKind::DeviceFailed, "device"),
                },
                ScorerError::Failed(error) => match error {
                    EngineError::ModelFailed(_) | EngineError::LoadFailed(_) => {
                        kept_back(FailureKind::ModelFailed, "model")
                    }
                    EngineError::DeviceLost(_) => kept_back(FailureKind::DeviceFailed, "device"),
                    EngineError::DeadlineExceeded | EngineError::ShuttingDown => told(FailureKind::Unavailable),
                },
                ScorerError::TooDetailed { .. } | ScorerError::Internal(_) => {
                    kept_back(FailureKind::Internal, "service")
                }
            },
            AuditFailure::ModelChanged(_) => told(FailureKind::ModelChanged),
            AuditFailure::Store(crate::store::StoreError::Full) => told(FailureKind::StoreFull),
            AuditFailure::Store(_) => kept_back(FailureKind::StoreFailed, "store"),
            AuditFailure::DatasetGone => told(FailureKind::DatasetGone),
            AuditFailure::Abandoned(_) => told(FailureKind::Abandoned),
            AuditFailure::Overdue => told(FailureKind::DeadlineExceeded),
            AuditFailure::ForeignResults | AuditFailure::Panicked(_) => kept_back(FailureKind::Internal, "service"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_back_and_faults_survive_being_stored() {
        let failed = AuditFailure::Scorer(ScorerError::Failed(EngineError::ModelFailed("a secret".to_owned())));
        let record = FailureRecord::from(&failed);
        assert_eq!(
            (record.kind, &*record.detail),
            (FailureKind::ModelFailed, "the model failed; the service's log says why")
        );
        let panicked = FailureRecord::from(&AuditFailure::Panicked("a secret".to_owned()));
        assert!(!panicked.detail.contains("secret"));
        let json = r#"{"kind":"unfit_methods","detail":"d","faults":[{"pointer":"/0","detail":"e"}]}"#;
        let record: FailureRecord = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
    }
}
