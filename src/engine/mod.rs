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
mod settings;
mod shared;
mod status;
mod submit;

#[cfg(test)]
mod tests;

pub use cache::StatisticsHold;
pub use circuit::Circuit;
pub use error::{EngineError, Refusal, StartError};
pub use handle::{Engine, MemoryReservation, MemoryShortage};
pub use request::{Class, Pass, Request, Stats};
pub use settings::{DeviceSlot, DiskCache, EngineOptions};
pub use status::{DeviceStatus, EngineStatus, ModelActivity, Unanswered};
pub use submit::{Answered, PendingRequest};
