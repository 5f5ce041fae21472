//! Fine-tunes as jobs.

use super::request::{FinetuneRequest, tuning_texts_fault};
use super::run::{Finetuned, TuningRun};
use super::shelf::AdapterShelf;
use crate::datasets::{SampleTotals, estimated_tokens};
use crate::jobs::{
    FailureKind, JobError, JobFailure, JobKind, JobRequest, JobRun, JobSubject, JobSummary, Submission, encoded,
};
use crate::pool::{OpenError, Retry, adapted_id};
use crate::scorer::Scorer;
use crate::store::{AdapterFiles, AdapterName, AdapterRow, JobOutput};
use crate::telemetry::names;
use futures::TryStreamExt;
use lm::models::tuning::StepReport;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// Fine-tunes as a kind of job.
pub struct FinetuneKind {
    scorer: Scorer,
    shelf: AdapterShelf,
}

impl FinetuneKind {
    /// Fine-tunes of the models of this scorer, whose adapters go there.
    #[must_use]
    pub fn new(scorer: Scorer, shelf: AdapterShelf) -> Self {
        Self { scorer, shelf }
    }

    /// The adapters that were made.
    #[must_use]
    pub fn shelf(&self) -> &AdapterShelf {
        &self.shelf
    }
}

impl JobKind for FinetuneKind {
    const NAME: &'static str = "fine-tune";
    // Each takes all threads, and memory.
    const MOST_RUNNING: usize = 1;
    // Steps.
    const MOST_KEPT: usize = 1_000_000;
    const COUNTER: &'static str = names::FINETUNES;
    type Request = FinetuneRequest;

    async fn run(&self, job: JobRun<'_, FinetuneRequest>) -> Result<JobOutput, JobFailure> {
        let request = FinetuneRequest::clone(&job.request);
        let texts = job.samples.samples().map_ok(|(_, sample)| sample.text).try_collect().await?;
        let opened = self.scorer.pool().open(&request.model, Retry::AfterPause).await;
        let model = opened.map_err(|error| unopened(&error))?;
        let base_digest = model.info.digest.clone();
        let noted = Arc::clone(job.local);
        let on_step = move |step: &StepReport, _: usize| {
            noted.set_note(Some(json!({ "loss": step.loss }).to_string()));
            noted.set_done(step.step);
        };
        let engine = self.scorer.engine().clone();
        let name = AdapterName { model: request.model.clone(), name: request.name.clone() };
        let tuned = TuningRun { engine, model, request, texts }.run(on_step).await?;
        let report = FinetuneReport::new(adapted_id(&name.model, &name.name), base_digest.clone(), &tuned);
        // In the pool before it is said to be there.
        let adapter = AdapterRow { id: job.id(), name, base_digest: base_digest.clone() };
        if let Err(error) = self.shelf.add(&adapter) {
            // The adapter is kept; it comes into the pool once the name is free there.
            tracing::warn!(job = %job.id(), %error, "the adapter is in the store, but not in use");
        }
        let files = tuned.files.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
        let (tokens, adapter) = (report.tokens, Some(AdapterFiles { base_digest, files }));
        encoded(move || {
            Ok(JobOutput { report: serde_json::to_string(&report)?, tokens, adapter, ..JobOutput::default() })
        })
        .await
    }
}

fn unopened(error: &OpenError) -> JobFailure {
    match error {
        OpenError::UnknownModel(_) => JobFailure::told(FailureKind::UnknownModel, error),
        _ => JobFailure::kept_back(FailureKind::ModelFailed, "model", error),
    }
}

/// Subject of a fine-tune.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinetuneSubject {
    /// Id of the model.
    pub model: String,
    /// The name of the adapter.
    pub name: String,
    /// Id of the dataset; none for samples that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of texts.
    pub texts: usize,
    /// Number of steps.
    pub steps: usize,
}

impl JobRequest for FinetuneRequest {
    type Subject = FinetuneSubject;

    fn subject(job: &Submission<Self>, totals: &SampleTotals) -> FinetuneSubject {
        FinetuneSubject {
            model: job.request.model.clone(),
            name: job.request.name.clone(),
            dataset: job.samples.dataset_id(),
            texts: totals.samples,
            steps: job.request.steps(totals.samples),
        }
    }

    fn weight(&self, totals: &SampleTotals) -> Result<usize, JobError> {
        match tuning_texts_fault(totals, self) {
            Some(fault) => Err(JobError::Internal(format!("unchecked texts: {fault}"))),
            None => Ok(self.steps(totals.samples)),
        }
    }

    fn tokens(&self, totals: &SampleTotals) -> u64 {
        estimated_tokens(totals.text_bytes).saturating_mul(self.optimizer.epochs as u64)
    }

    fn adapter(&self) -> Option<AdapterName> {
        Some(AdapterName { model: self.model.clone(), name: self.name.clone() })
    }
}

impl JobSubject for FinetuneSubject {
    fn summary(&self) -> JobSummary<'_> {
        let samples = SampleTotals { samples: self.texts, ..SampleTotals::default() };
        let Self { name, model, dataset, steps, .. } = self;
        JobSummary { name: Some(name), model, dataset: dataset.as_deref(), samples, total: *steps }
    }
}

/// Report of a fine-tune.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinetuneReport {
    /// The id of the model under the adapter, `<model>:<adapter>`.
    #[schema(examples("demo:unseen"))]
    pub adapter: String,
    /// SHA-256 over the adapter's settings and tensors.
    pub digest: String,
    /// SHA-256 over configuration and weights of the model that was tuned.
    pub base_digest: String,
    /// Tokens that ran, in all steps together.
    pub tokens: usize,
    /// Result of every step.
    pub steps: Vec<FinetuneStep>,
}

impl FinetuneReport {
    /// The report of an adapter with this id, of a model with this digest.
    pub fn new(adapter: String, base_digest: String, tuned: &Finetuned) -> Self {
        let tokens = tuned.steps.iter().map(|step| step.tokens).sum();
        let steps = tuned.steps.iter().map(FinetuneStep::from).collect();
        Self { adapter, digest: tuned.digest.clone(), base_digest, tokens, steps }
    }
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinetuneStep {
    /// Counted from 1.
    pub step: usize,
    /// Mean cross-entropy of the scored tokens in nats, before the step.
    pub loss: f64,
    pub learning_rate: f64,
    /// Norm of the gradient before it was clipped.
    pub gradient_norm: f64,
}

impl From<&StepReport> for FinetuneStep {
    fn from(report: &StepReport) -> Self {
        let StepReport { step, loss, learning_rate, gradient_norm, .. } = *report;
        Self { step, loss, learning_rate, gradient_norm }
    }
}
