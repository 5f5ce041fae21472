//! Audits as jobs.

mod submission;

use super::calibration_mismatch::CalibrationMismatch;
use super::calibrations::{Calibration, load};
use super::error::{AuditError, AuditFailure};
use super::evidence::CalibrationSource;
use super::job_run::{BegunJob, TellProgress, begin, started_over};
use super::limits::MAX_SCORES;
use super::request::AuditRequest;
use super::run::{AuditOutcome, run};
use super::stored_scores::{StoredScores, encode};
use super::subject::AuditSubject;
use crate::datasets::SampleBlocks;
use crate::jobs::{FailureKind, JobFailure, JobKind, JobSnapshot, Jobs, LocalRun};
use crate::retry::until_final;
use crate::scorer::Scorer;
use crate::store::{ClaimedJob, JobOutput, Store, StoreError};
use crate::telemetry::names;
use futures::FutureExt;
use futures::future::BoxFuture;
use mia::statistics::{Warning, WarningCode};
use std::sync::Arc;
use uuid::Uuid;

pub use submission::NewAudit;

/// What there is to run.
struct AuditWork {
    /// The name of its owner.
    owner: String,
    request: Arc<AuditRequest>,
    samples: SampleBlocks,
    calibration: Option<Calibration>,
    /// Whether it was begun before, and samples may have been scored then.
    resumed: bool,
    /// Is told how far it is.
    progress: TellProgress,
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
        Self::new(move |AuditWork { owner, request, samples, calibration, resumed, progress }| {
            let scorer = scorer.called_by(&owner);
            let work = async move {
                // What is scored stays on disk until the audit has ended, so that to run it again costs no forward pass.
                let _hold = scorer.engine().hold_statistics(resumed);
                run(request, &samples, calibration, &scorer, progress).await
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
        let BegunJob { request, samples, progress } = begin(store, job, local, Self::NAME).await?;
        let calibration = named_calibration(store, &request).await?;
        let (owner, resumed) = (job.owner.clone(), job.numerics.is_some());
        let work = AuditWork { owner, request, samples, calibration, resumed, progress };
        let mut outcome = (self.work)(work).await?;
        local.set_note(None);
        let earlier = until_final(StoreError::is_retryable, || store.earlier_jobs(job.id)).await;
        outcome.report.plan.earlier_audits = Some(earlier?);
        if started_over(job, local) {
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

/// The calibration that an audit names; none where it names none.
async fn named_calibration(store: &Store, request: &AuditRequest) -> Result<Option<Calibration>, JobFailure> {
    let Some(CalibrationSource::Stored(id)) = &request.evidence.calibration else { return Ok(None) };
    let gone = || AuditFailure::from(CalibrationMismatch::Gone(id.clone()));
    let uuid = id.parse().map_err(|_| gone())?;
    let loaded = until_final(AuditError::is_retryable, || load(store, uuid)).await;
    let calibration = loaded.map_err(|error| JobFailure::kept_back(FailureKind::StoreFailed, "store", &error))?;
    Ok(Some(calibration.ok_or_else(gone)?))
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
