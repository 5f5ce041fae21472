//! What is said to those who wait for a model. It is kept until the board is up to date: who has heard finds it there.

use crate::engine::device::Entry;
use crate::engine::{EngineError, LoadError};
use tokio::sync::oneshot;

/// Whom to tell that a load has ended.
pub(in crate::engine) type LoadWaiter = oneshot::Sender<Result<(), LoadError>>;

/// Whom to tell that an unload has ended.
pub(in crate::engine) type UnloadWaiter = oneshot::Sender<()>;

#[derive(Debug)]
pub(super) enum News {
    Loaded(LoadWaiter, Result<(), LoadError>),
    Unloaded(UnloadWaiter),
    /// A queued sequence has no model to run on, for this reason.
    Failed(Entry, String),
}

impl News {
    pub(super) fn tell(self) {
        // Who does not listen any more need not know.
        match self {
            Self::Loaded(waiter, outcome) => drop(waiter.send(outcome)),
            Self::Unloaded(waiter) => drop(waiter.send(())),
            Self::Failed(entry, reason) => entry.answer(Err(EngineError::ModelFailed(reason))),
        }
    }
}
