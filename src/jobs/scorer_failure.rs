//! Failures shown to clients for a job whose scoring failed; the log has the rest.

use super::failure::{FailureKind, FailureRecord, JobFailure};
use crate::engine::{EngineError, Refusal};
use crate::pool::{AdapterError, OpenError};
use crate::scorer::ScorerError;

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
        ScorerError::Masked(_) => told(FailureKind::WrongModel),
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
        ScorerError::AnswerTooLong { .. } | ScorerError::Internal(_) => kept_back(FailureKind::Internal, "service"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
