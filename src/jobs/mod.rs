//! Jobs: work that a client submits and comes back for. A job is queued in the store, run by one process at a time, and outlives
//! that process where the store does.
//!
//! [`Jobs`] runs the jobs of one [`JobKind`]: it queues them, runs a few at a time, renews their claims, notes how far they are,
//! and stores what they leave behind. What a job does is the business of its kind, in a layer above.

mod error;
mod kind;
mod runner;
mod submit;
mod upkeep;
mod work;

#[cfg(test)]
mod tests;

pub use error::{FailureKind, FailureRecord, JobError, JobFailure};
pub use kind::{
    JobKind, JobRequest, JobRun, JobSubject, JobSummary, LocalRun, MAX_UNFINISHED, Subject, Submission, encoded,
};
pub use runner::{JobPage, JobSnapshot, Jobs};
