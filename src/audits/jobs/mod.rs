//! Audits as jobs.

mod submission;

use super::error::{AuditError, AuditFailure};
use super::limits::MAX_SCORES;
use super::request::AuditRequest;
use super::run::{AuditOutcome, RunEvent, run};
use super::stored_scores::{StoredScores, encode};
use super::subject::AuditSubject;
use crate::datasets::SampleBlocks;
use crate::jobs::{JobFailure, JobKind, JobSnapshot, Jobs, LocalRun};
use crate::scorer::Scorer;
use crate::statistics::{Warning, WarningCode};
use crate::store::{ClaimedJob, JobOutput, Store, StoreError};
use crate::telemetry::names;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

pub use submission::NewAudit;

/// What there is to run.
struct AuditWork {
    request: Arc<AuditRequest>,
    samples: SampleBlocks,
    /// Whether it was begun before, and samples may have been scored then.
    resumed: bool,
    /// Is told how far it is.
    progress: Box<dyn Fn(RunEvent) + Send + Sync>,
}

/// Runs an audit.
type RunAudit = dyn Fn(AuditWork) -> BoxFuture<'static, RunResult> + Send + Sync;
type RunResult = Result<AuditOutcome, AuditFailure>;

/// Audits as a kind of job.
pub struct AuditKind {
    work: Box<RunAudit>,
}

/// All audits; cheap to clone.
pub type Audits = Jobs<AuditKind>;

/// An audit as it stands.
pub type AuditSnapshot = JobSnapshot<AuditSubject>;

impl AuditKind {
    fn new(work: impl Fn(AuditWork) -> BoxFuture<'static, RunResult> + Send + Sync + 'static) -> Self {
        Self { work: Box::new(work) }
    }

    /// Audits that this scorer runs.
    #[must_use]
    pub fn scored_by(scorer: Scorer) -> Self {
        Self::new(move |AuditWork { request, samples, resumed, progress }| {
            let scorer = scorer.clone();
            let work = async move {
                // What is scored stays on disk until the audit has ended, so that to run it again costs no forward pass.
                let _hold = scorer.engine().hold_statistics(resumed);
                run(request, &samples, &scorer, progress).await
            };
            work.boxed()
        })
    }
}

impl JobKind for AuditKind {
    const NAME: &'static str = "audit";
    // Enough that a short one seldom waits for a long one, few enough that the first ones finish first. They share the
    // engine's window of batch work, so more of them would not be faster.
    const MOST_RUNNING: usize = 4;
    // Scores.
    const MOST_KEPT: usize = 4 * MAX_SCORES;
    const COUNTER: &'static str = names::AUDITS;
    type Subject = AuditSubject;

    async fn run(&self, store: &Store, job: &ClaimedJob, local: &Arc<LocalRun>) -> Result<JobOutput, JobFailure> {
        let request: AuditRequest = serde_json::from_str(&job.request)
            .map_err(|error| StoreError::Damaged(format!("the request of audit {}: {error}", job.id)))?;
        let samples = SampleBlocks::of_job(store, job).await?.ok_or_else(JobFailure::dataset_gone)?;
        let noted = Arc::clone(local);
        let progress = Box::new(move |event: RunEvent| match event {
            RunEvent::Tuned(step) => noted.set_note(Some(json!({ "tuning": step }).to_string())),
            RunEvent::Bound { numerics } => {
                noted.set_note(None);
                noted.set_numerics(numerics);
            }
            RunEvent::Scored { done } => noted.set_done(done),
        });
        let work = AuditWork { request: Arc::new(request), samples, resumed: job.numerics.is_some(), progress };
        let mut outcome = (self.work)(work).await?;
        if let Some(before) = &job.numerics
            && local.numerics().is_some_and(|now| now != *before)
        {
            tracing::warn!(job = %job.id, before, "audit begun anew: its numbers come from something else than before");
            let detail = "the audit was interrupted, and begun anew, since the program, the processor, the device or the files of a \
                          model were others than before; all scores come from what provenance names";
            let warning = Warning { code: WarningCode::StartedOver, detail: detail.to_owned() };
            outcome.report.warnings.push(warning);
        }
        Ok(encoded(outcome).await?)
    }
}

impl Audits {
    /// The scores of an audit; none until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::Store`] or [`AuditError::Internal`].
    pub async fn scores(&self, id: Uuid) -> Result<Option<StoredScores>, AuditError> {
        StoredScores::open(self.store(), id).await
    }
}

/// The outcome as it is stored. Megabytes of JSON are no work for the async runtime's threads.
async fn encoded(outcome: AuditOutcome) -> Result<JobOutput, AuditFailure> {
    let encoding = tokio::task::spawn_blocking(move || {
        let tokens = outcome.results.usage.tokens;
        let (header, scores) = encode(&outcome.results)?;
        let report = serde_json::to_string(&outcome.report)?;
        Ok::<_, serde_json::Error>(JobOutput { report, header, scores, tokens, ..JobOutput::default() })
    });
    let unwritable = |error: &dyn std::error::Error| AuditFailure::Unwritable(error.to_string());
    encoding.await.map_err(|error| unwritable(&error))?.map_err(|error| unwritable(&error))
}

#[cfg(test)]
mod tests;
