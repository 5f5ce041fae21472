//! The engine through its front door, with fake models; batch formation, admission and evictions as the pure functions
//! they are.
//!
//! No test depends on how fast anything is: where order matters a latch holds a device, and every wait has an
//! event.

mod admission;
mod by_hand;
mod continuing;
mod devices;
mod evictions;
mod faults;
mod filling;
mod in_flight;
mod lifecycle;
mod memory;
mod opening;
mod queue;
mod requests;
mod rig;
mod scheduling;
mod script;
mod streaming;
mod turns;
mod unavailable;
