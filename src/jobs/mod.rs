//! Jobs: work that a client submits and comes back for. A job is queued in the store, run by one process at a time, and outlives
//! that process where the store does.
//!
//! [`Jobs`] runs the jobs of one [`JobKind`]: it queues them, runs a few at a time, renews their claims, notes how far they are,
//! and stores what they leave behind. What a job does is the business of its kind, in a layer above.

mod error;
mod failure;
mod job_run;
mod kind;
mod local_run;
mod page;
mod runner;
mod scorer_failure;
mod snapshot;
mod submission;
mod submit;
mod upkeep;
mod work;

#[cfg(test)]
mod tests;

pub use error::JobError;
pub use failure::{FailureKind, FailureRecord, JobFailure};
pub use job_run::{JobRun, encoded};
pub use kind::{JobKind, JobSubject, MAX_UNFINISHED};
pub use local_run::LocalRun;
pub use page::{JobPage, JobQuery};
pub use runner::Jobs;
pub use snapshot::JobSnapshot;
pub use submission::Submission;
