//! A device thread: it alone loads, runs and drops the models of its device, batch by batch, and writes down what
//! became of it.
//!
//! Invariants:
//!
//! - what fails fails narrowly: a load that fails costs the passes that wait for it, a forward pass that fails is run again
//!   in halves until the sequence that makes it fail is alone. Only a lost device ends the threads, and then all of them;
//! - a pass that nobody waits for any more never runs;
//! - at most one batch begins while the device works on another, a full one of a model that the device holds; nothing is
//!   loaded or dropped before both are finished;
//! - a pass that leaves without an answer has first had the reason written into the facts.
//!
//! The thread's work runs inside a thread pool of its own, so that the models' parallel loops neither wait for nor
//! slow down others that use rayon.

mod batch;
mod load;
mod memory;
mod resident;
mod thread;
mod watch;

#[cfg(test)]
pub(super) use memory::{Resident, eviction_order, evictions};
pub(super) use thread::spawn;
