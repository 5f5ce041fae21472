//! Audits as jobs.

use super::calibration_mismatch::CalibrationMismatch;
use super::calibrations::{Calibration, load};
use super::error::{AuditError, AuditFailure};
use super::evidence::CalibrationSource;
use super::job_run::{started_over, tell_progress};
use super::limits::{MAX_SCORES, check_cost};
use super::request::AuditRequest;
use super::run::{AuditOutcome, run};
use super::stored_scores::{StoredScores, encode};
use super::subject::AuditSubject;
use crate::datasets::SampleTotals;
use crate::jobs::{FailureKind, JobError, JobFailure, JobKind, JobRun, JobSnapshot, Jobs, Submission, encoded};
use crate::retry::until_final;
use crate::scorer::Scorer;
use crate::store::{JobOutput, Store, StoreError};
use crate::telemetry::names;
use std::sync::Arc;
use uuid::Uuid;

/// Audits as a kind of job.
pub struct AuditKind {
    scorer: Scorer,
}

/// All audits; cheap to clone.
pub type Audits = Jobs<AuditKind>;

/// An audit as it stands.
pub type AuditSnapshot = JobSnapshot<AuditSubject>;

impl AuditKind {
    /// Audits of the models of this scorer.
    #[must_use]
    pub fn new(scorer: Scorer) -> Self {
        Self { scorer }
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
    type Request = AuditRequest;
    type Subject = AuditSubject;

    fn subject(job: &Submission<AuditRequest>, totals: &SampleTotals) -> AuditSubject {
        AuditSubject::new(&job.request, job.name.clone(), job.samples.dataset_id(), totals)
    }

    fn weight(request: &AuditRequest, totals: &SampleTotals) -> Result<usize, JobError> {
        check_cost(request, totals)
    }

    async fn run(&self, job: JobRun<'_, AuditRequest>) -> Result<JobOutput, JobFailure> {
        let calibration = named_calibration(job.store, &job.request).await?;
        // Statistics stay on disk until the audit has ended, so that rerunning it costs no forward pass.
        let _hold = self.scorer.engine().hold_statistics(job.is_resumed());
        let (request, progress) = (Arc::clone(&job.request), tell_progress(job.local));
        let scorer = self.scorer.called_by(job.owner());
        let AuditOutcome { results, mut report } = run(request, &job.samples, calibration, &scorer, progress).await?;
        job.local.set_note(None);
        let earlier = until_final(StoreError::is_retryable, || job.store.earlier_jobs(job.id())).await;
        report.plan.earlier_audits = Some(earlier?);
        report.warnings.extend(started_over(&job, Self::NAME));
        encoded(move || {
            let (header, scores) = encode(&results)?;
            let report = serde_json::to_string(&report)?;
            Ok(JobOutput { report, header, scores, tokens: results.usage.tokens, ..JobOutput::default() })
        })
        .await
    }
}

impl Audits {
    /// Returns the scores of an audit, or `None` until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::Store`] or [`AuditError::Internal`].
    pub async fn scores(&self, id: Uuid) -> Result<Option<StoredScores>, AuditError> {
        StoredScores::open(self.store(), id).await
    }
}

/// Loads the calibration that an audit names; `None` if it names none.
async fn named_calibration(store: &Store, request: &AuditRequest) -> Result<Option<Calibration>, JobFailure> {
    let Some(CalibrationSource::Stored(id)) = &request.evidence.calibration else { return Ok(None) };
    let gone = || AuditFailure::from(CalibrationMismatch::Gone(id.clone()));
    let uuid = id.parse().map_err(|_| gone())?;
    let loaded = until_final(AuditError::is_retryable, || load(store, uuid)).await;
    let calibration = loaded.map_err(|error| JobFailure::kept_back(FailureKind::StoreFailed, "store", &error))?;
    Ok(Some(calibration.ok_or_else(gone)?))
}
