//! `/v1/finetunes`: LoRA adapters, tuned for the method `fsd`.

use super::check::{self, RequestFaults};
use super::conversations::SampleOrChat;
use super::jobs::request::{self, JobSamples, SampleList};
use super::jobs::{JobBody, JobContext, JobDocument, JobResource, checked};
use super::problem::Problem;
use super::state::ApiState;
use crate::config::{ID_RULE, is_id};
use crate::finetunes::{
    DEFAULT_SEED, FinetuneKind, FinetuneReport, FinetuneRequest, FinetuneSubject, tuning_texts_fault,
};
use crate::jobs::{JobError, Submission};
use crate::pool::adapted_id;
use crate::store::DatasetRow;
use crate::wire::Shaped;
use lm::models::tuning::{LoraSettings, OptimizerSettings};
use mia::json::Object;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A fine-tune beside what all jobs have.
#[derive(Serialize, ToSchema)]
pub struct FinetuneDetails {
    /// Name of the adapter among those of the model.
    #[schema(examples("unseen"))]
    name: String,
    /// Number of texts that the model is tuned on.
    texts: usize,
}

/// Progress of a fine-tune.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FinetuneProgress {
    /// Steps done.
    done: usize,
    /// All steps.
    total: usize,
    /// Loss of the last step; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
}

impl JobResource for FinetuneKind {
    const DOCUMENT: JobDocument = JobDocument {
        segment: "finetunes",
        about: "Texts that a model has not seen in, an adapter out",
        operation: "finetune",
        list: "finetunes",
        schema: "Finetune",
        has_results: true,
        serves_requests: true,
        description: "Tunes a LoRA adapter of a model on texts that the model has not seen, for the method `fsd`. Interactive requests go \
                      first. When the fine-tune succeeds, `<model>:<name>` is a model like others. The same request gives the same adapter, \
                      bit for bit, on one machine.",
        example: r#"{
            "name": "unseen",
            "dataset": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "lora": { "rank": 8 },
            "seed": 42
        }"#,
        progress: "`done` and `total` steps and, once there is one, the `loss` of the last step",
        cancellation: Some("The current step is finished; no adapter is kept."),
        deletion: Some("Its adapter stays; `DELETE /v1/models/{id}/adapters/{name}` deletes that."),
    };
    type Body = FinetuneBody;
    type Details = FinetuneDetails;
    type Progress = FinetuneProgress;
    type Report = FinetuneReport;

    fn with(context: &JobContext) -> Self {
        Self::new(context.scorer.clone(), context.shelf.clone())
    }

    async fn prepare(
        state: &ApiState,
        body: FinetuneBody,
        dataset: Option<DatasetRow>,
        idempotency_key: Option<&str>,
    ) -> Result<Submission<FinetuneRequest>, Problem> {
        let finetune = checked(state, body, dataset).await?;
        let is_repeated = match idempotency_key {
            Some(key) => state.jobs.kind::<FinetuneKind>()?.submitted_under(key).await?.is_some(),
            None => false,
        };
        if !is_repeated {
            refuse_taken_name(state, &finetune.request)?;
        }
        Ok(finetune)
    }

    fn details(
        FinetuneSubject { name, texts, .. }: FinetuneSubject,
        _: Option<&str>,
    ) -> Result<Self::Details, Problem> {
        Ok(FinetuneDetails { name, texts })
    }
}

/// Refuses the name of an adapter that the model has: of the settings, or of an earlier fine-tune.
fn refuse_taken_name(state: &ApiState, request: &FinetuneRequest) -> Result<(), JobError> {
    let FinetuneRequest { model, name, .. } = request;
    let id = adapted_id(model, name);
    if state.scorer.pool().ids().iter().any(|known| **known == *id) {
        return Err(JobError::NameTaken { model: model.clone(), name: name.clone() });
    }
    Ok(())
}

/// Texts that a model has not seen, and how to tune an adapter of it on them. What is left out is as FSD was published with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `name` and `samples` or `dataset`")]
#[schema(as = FinetuneRequest)]
pub struct FinetuneBody {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The name that the adapter gets among those of the model.
    #[schema(examples("unseen"), value_type = String)]
    name: Shaped<String>,
    /// The texts, none of them labelled a member; either they or `dataset`.
    #[schema(min_items = 8, value_type = Option<Vec<SampleOrChat>>)]
    #[serde(default, deserialize_with = "request::listed")]
    samples: Option<SampleList>,
    /// Id of a dataset that was uploaded, in place of `samples`.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), value_type = Option<String>)]
    dataset: Option<Shaped<String>>,
    /// The shape of the adapter.
    #[schema(value_type = Option<LoraSettings>)]
    lora: Option<Shaped<Object<LoraSettings>>>,
    /// Settings of the optimizer.
    #[schema(value_type = Option<OptimizerSettings>)]
    optimizer: Option<Shaped<Object<OptimizerSettings>>>,
    /// Seed of the order of the texts, the initial values and the dropped inputs; 42 if left out.
    #[schema(value_type = Option<u64>)]
    seed: Option<Shaped<u64>>,
    /// Maximum time from submission to the end, in seconds; the job fails after it. No limit if left out.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    timeout_seconds: Option<Shaped<u64>>,
}

impl JobBody for FinetuneBody {
    type Request = FinetuneRequest;

    fn dataset(&self) -> Option<&str> {
        request::named(self.dataset.as_ref())
    }

    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<FinetuneRequest>, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let submitted = JobSamples::new(self.samples, None, self.dataset, dataset, &mut faults)?;
        let name = check::shaped("/name", Some(self.name), &mut faults);
        if let Some(name) = name.as_ref().filter(|name| !is_id(name)) {
            faults.push("/name", format!("expected {ID_RULE}, found {name:?}"));
        }
        let name = name.unwrap_or_default();
        let settings = check::shaped("/lora", self.lora, &mut faults);
        let lora = settings.map(|Object(lora)| lora).unwrap_or_default();
        let settings = check::shaped("/optimizer", self.optimizer, &mut faults);
        let optimizer = settings.map(|Object(optimizer)| optimizer).unwrap_or_default();
        let seed = check::shaped("/seed", self.seed, &mut faults).unwrap_or(DEFAULT_SEED);
        let timeout = request::timeout(self.timeout_seconds, &mut faults);
        if let Some(model) = &model
            && let Some(untunable) = state.scorer.untunable(model)
        {
            faults.push("/model", format!("no adapter can be tuned of model `{}`, {untunable}", model.id));
        }
        let model = model.map(|model| model.id.clone());
        if let Some(model) = model.as_ref().filter(|model| model.contains(':')) {
            faults.push("/model", format!("`{model}` is tuned itself; name the model without its adapter"));
        }
        let request = FinetuneRequest { model: model.unwrap_or_default(), name, lora, optimizer, seed };
        faults.extend_below("", request.faults());
        if faults.is_empty() {
            submitted.refuse(tuning_texts_fault(&submitted.totals, &request), &mut faults);
        }
        faults.finish()?;
        Ok(Submission { request, name: None, samples: submitted.samples, idempotency_key: None, timeout })
    }
}
