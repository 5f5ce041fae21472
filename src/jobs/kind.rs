//! What tells one kind of job from another.

use super::error::JobError;
use super::failure::JobFailure;
use super::job_run::JobRun;
use super::submission::Submission;
use crate::datasets::SampleTotals;
use crate::store::{AdapterName, JobOutput};
use serde::Serialize;
use serde::de::DeserializeOwned;

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
    /// What a job computes, as it is stored.
    type Request: Serialize + DeserializeOwned + Send + Sync;
    /// What lists say of a job.
    type Subject: JobSubject;

    /// What lists say of a job with samples of these totals.
    fn subject(submission: &Submission<Self::Request>, totals: &SampleTotals) -> Self::Subject;

    /// The size of a job's report, in the units of [`JobKind::MOST_KEPT`].
    ///
    /// # Errors
    /// [`JobError::TooLarge`] where the job would need more than one may.
    fn weight(request: &Self::Request, totals: &SampleTotals) -> Result<usize, JobError>;

    /// The adapter that a job makes.
    fn adapter(_request: &Self::Request) -> Option<AdapterName> {
        None
    }

    /// Runs a job as it is stored. Dropping the future stops it, and to run it again resumes it or begins it anew with the
    /// same result.
    fn run(&self, job: JobRun<'_, Self::Request>) -> impl Future<Output = Result<JobOutput, JobFailure>> + Send;
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
