//! Tests as jobs.

use super::request::TestRequest;
use super::run::run_test;
use super::subject::TestSubject;
use crate::audits::job_run::{started_over, tell_progress};
use crate::audits::limits::{MAX_SCORES, check_cost};
use crate::audits::subject::AuditSubject;
use crate::datasets::SampleTotals;
use crate::jobs::{JobError, JobFailure, JobKind, JobRun, Submission, encoded};
use crate::scorer::Scorer;
use crate::store::JobOutput;
use crate::telemetry::names;
use std::sync::Arc;

/// Tests as a kind of job.
pub struct TestJob {
    scorer: Scorer,
}

impl TestJob {
    /// Tests of the models of this scorer.
    #[must_use]
    pub fn new(scorer: Scorer) -> Self {
        Self { scorer }
    }
}

impl JobKind for TestJob {
    const NAME: &'static str = "test";
    const MOST_RUNNING: usize = 2;
    // Scores.
    const MOST_KEPT: usize = MAX_SCORES;
    const COUNTER: &'static str = names::TESTS;
    type Request = TestRequest;
    type Subject = TestSubject;

    fn subject(job: &Submission<TestRequest>, totals: &SampleTotals) -> TestSubject {
        let scored = AuditSubject::new(&job.request.scoring, job.name.clone(), job.samples.dataset_id(), totals);
        TestSubject { kind: job.request.layout.kind(), scored }
    }

    fn weight(request: &TestRequest, totals: &SampleTotals) -> Result<usize, JobError> {
        check_cost(&request.scoring, totals)
    }

    async fn run(&self, job: JobRun<'_, TestRequest>) -> Result<JobOutput, JobFailure> {
        // Statistics stay on disk until the test has ended, so that rerunning it costs no forward pass.
        let _hold = self.scorer.engine().hold_statistics(job.is_resumed());
        let (request, progress) = (Arc::clone(&job.request), tell_progress(job.local));
        let mut report = run_test(request, &job.samples, &self.scorer.called_by(job.owner()), progress).await?;
        job.local.set_note(None);
        report.warnings.extend(started_over(&job, Self::NAME));
        let tokens = report.usage.tokens;
        encoded(move || Ok(JobOutput { report: serde_json::to_string(&report)?, tokens, ..JobOutput::default() })).await
    }
}
