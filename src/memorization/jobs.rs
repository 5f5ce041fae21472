//! Looks at texts as jobs.

use super::error::MemorizationError;
use super::report::MemorizationReport;
use super::request::{MOST_WINDOWS, MemorizationRequest};
use super::run::{MemorizationProgress, run};
use super::subject::MemorizationSubject;
use super::window_scorer::WindowScorer;
use crate::datasets::{SampleBlocks, SampleTotals, SubmittedSamples};
use crate::jobs::{JobError, JobFailure, JobKind, JobSnapshot, Jobs, LocalRun, NewSubmission};
use crate::scorer::Scorer;
use crate::store::{ClaimedJob, JobOutput, Store, StoreError};
use crate::telemetry::names;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Looks at texts as a kind of job.
pub struct MemorizationKind {
    scorer: Scorer,
}

/// All memorization jobs; cheap to clone.
pub type Memorizations = Jobs<MemorizationKind>;

/// A memorization job as it stands.
pub type MemorizationSnapshot = JobSnapshot<MemorizationSubject>;

/// A memorization job as it is submitted.
#[derive(Clone, Debug)]
pub struct NewMemorization {
    pub request: MemorizationRequest,
    pub samples: SubmittedSamples,
    /// What the client calls this submission, so that it can send it again.
    pub idempotency_key: Option<String>,
    /// How long after its submission it must have ended.
    pub timeout: Option<Duration>,
}

impl MemorizationKind {
    /// Those that this scorer runs.
    #[must_use]
    pub fn new(scorer: Scorer) -> Self {
        Self { scorer }
    }
}

impl JobKind for MemorizationKind {
    const NAME: &'static str = "memorization job";
    // They share the engine's window of batch work with audits, so more of them would not be faster.
    const MOST_RUNNING: usize = 2;
    // Windows.
    const MOST_KEPT: usize = 4 * MOST_WINDOWS;
    const COUNTER: &'static str = names::MEMORIZATIONS;
    type Subject = MemorizationSubject;

    async fn run(&self, store: &Store, job: &ClaimedJob, local: &Arc<LocalRun>) -> Result<JobOutput, JobFailure> {
        let request: MemorizationRequest = serde_json::from_str(&job.request)
            .map_err(|error| StoreError::Damaged(format!("the request of memorization job {}: {error}", job.id)))?;
        let samples = SampleBlocks::of_job(store, job).await?.ok_or_else(JobFailure::dataset_gone)?;
        // What is scored stays on disk until the job has ended, so that to run it again costs no forward pass.
        let _hold = self.scorer.engine().hold_statistics(job.numerics.is_some());
        let scorer = self.scorer.called_by(&job.owner);
        let target = WindowScorer::open(&scorer, &request.model).await?;
        local.set_numerics(target.numerics());
        let progress = |progress: MemorizationProgress| {
            let MemorizationProgress { texts, windows, total_windows } = progress;
            local.set_note(Some(json!({ "windows": windows, "total_windows": total_windows }).to_string()));
            local.set_done(texts);
        };
        let report = run(&request, &samples, &target, progress).await?;
        Ok(encoded(report).await?)
    }
}

/// The report as it is stored. Megabytes of JSON are no work for the async runtime's threads.
async fn encoded(report: MemorizationReport) -> Result<JobOutput, MemorizationError> {
    let encoding = tokio::task::spawn_blocking(move || {
        let summaries = std::iter::once(&report.summary.texts).chain(&report.summary.control);
        let windows: usize = summaries.map(|summary| summary.windows).sum();
        let tokens = windows * report.windows.tokens();
        Ok::<_, serde_json::Error>(JobOutput {
            report: serde_json::to_string(&report)?,
            tokens,
            ..JobOutput::default()
        })
    });
    let unwritable = |error: &dyn std::error::Error| MemorizationError::Unwritable(error.to_string());
    encoding.await.map_err(|error| unwritable(&error))?.map_err(|error| unwritable(&error))
}

impl Memorizations {
    /// Accepts a job, which runs as soon as it is its turn; or finds the one that was submitted under the same key.
    pub async fn submit(&self, new: NewMemorization) -> Result<MemorizationSnapshot, JobError> {
        let NewMemorization { request, samples, idempotency_key, timeout } = new;
        let weight = weight(&request, &samples.totals()?);
        let subject = MemorizationSubject {
            model: request.model.clone(),
            dataset: samples.dataset_id(),
            texts: samples.totals()?.samples,
            control: request.control.len(),
        };
        self.enqueue(NewSubmission { subject, request, samples, weight, adapter: None, idempotency_key, timeout }).await
    }
}

/// How many windows the report has at most, and one for each text: a token has no fewer than one byte as a rule.
fn weight(request: &MemorizationRequest, totals: &SampleTotals) -> usize {
    let control: usize = request.control.iter().map(|work| work.text.len()).sum();
    let bytes = usize::try_from(totals.text_bytes).unwrap_or(usize::MAX).saturating_add(control);
    let windows = (bytes / request.windows.stride.max(1)).min(MOST_WINDOWS);
    windows.saturating_add(totals.samples).saturating_add(request.control.len())
}
