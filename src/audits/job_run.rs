//! What jobs that score samples have in common: what they begin with, and what they say while they run.

use super::request::AuditRequest;
use super::run_event::RunEvent;
use crate::datasets::SampleBlocks;
use crate::jobs::{JobFailure, LocalRun};
use crate::store::{ClaimedJob, Store, StoreError};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;

/// Is told how far a job is.
pub type TellProgress = Box<dyn Fn(RunEvent) + Send + Sync>;

/// A job as it is stored, ready to run.
pub struct BegunJob<R = AuditRequest> {
    pub request: Arc<R>,
    pub samples: SampleBlocks,
    pub progress: TellProgress,
}

/// Reads a job.
///
/// # Errors
/// Where its request or its samples cannot be read.
pub async fn begin(store: &Store, job: &ClaimedJob, local: &Arc<LocalRun>, kind: &str) -> Result<BegunJob, JobFailure> {
    begin_as(store, job, local, kind).await
}

/// Reads a job with another request.
pub async fn begin_as<R: DeserializeOwned>(
    store: &Store,
    job: &ClaimedJob,
    local: &Arc<LocalRun>,
    kind: &str,
) -> Result<BegunJob<R>, JobFailure> {
    let request: R = serde_json::from_str(&job.request)
        .map_err(|error| StoreError::Damaged(format!("the request of {kind} {}: {error}", job.id)))?;
    let samples = SampleBlocks::of_job(store, job).await?.ok_or_else(JobFailure::dataset_gone)?;
    let noted = Arc::clone(local);
    let progress = move |event: RunEvent| match event {
        RunEvent::Read { samples } => noted.set_note(Some(json!({ "read": samples }).to_string())),
        RunEvent::Tuned(step) => noted.set_note(Some(json!({ "tuning": step }).to_string())),
        RunEvent::Bound { numerics } => {
            noted.set_note(None);
            noted.set_numerics(numerics);
        }
        RunEvent::Scored { done } => noted.set_done(done),
        RunEvent::Testing => noted.set_note(Some(json!({ "testing": true }).to_string())),
    };
    Ok(BegunJob { request: Arc::new(request), samples, progress: Box::new(progress) })
}

/// Whether a job was begun anew, since its numbers come from something else than before.
pub fn started_over(job: &ClaimedJob, local: &LocalRun) -> bool {
    let over = job.numerics.as_ref().filter(|before| local.numerics().is_some_and(|now| now != **before));
    if let Some(before) = over {
        tracing::warn!(job = %job.id, before, "job begun anew: its numbers come from something else than before");
    }
    over.is_some()
}
