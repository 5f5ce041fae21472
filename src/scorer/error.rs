//! Why a whole request has no answer.

use super::limits::MAX_ANSWER_BYTES;
use crate::engine::{EngineError, Refusal};
use crate::pool::OpenError;
use lm::models::ModelError;
use mia::methods::Fault;

/// Why a whole request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScorerError {
    /// The model's files cannot be opened.
    #[error(transparent)]
    Unopened(#[from] OpenError),
    /// The model fills gaps instead of continuing texts.
    #[error("model `{0}` is a masked model, which gives no probabilities of texts")]
    Masked(String),
    /// Methods that the models do not fit; pointers are relative to the list of methods.
    #[error("{}", .0.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join("; "))]
    Unfit(Vec<Fault>),
    /// The engine did not admit it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine could not run it.
    #[error(transparent)]
    Failed(#[from] EngineError),
    /// The answer would be longer than one answer may.
    #[error(
        "the answer about {texts} texts and {methods} methods may take some {bytes} bytes; the limit is {MAX_ANSWER_BYTES}"
    )]
    AnswerTooLong { texts: usize, methods: usize, bytes: usize },
    /// A fault of the service itself.
    #[error("internal error: {0}")]
    Internal(String),
}

impl ScorerError {
    /// Returns true if a retry may succeed a moment later, without anybody's doing: there is no room now, or the model is being
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
