//! `GET /v1/models`: what is configured and where it stands.

use super::ApiState;
use crate::engine::{ModelState, ModelStatus};
use crate::scorer::Model;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// In the order of the configuration.
    models: Vec<ModelEntry>,
}

/// One model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    /// What requests call it.
    id: String,
    state: StateName,
    /// Why the last attempt to load it failed, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Whether it serves requests that name no model.
    default: bool,
    /// When it is loaded.
    load: LoadName,
    /// Value of `model_type` in its configuration.
    #[schema(examples("gpt_neox"))]
    architecture: &'static str,
    /// The most tokens of a text.
    context: usize,
    /// Outputs of its head.
    vocab_size: usize,
    /// The type it computes in.
    #[schema(examples("f32"))]
    dtype: &'static str,
    /// Where it runs.
    #[schema(examples("cpu"))]
    device: String,
    /// SHA-256 over configuration and weights.
    digest: String,
    /// SHA-256 of the tokenizer.
    tokenizer_digest: String,
    /// Bytes of the weights once loaded.
    weight_bytes: u64,
    /// The default reference model, where one is configured.
    reference: Option<String>,
}

/// Where a model stands.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Not in memory; the first request loads it.
    Unloaded,
    /// Being loaded, or waiting for its turn at start.
    Loading,
    /// In memory.
    Ready,
    /// The last attempt to load it failed; a later request tries again.
    Failed,
}

/// When a model is loaded.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadName {
    /// At start.
    Eager,
    /// By the first request.
    Lazy,
}

impl From<&ModelState> for StateName {
    fn from(state: &ModelState) -> Self {
        match state {
            ModelState::Unloaded => Self::Unloaded,
            ModelState::Loading => Self::Loading,
            ModelState::Ready => Self::Ready,
            ModelState::Failed(_) => Self::Failed,
        }
    }
}

impl ModelEntry {
    fn new(model: &Model, status: &ModelStatus, default: bool) -> Self {
        let reason = match &status.state {
            ModelState::Failed(reason) => Some(reason.clone()),
            ModelState::Unloaded | ModelState::Loading | ModelState::Ready => None,
        };
        Self {
            id: model.id.clone(),
            state: (&status.state).into(),
            reason,
            default,
            load: if status.eager { LoadName::Eager } else { LoadName::Lazy },
            architecture: model.architecture,
            context: model.context,
            vocab_size: model.vocab_size,
            dtype: model.dtype,
            device: model.device.clone(),
            digest: model.digest.clone(),
            tokenizer_digest: model.tokenizer_digest.clone(),
            weight_bytes: model.weight_bytes,
            reference: model.reference.clone(),
        }
    }
}

/// List the models.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "list_models",
    tag = "service",
    responses((status = 200, description = "The models in the order of the configuration", body = ModelList))
)]
pub async fn models(State(state): State<ApiState>) -> Json<ModelList> {
    let (registry, status) = (state.scorer.registry(), state.scorer.engine().status());
    let entry = |status: &ModelStatus| {
        let model = registry.all().iter().find(|model| model.id == status.id)?;
        Some(ModelEntry::new(model, status, registry.default_id() == Some(model.id.as_str())))
    };
    Json(ModelList { models: status.models.iter().filter_map(entry).collect() })
}
