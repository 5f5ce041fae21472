//! The errors of the engine. A [`Refusal`] comes at once and costs nothing; an [`EngineError`] comes to a request that was
//! admitted. Neither is ever a panic. Their names are the outcomes of requests in the metrics.

use crate::pool::{Ended, LoadError, UnknownModel};
use std::time::Duration;
use strum::{IntoStaticStr, VariantNames};

/// Why a request was not admitted. Nothing of it was queued.
#[derive(Debug, Clone, PartialEq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    #[error("model `{0}` is not configured")]
    UnknownModel(String),
    /// The model's files have not been opened, or were opened anew since; the caller opens before it submits.
    #[error("model `{0}` is not opened, or was opened anew")]
    NotOpened(String),
    /// The model is of the other kind: a masked one, which scores nothing, or a causal one, which fills nothing.
    #[error("model `{model}` is a {}", if *masked { "masked model, which gives no probabilities of texts" } else { "causal model, which fills no masked positions" })]
    WrongKind { model: String, masked: bool },
    /// The request could not be admitted even by an idle engine.
    #[error("{requested} tokens exceed the {limit} of {allowed} tokens")]
    TooLarge { limit: &'static str, allowed: usize, requested: usize },
    /// Even an idle engine would, at the speed last measured, not be done before the request's deadline.
    #[error("the request would take about {estimate:.1?} and its deadline is in {available:.1?}")]
    CannotMeetDeadline { estimate: Duration, available: Duration },
    #[error("the queue is full, retry in {} s", retry_after.as_secs())]
    Busy { retry_after: Duration },
    #[error("the service is shutting down")]
    #[strum(serialize = "shutting_down")]
    Draining,
    /// The model failed to load a moment ago. Loading is tried again after a pause as long as the failed load took,
    /// so that a broken model cannot keep its device from the others.
    #[error("the model failed to load: {0}")]
    ModelFailed(String),
    /// The model is served elsewhere, and no server of it has answered for a while.
    #[error("no server of the model answers: {0}")]
    #[strum(serialize = "model_failed")]
    Unanswered(String),
    /// The model is being unloaded. When that is done, a request loads it again.
    #[error("the model is being unloaded")]
    Unloading,
    /// The device is lost; only a new process can help.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
}

/// Why an admitted request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum EngineError {
    #[error("the deadline passed")]
    DeadlineExceeded,
    #[error("the model failed: {0}")]
    ModelFailed(String),
    #[error("the model failed to load: {0}")]
    #[strum(serialize = "model_failed")]
    LoadFailed(String),
    #[error("the model was unloaded while no server of it answered")]
    #[strum(serialize = "unloading")]
    Unloaded,
    /// The device is lost; only a new process can help.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
    #[error("the service shut down")]
    ShuttingDown,
}

impl From<UnknownModel> for Refusal {
    fn from(UnknownModel(id): UnknownModel) -> Self {
        Self::UnknownModel(id)
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::UnknownModel(unknown) => unknown.into(),
            LoadError::Unloading => Self::Unloading,
            LoadError::Failed(reason) => Self::ModelFailed(reason),
            LoadError::Ended(ended) => ended.into(),
        }
    }
}

impl From<Ended> for Refusal {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::ShuttingDown => Self::Draining,
            Ended::DeviceLost(reason) => Self::DeviceLost(reason),
        }
    }
}

impl From<Ended> for EngineError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::ShuttingDown => Self::ShuttingDown,
            Ended::DeviceLost(reason) => Self::DeviceLost(reason),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the engine could not be started: {0}")]
pub struct StartError(pub(super) String);

/// Why a forward pass has no answer, in the words of the model.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Failure {
    /// A smaller batch may fit.
    OutOfMemory(String),
    /// The model failed on these sequences.
    Failed(String),
    Panicked(String),
    /// The device gave no answer: the same sequences may run later, or on another device.
    Unavailable {
        reason: String,
        /// True if it had the sequences, which may then be the cause.
        had_batch: bool,
        /// The pause that it asks for.
        retry_after: Option<Duration>,
    },
    /// The layers of the model could not be read from its files.
    Unreadable(String),
    /// Nobody waits for the answers any more.
    Cancelled(String),
    /// The device is not to be used again.
    DeviceLost(String),
}

impl Failure {
    pub(super) fn reason(&self) -> &str {
        match self {
            Self::OutOfMemory(reason)
            | Self::Failed(reason)
            | Self::Panicked(reason)
            | Self::Unreadable(reason)
            | Self::Cancelled(reason)
            | Self::Unavailable { reason, .. }
            | Self::DeviceLost(reason) => reason,
        }
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}
