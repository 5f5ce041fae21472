//! Datasets, jobs and adapters as rows of a database: SQLite in memory or in a file, or PostgreSQL.
//!
//! The statements are the same for all; `schema.rs` holds the few words in which they differ. What a job is about (its request,
//! its report, its scores) and what a sample looks like are the business of the layers above: here they are texts.
//!
//! Invariants:
//!
//! - what is acknowledged is on disk, and what consists of several rows is written in one transaction, or not readable before
//!   it is complete;
//! - a job belongs to at most one claim: whoever lost its claim can change nothing of it any more;
//! - times come from the clock of the database, so that processes agree on them.

mod adapters;
mod backup;
mod check;
mod claims;
mod datasets;
mod deletion;
mod error;
mod files;
mod job_row;
mod jobs;
mod open;
mod page;
mod plans;
mod reserve;
mod results;
mod schema;
mod seal;
#[cfg(test)]
mod tests;
mod usage;

pub use crate::access::Principal;
pub use adapters::{AdapterFiles, AdapterName, AdapterRow};
pub use backup::{back_up, restore};
pub use check::StoreCheck;
pub use claims::{ClaimId, ClaimedJob, LostClaim};
pub use datasets::{DatasetKey, DatasetRow, DatasetState};
pub use error::StoreError;
pub use job_row::{JobRow, JobStatus};
pub use jobs::{IdempotencyKey, JobQuery, NewJob, Submitted};
pub use open::Store;
pub use page::{RowPage, listed};
pub use plans::{MAX_PLANS, PlanRow};
pub use results::{JobEnd, JobOutput, ScoreBlock};
pub use seal::ContentCheck;
