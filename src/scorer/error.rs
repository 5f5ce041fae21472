//! Which errors of the scorer pass by themselves.

use super::ScorerError;
use crate::engine::{EngineError, Refusal};
use crate::pool::OpenError;
use lm::models::ModelError;

impl ScorerError {
    /// Whether the same may succeed a moment later, without anybody's doing: there is no room now, or the model is being
    /// unloaded or opened anew, or its server elsewhere does not answer.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => match refusal {
                Refusal::Busy { .. } | Refusal::Unloading | Refusal::NotOpened(_) | Refusal::Unanswered(_) => true,
                Refusal::UnknownModel(_)
                | Refusal::WrongKind { .. }
                | Refusal::TooLarge { .. }
                | Refusal::CannotMeetDeadline { .. }
                | Refusal::Draining
                | Refusal::ModelFailed(_)
                | Refusal::DeviceLost(_) => false,
            },
            Self::Unopened(error) => matches!(error, OpenError::Model(ModelError::Unavailable { .. })),
            Self::Failed(error) => matches!(error, EngineError::Unloaded),
            Self::Masked(_) | Self::Unfit(_) | Self::AnswerTooLong { .. } | Self::Internal(_) => false,
        }
    }
}
