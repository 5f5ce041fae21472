//! What clients are told of an audit that failed; the log has the rest.

use super::error::AuditFailure;
use crate::engine::{EngineError, Refusal};
use crate::jobs::{FailureKind, FailureRecord, JobFailure};
use crate::pool::{AdapterError, OpenError};
use crate::scorer::ScorerError;

impl From<AuditFailure> for JobFailure {
    fn from(failure: AuditFailure) -> Self {
        let ends_process = failure.ends_process();
        let failure = match failure {
            AuditFailure::Scorer(error) => Self::recorded(scorer_record(&error), &error),
            AuditFailure::ModelChanged(_) => Self::told(FailureKind::ModelChanged, &failure),
            AuditFailure::Store(error) => error.into(),
            AuditFailure::Tuning(error) => error.into(),
            AuditFailure::ForeignResults | AuditFailure::Unwritable(_) => {
                Self::kept_back(FailureKind::Internal, "service", &failure)
            }
        };
        Self { ends_process, ..failure }
    }
}

fn scorer_record(error: &ScorerError) -> FailureRecord {
    let told = |kind| FailureRecord::told(kind, error);
    let kept_back = FailureRecord::kept_back;
    match error {
        ScorerError::Unopened(
            OpenError::UnknownModel(_)
            | OpenError::Adapter(AdapterError::UnknownModel(_) | AdapterError::Unknown { .. }),
        ) => told(FailureKind::UnknownModel),
        ScorerError::Unopened(OpenError::Adapter(_)) => kept_back(FailureKind::ModelFailed, "adapter"),
        ScorerError::Unopened(_) => kept_back(FailureKind::ModelFailed, "model"),
        ScorerError::Masked(_) => told(FailureKind::WrongModel),
        ScorerError::Unfit(faults) => FailureRecord { faults: faults.clone(), ..told(FailureKind::UnfitMethods) },
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
            EngineError::ModelFailed(_) | EngineError::LoadFailed(_) => kept_back(FailureKind::ModelFailed, "model"),
            EngineError::DeviceLost(_) => kept_back(FailureKind::DeviceFailed, "device"),
            EngineError::DeadlineExceeded | EngineError::ShuttingDown => told(FailureKind::Unavailable),
        },
        ScorerError::TooDetailed { .. } | ScorerError::Internal(_) => kept_back(FailureKind::Internal, "service"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_is_for_the_log() {
        let failed = AuditFailure::Scorer(ScorerError::Failed(EngineError::ModelFailed("a secret".to_owned())));
        let failure = JobFailure::from(failed);
        assert_eq!(
            (failure.record.kind, &*failure.record.detail),
            (FailureKind::ModelFailed, "the model failed; the service's log says why")
        );
        assert!(failure.message.contains("a secret") && !failure.ends_process);
        let lost = AuditFailure::Scorer(ScorerError::Refused(Refusal::DeviceLost("gone".to_owned())));
        assert!(JobFailure::from(lost).ends_process);
    }
}
