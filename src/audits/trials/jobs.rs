//! Tests as jobs.

use super::request::TrialRequest;
use super::run::run_trial;
use super::subject::TrialSubject;
use crate::audits::error::{AuditError, AuditFailure};
use crate::audits::job_run::{BegunJob, begin_as, started_over};
use crate::audits::limits::{MAX_SCORES, check_cost};
use crate::audits::subject::AuditSubject;
use crate::datasets::SubmittedSamples;
use crate::jobs::{JobError, JobFailure, JobKind, JobSnapshot, Jobs, LocalRun, NewSubmission};
use crate::scorer::Scorer;
use crate::store::{ClaimedJob, JobOutput, Store};
use crate::telemetry::names;
use mia::statistics::{Warning, WarningCode};
use std::sync::Arc;
use std::time::Duration;

/// Tests as a kind of job.
pub struct TrialJob {
    scorer: Scorer,
}

/// All tests; cheap to clone.
pub type Trials = Jobs<TrialJob>;

/// A test as it is submitted.
#[derive(Clone, Debug)]
pub struct NewTrial {
    pub request: TrialRequest,
    /// What the client calls it.
    pub name: Option<String>,
    /// What the layout of the request describes.
    pub samples: SubmittedSamples,
    /// What the client calls this submission, so that it can send it again.
    pub idempotency_key: Option<String>,
    /// How long after its submission it must have ended.
    pub timeout: Option<Duration>,
}

impl TrialJob {
    /// Tests of the models of this scorer.
    #[must_use]
    pub fn new(scorer: Scorer) -> Self {
        Self { scorer }
    }
}

impl JobKind for TrialJob {
    const NAME: &'static str = "test";
    const MOST_RUNNING: usize = 2;
    // Scores.
    const MOST_KEPT: usize = MAX_SCORES;
    const COUNTER: &'static str = names::TESTS;
    type Subject = TrialSubject;

    async fn run(&self, store: &Store, job: &ClaimedJob, local: &Arc<LocalRun>) -> Result<JobOutput, JobFailure> {
        let BegunJob { request, samples, progress } = begin_as::<TrialRequest>(store, job, local, Self::NAME).await?;
        // What is scored stays on disk until the test has ended, so that to run it again costs no forward pass.
        let _hold = self.scorer.engine().hold_statistics(job.numerics.is_some());
        let mut report = run_trial(request, &samples, &self.scorer.called_by(&job.owner), progress).await?;
        local.set_note(None);
        if started_over(job, local) {
            let detail = "the test was interrupted, and begun anew, since the program, the processor, the device or the files of a model \
                          were others than before; all scores come from what provenance names";
            report.warnings.push(Warning { code: WarningCode::StartedOver, detail: detail.to_owned() });
        }
        let tokens = report.usage.tokens;
        let encoding = tokio::task::spawn_blocking(move || serde_json::to_string(&report));
        let unwritable = |error: &dyn std::error::Error| AuditFailure::Unwritable(error.to_string());
        let report = encoding.await.map_err(|error| unwritable(&error))?.map_err(|error| unwritable(&error))?;
        Ok(JobOutput { report, tokens, ..JobOutput::default() })
    }
}

impl Trials {
    /// Accepts a test, which runs as soon as it is its turn; or finds the one that was submitted under the same key.
    ///
    /// # Errors
    /// Those of `check_cost`, or [`AuditError::Job`].
    pub async fn submit(&self, trial: NewTrial) -> Result<JobSnapshot<TrialSubject>, AuditError> {
        let NewTrial { request, name, samples, idempotency_key, timeout } = trial;
        let totals = samples.totals().map_err(JobError::from)?;
        let weight = check_cost(&request.scoring, &totals)?;
        let scored = AuditSubject::new(&request.scoring, name, samples.dataset_id(), &totals);
        let subject = TrialSubject { kind: request.layout.kind(), scored };
        let job = NewSubmission { subject, request, samples, weight, adapter: None, idempotency_key, timeout };
        Ok(self.enqueue(job).await?)
    }
}
