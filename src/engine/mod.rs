//! The engine that runs the models: it takes requests for statistics of token sequences and returns
//! [`TokenStats`](mia::TokenStats); or, for a masked model, it takes masked positions and returns what could stand there.
//!
//! One thread per device loads, runs and drops all models of that device; everything else only talks to them through a
//! queue that they share. A request passes four rooms:
//!
//! 1. `cache`: passes that ran before are answered without a forward pass;
//! 2. `admission` and `queue`: the rest is let in whole or refused, by tokens and by the time it would take, and waits by age, fairly between
//!    principals;
//! 3. `scheduler`: whenever a device is free it takes the oldest work that it may run as a batch; there is no waiting for
//!    more, for a batch grows while the device is busy;
//! 4. `device`: the batch runs, and each answer is written into its pass.
//!
//! Which models there are, and where each of them stands, is known to the [`Pool`](crate::pool::Pool); the device threads
//! look there for what they are to load or drop.
//!
//! Invariants:
//!
//! - the queue is never full: what is in it was admitted before, and no path that a client can reach panics;
//! - every admitted pass is answered, dropped because its request no longer wants it, or lost with the engine,
//!   and in each case what it held goes back;
//! - a load or a forward pass keeps one device busy and no other, and no lock is held while it lasts;
//! - health is read from facts that the device threads write, never asked through the queue;
//! - a lost device is the end of the whole engine.

mod admission;
mod cache;
mod circuit;
mod device;
mod error;
mod handle;
mod metrics;
mod queue;
mod queued;
mod record;
mod request;
mod scheduler;
mod shared;
mod status;
mod submit;
mod turn;

#[cfg(test)]
mod tests;

pub use cache::StatisticsHold;
pub use circuit::Circuit;
pub use error::{EngineError, Refusal, StartError};
pub use handle::{Engine, MemoryReservation, MemoryShortage};
pub use request::{Class, Pass, Request, Stats};
pub use status::{DeviceStatus, EngineStatus, ModelActivity, Unanswered};
pub use submit::{Answered, PendingRequest};

use std::path::PathBuf;
use std::sync::Arc;

/// A device that runs models, on a thread of its own.
pub struct DeviceSlot {
    /// Name in logs, metrics and status: `cpu`, `cuda:0` ...
    pub name: String,
    /// Maximum number of bytes of the models on it, by the books: weights and the activations of one batch.
    pub memory: u64,
    /// The token budget of a batch. A longer sequence is legal and runs alone.
    pub max_batch_tokens: usize,
    /// The token budget that a batch of a model with streamed layers grows to while it waits for them.
    pub max_streamed_tokens: usize,
    pub threads: usize,
    /// The failures of its server, which all connections to that share; those of the device where it is none.
    pub server: Arc<Circuit>,
    /// Gives freed pages back; called on the device's thread after a model was dropped.
    pub trim: Box<dyn Fn() + Send>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Maximum number of interactive tokens admitted and not yet answered.
    pub max_queue_tokens: usize,
    /// The size of the cache in memory, in bytes; 0 turns it off.
    pub cache_bytes: u64,
    /// The cache on disk; none: statistics do not outlive the engine.
    pub disk_cache: Option<DiskCache>,
}

/// Where and how much of the statistics is kept on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskCache {
    /// A directory of its own, made where it is missing.
    pub directory: PathBuf,
    /// Maximum disk space of its files in bytes. A sequence whose statistics take more than 1/64 of it is not kept.
    pub limit: u64,
}
