//! Fine-tunes as jobs.

use super::report::{FinetuneReport, FinetuneStep};
use super::request::FinetuneRequest;
use super::run::Finetuned;
use super::shelf::AdapterShelf;
use super::subject::FinetuneSubject;
use super::texts::tuning_texts_fault;
use super::tuning::TuningRun;
use crate::datasets::{SampleBlocks, SubmittedSamples};
use crate::jobs::{FailureKind, JobError, JobFailure, JobKind, JobSnapshot, Jobs, LocalRun, NewSubmission};
use crate::pool::{OpenError, Retry, adapted_id};
use crate::scorer::Scorer;
use crate::store::{AdapterFiles, AdapterName, AdapterRow, ClaimedJob, JobOutput, Store, StoreError};
use crate::telemetry::names;
use futures::TryStreamExt;
use lm::models::tuning::StepReport;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Fine-tunes as a kind of job.
pub struct FinetuneKind {
    scorer: Scorer,
    shelf: AdapterShelf,
}

/// All fine-tunes; cheap to clone.
pub type Finetunes = Jobs<FinetuneKind>;

/// A fine-tune as it stands.
pub type FinetuneSnapshot = JobSnapshot<FinetuneSubject>;

/// A fine-tune as it is submitted.
#[derive(Clone, Debug)]
pub struct NewFinetune {
    pub request: FinetuneRequest,
    pub samples: SubmittedSamples,
    /// What the client calls this submission, so that it can send it again.
    pub idempotency_key: Option<String>,
    /// How long after its submission it must have ended.
    pub timeout: Option<Duration>,
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
    type Subject = FinetuneSubject;

    async fn run(&self, store: &Store, job: &ClaimedJob, local: &Arc<LocalRun>) -> Result<JobOutput, JobFailure> {
        let request: FinetuneRequest = serde_json::from_str(&job.request)
            .map_err(|error| StoreError::Damaged(format!("the request of fine-tune {}: {error}", job.id)))?;
        let samples = SampleBlocks::of_job(store, job).await?.ok_or_else(JobFailure::dataset_gone)?;
        let texts = samples.samples().map_ok(|(_, sample)| sample.text).try_collect().await?;
        let opened = self.scorer.pool().open(&request.model, Retry::AfterPause).await;
        let model = opened.map_err(|error| unopened(&error))?;
        let base_digest = model.info.digest.clone();
        let noted = Arc::clone(local);
        let on_step = move |step: &StepReport, _: usize| {
            noted.set_note(Some(json!({ "loss": step.loss }).to_string()));
            noted.set_done(step.step);
        };
        let engine = self.scorer.engine().clone();
        let name = AdapterName { model: request.model.clone(), name: request.name.clone() };
        let tuned = TuningRun { engine, model, request, texts }.run(on_step).await?;
        let report = report(&name, &base_digest, &tuned);
        // In the pool before it is said to be there.
        let adapter = AdapterRow { id: job.id, name, base_digest: base_digest.clone() };
        if let Err(error) = self.shelf.add(&adapter) {
            // What is made is kept; it comes into the pool once the name is free there.
            tracing::warn!(job = %job.id, %error, "the adapter is in the store, but not in use");
        }
        let files = tuned.files.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
        Ok(JobOutput {
            tokens: report.tokens,
            report: serde_json::to_string(&report)
                .map_err(|error| JobFailure::kept_back(FailureKind::Internal, "service", &error))?,
            adapter: Some(AdapterFiles { base_digest, files }),
            ..JobOutput::default()
        })
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

impl Finetunes {
    /// Accepts a fine-tune, which runs as soon as it is its turn; or finds the one that was submitted under the same key. The
    /// name of its adapter is taken from then on.
    ///
    /// # Errors
    /// [`JobError`]; [`JobError::NameTaken`] where the model has an adapter of the name, or is to get one.
    pub async fn submit(&self, finetune: NewFinetune) -> Result<FinetuneSnapshot, JobError> {
        let NewFinetune { request, samples, idempotency_key, timeout } = finetune;
        let totals = samples.totals()?;
        if let Some(fault) = tuning_texts_fault(&totals, &request) {
            return Err(JobError::Internal(format!("unchecked texts: {fault}")));
        }
        let (model, name) = (request.model.clone(), request.name.clone());
        let steps = request.steps(totals.samples);
        let subject = FinetuneSubject { model, name, dataset: samples.dataset_id(), texts: totals.samples, steps };
        let adapter = AdapterName { model: subject.model.clone(), name: subject.name.clone() };
        let adapter = Some(adapter);
        self.enqueue(NewSubmission { subject, request, samples, weight: steps, adapter, idempotency_key, timeout })
            .await
    }
}
