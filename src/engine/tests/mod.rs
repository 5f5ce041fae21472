//! The engine through its front door, with a fake model; batch formation and admission as the pure functions they
//! are.
//!
//! No test depends on how fast anything is: where order matters a latch holds the device, and every wait has an
//! event.

mod admission;
mod batch;
mod faults;
mod lifecycle;
mod requests;
mod rig;
mod scheduling;
