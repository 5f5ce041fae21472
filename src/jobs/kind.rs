//! A kind of job: how its jobs are submitted, and what they are given when they run.

use super::error::{FailureKind, JobError, JobFailure};
use crate::datasets::{SampleBlocks, SampleTotals, SubmittedSamples, estimated_tokens};
use crate::scorer::Scorer;
use crate::store::{AdapterName, ClaimedJob, JobOutput, Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A job as it is submitted.
#[derive(Clone, Debug)]
pub struct Submission<R> {
    pub request: R,
    /// Name of the job in lists.
    pub name: Option<String>,
    pub samples: SubmittedSamples,
    /// Name of the submission, under which the client may send it again.
    pub idempotency_key: Option<String>,
    /// Time after its submission in which it must end.
    pub timeout: Option<Duration>,
}

/// A job that this process runs.
#[derive(Debug, Default)]
pub struct LocalRun {
    done: AtomicUsize,
    note: Mutex<Option<String>>,
    numerics: Mutex<Option<String>>,
    pub(super) cancel: CancellationToken,
}

impl LocalRun {
    /// Sets the number of finished parts of the work.
    pub fn set_done(&self, done: usize) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Number of finished parts of the work.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Sets or clears the note on the run, as JSON.
    pub fn set_note(&self, note: Option<String>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    /// Note on the run.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets everything that the bits of its numbers depend on.
    pub fn set_numerics(&self, numerics: String) {
        *self.numerics.lock().unwrap_or_else(PoisonError::into_inner) = Some(numerics);
    }

    /// Everything that the bits of its numbers depend on, once known.
    #[must_use]
    pub fn numerics(&self) -> Option<String> {
        self.numerics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A job that this process has claimed, with its request and its samples.
pub struct JobRun<'a, R> {
    pub store: &'a Store,
    pub request: Arc<R>,
    pub samples: SampleBlocks,
    /// Is told how far the job is.
    pub local: &'a Arc<LocalRun>,
    claimed: &'a ClaimedJob,
}

impl<'a, R: DeserializeOwned> JobRun<'a, R> {
    /// Reads a job of a kind.
    ///
    /// # Errors
    /// Where its request or its samples cannot be read.
    pub(super) async fn read(
        kind: &str,
        store: &'a Store,
        claimed: &'a ClaimedJob,
        local: &'a Arc<LocalRun>,
    ) -> Result<Self, JobFailure> {
        if let Some(damage) = &claimed.damage {
            return Err(StoreError::Damaged(damage.clone()).into());
        }
        let request = serde_json::from_str(&claimed.request)
            .map_err(|error| StoreError::Damaged(format!("the request of {kind} {}: {error}", claimed.id)))?;
        let samples = SampleBlocks::of_job(store, claimed).await?.ok_or_else(JobFailure::dataset_gone)?;
        Ok(Self { store, request: Arc::new(request), samples, local, claimed })
    }
}

impl<R> JobRun<'_, R> {
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.claimed.id
    }

    /// Returns a scorer of these samples for the owner of the job.
    #[must_use]
    pub fn scorer(&self, scorer: &Scorer) -> Scorer {
        scorer.called_by(&self.claimed.owner).for_dataset(self.samples.dataset())
    }

    /// True if an earlier run of the job may have scored samples.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.claimed.numerics.is_some()
    }

    /// True if the job begins anew, since its numbers depend on something else than those of an earlier run: another program,
    /// processor, device or model.
    #[must_use]
    pub fn is_started_over(&self) -> bool {
        is_started_over(self.claimed, self.local)
    }
}

/// True if the numbers of a job depend on something else than those of its earlier run.
pub(super) fn is_started_over(claimed: &ClaimedJob, local: &LocalRun) -> bool {
    claimed.numerics.as_ref().is_some_and(|before| local.numerics().is_some_and(|now| now != *before))
}

/// Writes the output of a job on a thread of its own: megabytes of JSON would block the async runtime.
///
/// # Errors
/// Where it cannot be written as JSON, which is a fault of the service.
pub async fn encoded(
    encode: impl FnOnce() -> serde_json::Result<JobOutput> + Send + 'static,
) -> Result<JobOutput, JobFailure> {
    let failed = |error: &dyn Error| {
        JobFailure::kept_back(FailureKind::Internal, "service", &format!("the results cannot be written: {error}"))
    };
    tokio::task::spawn_blocking(encode).await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
}

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
    /// Request of a job.
    type Request: JobRequest;

    /// Runs a job as it is stored. Dropping the future stops it, and to run it again resumes it or begins it anew with the
    /// same result.
    fn run(&self, job: JobRun<'_, Self::Request>) -> impl Future<Output = Result<JobOutput, JobFailure>> + Send;
}

/// Request of a job, as stored.
pub trait JobRequest: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Summary of a job in lists.
    type Subject: JobSubject;

    /// Returns the summary of a job with samples of these totals.
    fn subject(submission: &Submission<Self>, totals: &SampleTotals) -> Self::Subject
    where
        Self: Sized;

    /// The size of the job's report, in the units of [`JobKind::MOST_KEPT`].
    ///
    /// # Errors
    /// [`JobError::TooLarge`] where the job would need more than one may.
    fn weight(&self, totals: &SampleTotals) -> Result<usize, JobError>;

    /// Returns the number of tokens that count for the client's limits: an estimate of those that models are run over.
    fn tokens(&self, totals: &SampleTotals) -> u64 {
        estimated_tokens(totals.text_bytes)
    }

    /// The adapter that the job makes.
    fn adapter(&self) -> Option<AdapterName> {
        None
    }
}

/// The summary of the jobs of a kind.
pub type Subject<K> = <<K as JobKind>::Request as JobRequest>::Subject;

/// Summary of a job in lists and the log, as stored.
pub trait JobSubject: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The part of it that jobs of all kinds have.
    fn summary(&self) -> JobSummary<'_>;
}

/// The part of a job's summary that all kinds have.
#[derive(Clone, Debug, Default)]
pub struct JobSummary<'a> {
    /// Name given by the client.
    pub name: Option<&'a str>,
    /// Id of the model.
    pub model: &'a str,
    /// Id of the dataset; `None` if the samples came with the request.
    pub dataset: Option<&'a str>,
    /// Totals of the samples. Those not known any more are as the job was accepted with.
    pub samples: SampleTotals,
    /// Number of parts of the work.
    pub total: usize,
}
