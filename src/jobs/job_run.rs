//! A job, ready to run.

use super::failure::{FailureKind, JobFailure};
use super::local_run::LocalRun;
use crate::datasets::SampleBlocks;
use crate::store::{ClaimedJob, JobOutput, Store, StoreError};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::sync::Arc;
use uuid::Uuid;

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

    /// Name of the client that submitted the job.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.claimed.owner
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
