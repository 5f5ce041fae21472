//! Why a whole request has no answer, and why one text of it has no score.

use crate::access::MemoryRefusal;
use crate::engine::{EngineError, Refusal};
use crate::pool::OpenError;
use lm::models::ModelError;
use mia::methods::{AuxiliaryPassError, Fault};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// Maximum number of bytes of one answer, by estimate.
pub const MAX_ANSWER_BYTES: usize = 128 << 20;

/// Why a whole request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScorerError {
    #[error(transparent)]
    Unopened(#[from] OpenError),
    #[error("model `{0}` is a masked model, which gives no probabilities of texts")]
    Masked(String),
    /// The model continues no texts, or not this one.
    #[error("model `{model}` cannot continue the text: {reason}")]
    CannotContinue { model: String, reason: String },
    /// Methods that the models do not fit; pointers are relative to the list of methods.
    #[error("{}", .0.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join("; "))]
    Unfit(Vec<Fault>),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Failed(#[from] EngineError),
    #[error(
        "the answer about {texts} texts and {methods} methods may take some {bytes} bytes; the limit is {MAX_ANSWER_BYTES}"
    )]
    AnswerTooLong { texts: usize, methods: usize, bytes: usize },
    /// The request and its answer find no room in memory.
    #[error(transparent)]
    NoMemory(#[from] MemoryRefusal),
    /// A fault of the service itself.
    #[error("internal error: {0}")]
    Internal(String),
}

impl ScorerError {
    /// Returns true if a retry may succeed a moment later, without anybody's doing: there is no room now, or the model is being
    /// unloaded or opened anew, or its server elsewhere does not answer.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(
                refusal,
                Refusal::Busy { .. } | Refusal::Unloading | Refusal::NotOpened(_) | Refusal::Unanswered(_)
            ),
            Self::Unopened(error) => matches!(error, OpenError::Model(ModelError::Unavailable { .. })),
            Self::Failed(error) => matches!(error, EngineError::Unloaded),
            Self::NoMemory(refusal) => !matches!(refusal, MemoryRefusal::TooLarge { .. }),
            Self::Masked(_)
            | Self::CannotContinue { .. }
            | Self::Unfit(_)
            | Self::AnswerTooLong { .. }
            | Self::Internal(_) => false,
        }
    }
}

/// Why a text, or one method of it, has no score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextError {
    /// The method concerned; absent when no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Arc<str>>,
    /// `too_short`, `too_long`, `untokenizable`, `zero_denominator`, `zero_weight`, `nothing_selected`, `non_finite`,
    /// `no_neighbors`, `in_prefix`, `tuned_on`, `invalid_spans`, `spans_unknown` or, in an audit, `in_split` or `model_failed`.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

impl From<AuxiliaryPassError> for TextError {
    fn from(AuxiliaryPassError { code, detail }: AuxiliaryPassError) -> Self {
        Self { label: None, code, detail }
    }
}

impl TextError {
    /// An error that concerns the whole text.
    pub fn whole(code: &'static str, detail: String) -> Self {
        Self { label: None, code: code.into(), detail }
    }

    /// The error of a text on which the model failed. The reason, which may be another server's text, is in the log alone.
    pub fn model_failed() -> Self {
        Self::whole("model_failed", "the model failed on this text; the service's log says why".to_owned())
    }
}
