//! The trait of a kind of job.

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
    /// Maximum number of jobs that a process runs at once.
    const MOST_RUNNING: usize;
    /// Maximum total weight of finished jobs in memory; the oldest is evicted.
    const MOST_KEPT: usize;
    /// The counter of jobs that have ended, by status.
    const COUNTER: &'static str;
    /// Request of a job, as stored.
    type Request: Serialize + DeserializeOwned + Send + Sync;
    /// Summary of a job in lists.
    type Subject: JobSubject;

    /// Returns the summary of a job with samples of these totals.
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

/// Summary of a job in lists and the log.
pub trait JobSubject: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name given by the client.
    fn name(&self) -> Option<&str>;
    /// Id of the model.
    fn model(&self) -> &str;
    /// Id of the dataset; `None` if the samples came with the request.
    fn dataset(&self) -> Option<&str>;
    /// Totals of the samples. Those not known any more are as the job was accepted with.
    fn samples(&self) -> SampleTotals;
    /// Number of parts of the work.
    fn total(&self) -> usize;
}
