//! Queue of forward passes: who may wait ([`admission`]), in what order ([`waiting`]), and who runs together ([`formation`]).

mod admission;
mod formation;
mod queued;
mod waiting;

pub(super) use admission::{Closed, Gate, Holder, NotAdmitted, Permit, busy, judge_time, time_ahead};
#[cfg(test)]
pub(super) use formation::{LOOK_AHEAD, PATIENCE, form, leader};
pub(super) use formation::{Turn, halve};
pub(super) use queued::QueuedPass;
pub(super) use waiting::{Lead, Queue};
