//! Calibrations as jobs.

use super::calibration::Calibration;
use super::load::load;
use super::report::calibration_report;
use crate::audits::error::{AuditError, AuditFailure};
use crate::audits::job_run::{begin, started_over};
use crate::audits::limits::{MAX_SCORES, check_cost};
use crate::audits::request::AuditRequest;
use crate::audits::sample_scoring::{ScoredSamples, score_samples};
use crate::audits::stored_scores::encode;
use crate::audits::subject::AuditSubject;
use crate::datasets::SubmittedSamples;
use crate::jobs::{JobError, JobFailure, JobKind, JobSnapshot, Jobs, LocalRun, NewSubmission};
use crate::scorer::Scorer;
use crate::store::{ClaimedJob, JobOutput, Store};
use crate::telemetry::names;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Calibrations as a kind of job.
pub struct CalibrationKind {
    scorer: Scorer,
}

/// All calibrations; cheap to clone.
pub type Calibrations = Jobs<CalibrationKind>;

/// A calibration as it is submitted.
#[derive(Clone, Debug)]
pub struct NewCalibration {
    /// What to compute; it asks for no statistics.
    pub request: AuditRequest,
    /// What the client calls it.
    pub name: Option<String>,
    /// Known non-members.
    pub samples: SubmittedSamples,
    /// What the client calls this submission, so that it can send it again.
    pub idempotency_key: Option<String>,
    /// How long after its submission it must have ended.
    pub timeout: Option<Duration>,
}

impl CalibrationKind {
    /// Calibrations of the models of this scorer.
    #[must_use]
    pub fn new(scorer: Scorer) -> Self {
        Self { scorer }
    }
}

impl JobKind for CalibrationKind {
    const NAME: &'static str = "calibration";
    const MOST_RUNNING: usize = 2;
    // Scores.
    const MOST_KEPT: usize = MAX_SCORES;
    const COUNTER: &'static str = names::CALIBRATIONS;
    type Subject = AuditSubject;

    async fn run(&self, store: &Store, job: &ClaimedJob, local: &Arc<LocalRun>) -> Result<JobOutput, JobFailure> {
        let begun = begin(store, job, local, Self::NAME).await?;
        let _hold = self.scorer.engine().hold_statistics(job.numerics.is_some());
        let scored =
            score_samples(&begun.request, &begun.samples, &self.scorer.called_by(&job.owner), &begun.progress).await?;
        let ScoredSamples { results, .. } = scored;
        started_over(job, local);
        let encoding = tokio::task::spawn_blocking(move || {
            let report = serde_json::to_string(&calibration_report(&results))?;
            let (header, scores) = encode(&results)?;
            Ok::<_, serde_json::Error>(JobOutput {
                report,
                header,
                scores,
                tokens: results.usage.tokens,
                ..JobOutput::default()
            })
        });
        let unwritable = |error: &dyn std::error::Error| AuditFailure::Unwritable(error.to_string());
        Ok(encoding.await.map_err(|error| unwritable(&error))?.map_err(|error| unwritable(&error))?)
    }
}

impl Calibrations {
    /// Accepts a calibration, which runs as soon as it is its turn; or finds the one that was submitted under the same key.
    ///
    /// # Errors
    /// Those of `check_cost`, or [`AuditError::Job`].
    pub async fn submit(&self, calibration: NewCalibration) -> Result<JobSnapshot<AuditSubject>, AuditError> {
        let NewCalibration { request, name, samples, idempotency_key, timeout } = calibration;
        let totals = samples.totals().map_err(JobError::from)?;
        let weight = check_cost(&request, &totals)?;
        let subject = AuditSubject::new(&request, name, samples.dataset_id(), &totals);
        let job = NewSubmission { subject, request, samples, weight, adapter: None, idempotency_key, timeout };
        Ok(self.enqueue(job).await?)
    }

    /// The scores of a calibration that has succeeded; none until then.
    ///
    /// # Errors
    /// [`AuditError::Store`] or [`AuditError::Internal`].
    pub async fn scores(&self, id: Uuid) -> Result<Option<Calibration>, AuditError> {
        load(self.store(), id).await
    }
}
