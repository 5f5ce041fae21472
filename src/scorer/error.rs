//! Which errors of the scorer pass by themselves.

use super::ScorerError;
use crate::engine::Refusal;

impl ScorerError {
    /// Whether the same may succeed a moment later, without anybody's doing: there is no room now, or the model is being
    /// unloaded or opened anew.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => match refusal {
                Refusal::Busy { .. } | Refusal::Unloading | Refusal::NotOpened(_) => true,
                Refusal::UnknownModel(_)
                | Refusal::WrongKind { .. }
                | Refusal::TooLarge { .. }
                | Refusal::CannotMeetDeadline { .. }
                | Refusal::Draining
                | Refusal::ModelFailed(_)
                | Refusal::DeviceLost(_) => false,
            },
            Self::Unopened(_)
            | Self::Masked(_)
            | Self::Unfit(_)
            | Self::Failed(_)
            | Self::AnswerTooLong { .. }
            | Self::Internal(_) => false,
        }
    }
}
