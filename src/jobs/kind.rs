//! What tells one kind of job from another.

use super::failure::JobFailure;
use super::local_run::LocalRun;
use crate::datasets::SampleTotals;
use crate::store::{ClaimedJob, JobOutput, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Jobs of one kind that may be unfinished at once in memory, where each holds its samples, and in a store that lasts.
pub const MAX_UNFINISHED: [usize; 2] = [64, 1_000];

/// The part of them that one owner may have: one in this many.
pub(super) const OWNER_SHARE: usize = 2;

/// A kind of job.
pub trait JobKind: Send + Sync + 'static {
    /// Its name, in the store, the log and messages.
    const NAME: &'static str;
    /// How many a process runs at once.
    const MOST_RUNNING: usize;
    /// How much the jobs that have ended may weigh together in memory; the oldest makes room.
    const MOST_KEPT: usize;
    /// The counter of jobs that have ended, by status.
    const COUNTER: &'static str;
    /// What lists say of a job.
    type Subject: JobSubject;

    /// Runs a job as it is stored. Dropping the future stops it, and to run it again resumes it or begins it anew with the
    /// same result.
    fn run(
        &self,
        store: &Store,
        job: &ClaimedJob,
        local: &Arc<LocalRun>,
    ) -> impl Future<Output = Result<JobOutput, JobFailure>> + Send;
}

/// What lists and the log say of a job.
pub trait JobSubject: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What the client calls it.
    fn name(&self) -> Option<&str>;
    /// Id of the model.
    fn model(&self) -> &str;
    /// Id of the dataset; none where the samples came with the request.
    fn dataset(&self) -> Option<&str>;
    /// How many samples there are. What is not known of them any more is as the job was accepted with.
    fn samples(&self) -> SampleTotals;
    /// How many parts of the work there are.
    fn total(&self) -> usize;
}
