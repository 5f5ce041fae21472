//! Fine-tunes as jobs.

use super::report::{FinetuneReport, FinetuneStep};
use super::request::FinetuneRequest;
use super::run::Finetuned;
use super::shelf::AdapterShelf;
use super::subject::FinetuneSubject;
use super::texts::tuning_texts_fault;
use super::tuning::TuningRun;
use crate::datasets::SampleTotals;
use crate::jobs::{FailureKind, JobError, JobFailure, JobKind, JobRun, Submission, encoded};
use crate::pool::{OpenError, Retry, adapted_id};
use crate::scorer::Scorer;
use crate::store::{AdapterFiles, AdapterName, AdapterRow, JobOutput};
use crate::telemetry::names;
use futures::TryStreamExt;
use lm::models::tuning::StepReport;
use serde_json::json;
use std::sync::Arc;

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
    type Subject = FinetuneSubject;

    fn subject(job: &Submission<FinetuneRequest>, totals: &SampleTotals) -> FinetuneSubject {
        FinetuneSubject {
            model: job.request.model.clone(),
            name: job.request.name.clone(),
            dataset: job.samples.dataset_id(),
            texts: totals.samples,
            steps: job.request.steps(totals.samples),
        }
    }

    fn weight(request: &FinetuneRequest, totals: &SampleTotals) -> Result<usize, JobError> {
        match tuning_texts_fault(totals, request) {
            Some(fault) => Err(JobError::Internal(format!("unchecked texts: {fault}"))),
            None => Ok(request.steps(totals.samples)),
        }
    }

    fn adapter(request: &FinetuneRequest) -> Option<AdapterName> {
        Some(AdapterName { model: request.model.clone(), name: request.name.clone() })
    }

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
        let report = report(&name, &base_digest, &tuned);
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

fn report(name: &AdapterName, base_digest: &str, tuned: &Finetuned) -> FinetuneReport {
    FinetuneReport {
        adapter: adapted_id(&name.model, &name.name),
        digest: tuned.digest.clone(),
        base_digest: base_digest.to_owned(),
        tokens: tuned.steps.iter().map(|step| step.tokens).sum(),
        steps: tuned.steps.iter().map(FinetuneStep::from).collect(),
    }
}

fn unopened(error: &OpenError) -> JobFailure {
    match error {
        OpenError::UnknownModel(_) => JobFailure::told(FailureKind::UnknownModel, error),
        _ => JobFailure::kept_back(FailureKind::ModelFailed, "model", error),
    }
}
