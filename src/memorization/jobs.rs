//! Memorization measurements as jobs.

use super::request::{MOST_WINDOWS, MemorizationRequest};
use super::run::{MemorizationProgress, run};
use super::window_scorer::WindowScorer;
use crate::datasets::{SampleTotals, estimated_tokens};
use crate::jobs::{JobError, JobFailure, JobKind, JobRequest, JobRun, JobSubject, JobSummary, Submission, encoded};
use crate::scorer::Scorer;
use crate::store::JobOutput;
use crate::telemetry::names;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Memorization measurements as a kind of job.
pub struct MemorizationKind {
    scorer: Scorer,
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
    type Request = MemorizationRequest;

    async fn run(&self, job: JobRun<'_, MemorizationRequest>) -> Result<JobOutput, JobFailure> {
        // Scored statistics stay on disk until the job has ended, so that scoring the windows again costs no forward pass.
        let _hold = self.scorer.engine().hold_statistics(job.is_resumed());
        let scorer = job.scorer(&self.scorer);
        let target = WindowScorer::open(&scorer, &job.request.model).await?;
        job.local.set_numerics(target.numerics());
        let progress = |progress: MemorizationProgress| {
            let MemorizationProgress { texts, windows, total_windows, cost } = progress;
            let note = json!({ "windows": windows, "total_windows": total_windows, "total_tokens": cost.tokens });
            job.local.set_note(Some(note.to_string()));
            job.local.set_done(texts);
        };
        let report = run(&job.request, &job.samples, &target, progress).await?;
        let tokens = report.cost.tokens;
        encoded(move || Ok(JobOutput { report: serde_json::to_string(&report)?, tokens, ..JobOutput::default() })).await
    }
}

/// Subject of a memorization job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorizationSubject {
    /// Id of the model.
    pub model: String,
    /// Id of the dataset; none for texts that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of texts.
    pub texts: usize,
    /// Number of texts of the control.
    pub control: usize,
}

impl JobRequest for MemorizationRequest {
    type Subject = MemorizationSubject;

    fn subject(job: &Submission<Self>, totals: &SampleTotals) -> MemorizationSubject {
        MemorizationSubject {
            model: job.request.model.clone(),
            dataset: job.samples.dataset_id(),
            texts: totals.samples,
            control: job.request.control.len(),
        }
    }

    /// Maximum number of windows of the report, one for each text, and the tokens of continuations: a token has no fewer than one
    /// byte as a rule.
    fn weight(&self, totals: &SampleTotals) -> Result<usize, JobError> {
        let bytes = usize::try_from(self.bytes(totals)).unwrap_or(usize::MAX);
        let windows = (bytes / self.windows.stride.max(1)).min(MOST_WINDOWS);
        let texts = totals.samples.saturating_add(self.control.len());
        let written = self.continued_tokens(totals);
        Ok(windows.saturating_add(texts).saturating_add(written))
    }

    fn tokens(&self, totals: &SampleTotals) -> u64 {
        estimated_tokens(self.bytes(totals)).saturating_add(self.continued_tokens(totals) as u64)
    }
}

impl MemorizationRequest {
    /// Bytes of the texts and of the control.
    fn bytes(&self, totals: &SampleTotals) -> u64 {
        let control: usize = self.control.iter().map(|work| work.text.len()).sum();
        totals.text_bytes.saturating_add(control as u64)
    }

    /// Tokens that the model writes at most.
    fn continued_tokens(&self, totals: &SampleTotals) -> usize {
        let texts = totals.samples.saturating_add(self.control.len());
        self.continuation.map_or(0, |settings| settings.tokens.saturating_mul(texts))
    }
}

impl JobSubject for MemorizationSubject {
    fn summary(&self) -> JobSummary<'_> {
        JobSummary {
            name: None,
            model: &self.model,
            dataset: self.dataset.as_deref(),
            samples: SampleTotals { samples: self.texts, ..SampleTotals::default() },
            total: self.texts + self.control,
        }
    }
}
