//! Calibrations as jobs.

use super::calibration::Calibration;
use super::load::load;
use super::report::calibration_report;
use crate::audits::error::AuditError;
use crate::audits::job_run::tell_progress;
use crate::audits::limits::{MAX_SCORES, check_cost};
use crate::audits::request::AuditRequest;
use crate::audits::sample_scoring::{ScoredSamples, score_samples};
use crate::audits::stored_scores::encode;
use crate::audits::subject::AuditSubject;
use crate::datasets::SampleTotals;
use crate::jobs::{JobError, JobFailure, JobKind, JobRun, Jobs, Submission, encoded};
use crate::scorer::Scorer;
use crate::store::JobOutput;
use crate::telemetry::names;
use uuid::Uuid;

/// Calibrations as a kind of job.
pub struct CalibrationKind {
    scorer: Scorer,
}

/// All calibrations; cheap to clone.
pub type Calibrations = Jobs<CalibrationKind>;

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
    /// It asks for no statistics.
    type Request = AuditRequest;
    type Subject = AuditSubject;

    fn subject(job: &Submission<AuditRequest>, totals: &SampleTotals) -> AuditSubject {
        AuditSubject::new(&job.request, job.name.clone(), job.samples.dataset_id(), totals)
    }

    fn weight(request: &AuditRequest, totals: &SampleTotals) -> Result<usize, JobError> {
        check_cost(request, totals)
    }

    async fn run(&self, job: JobRun<'_, AuditRequest>) -> Result<JobOutput, JobFailure> {
        let _hold = self.scorer.engine().hold_statistics(job.is_resumed());
        let (scorer, progress) = (self.scorer.called_by(job.owner()), tell_progress(job.local));
        let ScoredSamples { results, .. } = score_samples(&job.request, &job.samples, &scorer, &progress).await?;
        encoded(move || {
            let report = serde_json::to_string(&calibration_report(&results))?;
            let (header, scores) = encode(&results)?;
            Ok(JobOutput { report, header, scores, tokens: results.usage.tokens, ..JobOutput::default() })
        })
        .await
    }
}

impl Calibrations {
    /// Returns the scores of a calibration, or `None` until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::Store`] or [`AuditError::Internal`].
    pub async fn scores(&self, id: Uuid) -> Result<Option<Calibration>, AuditError> {
        load(self.store(), id).await
    }
}
