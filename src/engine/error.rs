//! The errors of the engine. A [`Refusal`] comes at once and costs nothing; an [`EngineError`] comes to a request that was
//! admitted. Neither is ever a panic.

use std::time::Duration;

use crate::pool::{Ended, LeaseError, LoadError, UnknownModel};

/// Why a request was not admitted. Nothing of it was queued.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// No model of this id is configured.
    #[error("model `{0}` is not configured")]
    UnknownModel(String),
    /// The model's files have not been opened, or were opened anew since; the caller opens before it submits.
    #[error("model `{0}` is not opened, or was opened anew")]
    NotOpened(String),
    /// The model is of the other kind: a masked one, which scores nothing, or a causal one, which fills nothing.
    #[error("model `{model}` is a {}", if *masked { "masked model, which gives no probabilities of texts" } else { "causal model, which fills no masked positions" })]
    WrongKind {
        /// The model's id.
        model: String,
        /// True if it is a masked model.
        masked: bool,
    },
    /// The request could not be admitted even by an idle engine.
    #[error("{requested} tokens exceed the {limit} of {allowed} tokens")]
    TooLarge {
        /// The limit in words.
        limit: &'static str,
        /// Number of tokens that the limit allows.
        allowed: usize,
        /// Number of tokens requested.
        requested: usize,
    },
    /// Even an idle engine would, at the speed last measured, not be done before the request's deadline.
    #[error("the request would take about {estimate:.1?} and its deadline is in {available:.1?}")]
    CannotMeetDeadline {
        /// The estimated time of the request alone.
        estimate: Duration,
        /// The time to its deadline.
        available: Duration,
    },
    /// The queue is too full for this request now.
    #[error("the queue is full, retry in {} s", retry_after.as_secs())]
    Busy {
        /// When a retry may succeed, in whole seconds, at least one.
        retry_after: Duration,
    },
    /// The engine is shutting down.
    #[error("the service is shutting down")]
    Draining,
    /// The model failed to load a moment ago. Loading is tried again after a pause as long as the failed load took,
    /// so that a broken model cannot keep its device from the others.
    #[error("the model failed to load: {0}")]
    ModelFailed(String),
    /// The model is served elsewhere, and no server of it has answered for a while.
    #[error("no server of the model answers: {0}")]
    Unanswered(String),
    /// The model is being unloaded. When that is done, a request loads it again.
    #[error("the model is being unloaded")]
    Unloading,
    /// The device is lost; only a new process can help.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
}

/// Why an admitted request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The request's deadline passed.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// Its forward pass failed.
    #[error("the model failed: {0}")]
    ModelFailed(String),
    /// The model could not be loaded.
    #[error("the model failed to load: {0}")]
    LoadFailed(String),
    /// The model was unloaded while none of its devices answered.
    #[error("the model was unloaded while no server of it answered")]
    Unloaded,
    /// The device is lost; only a new process can help.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
    /// The engine shut down before the request's turn came.
    #[error("the service shut down")]
    ShuttingDown,
}

impl From<LeaseError> for Refusal {
    fn from(error: LeaseError) -> Self {
        match error {
            LeaseError::UnknownModel(UnknownModel(id)) => Self::UnknownModel(id),
            LeaseError::NotOpened(id) => Self::NotOpened(id),
        }
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::UnknownModel(UnknownModel(id)) => Self::UnknownModel(id),
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

/// Why the engine did not start: the operating system gave it no threads.
#[derive(Debug, thiserror::Error)]
#[error("the engine could not be started: {0}")]
pub struct StartError(pub(super) String);
