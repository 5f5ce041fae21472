//! `/v1/finetunes`: LoRA adapters, tuned for the method `fsd`.

use super::finetune_request::FinetuneBody;
use super::jobs::{JobContext, JobDocument, JobResource, check};
use super::problem::Problem;
use super::state::ApiState;
use crate::finetunes::{FinetuneKind, FinetuneReport, FinetuneRequest, FinetuneSubject};
use crate::jobs::{JobError, Submission};
use crate::pool::adapted_id;
use crate::store::DatasetRow;
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
        let finetune = check(state, body, dataset).await?;
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
