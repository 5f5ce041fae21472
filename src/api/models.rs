//! `/v1/models`: what is configured, where it stands, and loading and unloading by hand.

use super::ApiState;
use super::middleware::Arrival;
use super::problem::Problem;
use super::problems::{LoadProblems, UnloadProblems};
use crate::engine::{DeviceStatus, EngineStatus, ModelState, ModelStatus};
use crate::hub::Progress;
use crate::scorer::{Entry, Model, Opening, Origin};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Serialize;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// In the order of the configuration.
    models: Vec<ModelEntry>,
    /// The devices that they share.
    devices: Vec<DeviceEntry>,
}

/// One device.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeviceEntry {
    #[schema(examples("cpu"))]
    name: String,
    /// What the models on it may take, weights and the activations of one batch.
    memory_budget_bytes: u64,
    /// The weights on it.
    memory_used_bytes: u64,
}

/// One model. What its files say is null until they are open.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    /// What requests call it.
    id: String,
    state: StateName,
    /// Why the last attempt to open or load it failed, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How far its download is, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    download: Option<Download>,
    /// Whether it serves requests that name no model.
    default: bool,
    /// When it is loaded.
    load: LoadName,
    /// Whether it stays in memory when others need room: eager models and those that the configuration pins.
    pinned: bool,
    /// The directory or repository that its files come from; null where they are part of the program.
    #[schema(examples("EleutherAI/pythia-160m"))]
    source: Option<String>,
    /// The branch, tag or commit that the configuration asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// The devices that hold it now.
    resident: Vec<String>,
    /// The default reference model, where one is configured.
    reference: Option<String>,
    #[serde(flatten)]
    opened: OpenedEntry,
}

/// What the files of a model say.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct OpenedEntry {
    /// `causal` models score texts; `masked` ones serve to make neighbours.
    #[schema(examples("causal"))]
    kind: Option<&'static str>,
    /// Value of `model_type` in its configuration.
    #[schema(examples("gpt_neox"))]
    architecture: Option<&'static str>,
    /// The most tokens of a text; null where there is no limit.
    context: Option<usize>,
    /// Outputs of its head.
    vocab_size: Option<usize>,
    /// The type it computes in.
    #[schema(examples("f32"))]
    dtype: Option<&'static str>,
    /// Where it runs; several devices are separated by commas.
    #[schema(examples("cpu"))]
    device: Option<String>,
    /// SHA-256 over configuration and weights.
    digest: Option<String>,
    /// SHA-256 of the tokenizer.
    tokenizer_digest: Option<String>,
    /// Bytes of the weights once loaded.
    weight_bytes: Option<u64>,
    /// The commit of a model from the Hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

/// How far a download is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Download {
    /// Bytes that are there.
    bytes: u64,
    /// Bytes of all files; 0 until they are known.
    total_bytes: u64,
}

/// Where a model stands.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Not in memory; the first request loads it.
    Unloaded,
    /// Its files are being fetched, read or loaded, or it waits for its turn.
    Loading,
    /// In memory.
    Ready,
    /// Being unloaded: what is queued for it is finished, new requests are refused.
    Draining,
    /// The last attempt to open or load it failed; a later request tries again.
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
            ModelState::Draining => Self::Draining,
            ModelState::Failed(_) => Self::Failed,
        }
    }
}

impl From<&Model> for OpenedEntry {
    fn from(model: &Model) -> Self {
        Self {
            kind: Some(if model.masked { "masked" } else { "causal" }),
            architecture: Some(model.architecture),
            context: model.context,
            vocab_size: Some(model.vocab_size),
            dtype: Some(model.dtype),
            device: Some(model.device.clone()),
            digest: Some(model.digest.clone()),
            tokenizer_digest: Some(model.tokenizer_digest.clone()),
            weight_bytes: Some(model.weight_bytes),
            commit: model.commit.clone(),
        }
    }
}

impl From<&Progress> for Download {
    fn from(progress: &Progress) -> Self {
        Self { bytes: progress.done(), total_bytes: progress.total() }
    }
}

impl From<&DeviceStatus> for DeviceEntry {
    fn from(device: &DeviceStatus) -> Self {
        let (memory_budget_bytes, memory_used_bytes) = (device.memory_budget, device.memory_used);
        Self { name: device.name.clone(), memory_budget_bytes, memory_used_bytes }
    }
}

impl ModelEntry {
    fn new(entry: &Entry, status: &ModelStatus, devices: &[DeviceStatus], default: bool) -> Self {
        let declared = &entry.declared;
        let opening = entry.opening();
        // While its files are being fetched or read the engine knows nothing new of it.
        let (state, reason) = match (&opening, &status.state) {
            (Opening::Running(_), _) => (StateName::Loading, None),
            (Opening::Failed { error, .. }, _) => (StateName::Failed, Some(error.to_string())),
            (_, ModelState::Failed(reason)) => (StateName::Failed, Some(reason.clone())),
            (_, state) => (state.into(), None),
        };
        let (source, revision) = match &declared.origin {
            Origin::Configured { source, revision } => (Some(source.text.clone()), revision.clone()),
            Origin::Files(_) => (None, None),
        };
        let name = |&place: &usize| devices.get(place).map(|device| device.name.clone());
        Self {
            id: declared.id.clone(),
            state,
            reason,
            download: match &opening {
                Opening::Running(progress) if progress.total() > 0 => Some((&**progress).into()),
                _ => None,
            },
            default,
            load: if declared.eager { LoadName::Eager } else { LoadName::Lazy },
            pinned: declared.eager || declared.pinned,
            source,
            revision,
            resident: status.resident.iter().filter_map(name).collect(),
            reference: declared.reference.clone(),
            opened: match &opening {
                Opening::Open(model) => model.as_ref().into(),
                _ => OpenedEntry::default(),
            },
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
    let EngineStatus { models, devices, .. } = state.scorer.engine().status();
    let entries = models.iter().filter_map(|status| entry(&state, status, &devices));
    Json(ModelList { models: entries.collect(), devices: devices.iter().map(DeviceEntry::from).collect() })
}

/// Load a model.
///
/// Opens its files anew (those of a repository are fetched where they are missing) unless it is loaded, and answers when
/// it can serve. If that takes longer than a request may, it goes on all the same.
#[utoipa::path(
    post,
    path = "/v1/models/{id}/load",
    operation_id = "load_model",
    tag = "service",
    params(("id" = String, Path, description = "Id of a configured model", example = "demo")),
    responses((status = 200, description = "The model, loaded", body = ModelEntry), LoadProblems)
)]
pub async fn load(
    State(state): State<ApiState>,
    Extension(arrival): Extension<Arrival>,
    Path(id): Path<String>,
) -> Result<Json<ModelEntry>, Problem> {
    let entry = state.scorer.registry().find(Some(&id))?;
    let (engine, name) = (state.scorer.engine().clone(), id.clone());
    // On a task of its own: a client that goes away does not stop what it asked for.
    let loading = tokio::spawn(async move {
        let is_ready = engine.status().models.iter().any(|model| model.id == id && model.state == ModelState::Ready);
        if !is_ready {
            entry.reopen().await?;
        }
        Ok::<_, Problem>(engine.load(&id).await?)
    });
    in_time(&state, arrival, loading).await??;
    shown(&state, &name)
}

/// Unload a model.
///
/// What is queued for it is finished, its memory is given back, and then it answers. Meanwhile requests for the model are
/// refused with 503; after that the next one loads it again.
#[utoipa::path(
    post,
    path = "/v1/models/{id}/unload",
    operation_id = "unload_model",
    tag = "service",
    params(("id" = String, Path, description = "Id of a configured model", example = "demo")),
    responses((status = 200, description = "The model, unloaded", body = ModelEntry), UnloadProblems)
)]
pub async fn unload(
    State(state): State<ApiState>,
    Extension(arrival): Extension<Arrival>,
    Path(id): Path<String>,
) -> Result<Json<ModelEntry>, Problem> {
    let entry = state.scorer.registry().find(Some(&id))?;
    let engine = state.scorer.engine().clone();
    let unloading = tokio::spawn(async move { engine.unload(&id).await });
    in_time(&state, arrival, unloading).await??;
    shown(&state, entry.id())
}

/// Waits for the task as long as a request may take; the task goes on after that.
async fn in_time<T>(state: &ApiState, arrival: Arrival, task: JoinHandle<T>) -> Result<T, Problem> {
    let ended = match arrival.deadline(state.request_timeout) {
        Some(at) => tokio::time::timeout_at(at.into(), task).await.map_err(|_| Problem::deadline())?,
        None => task.await,
    };
    ended.map_err(Problem::internal)
}

fn shown(state: &ApiState, id: &str) -> Result<Json<ModelEntry>, Problem> {
    let EngineStatus { models, devices, .. } = state.scorer.engine().status();
    let status = models.iter().find(|status| status.id == id);
    let shown = status.and_then(|status| entry(state, status, &devices));
    shown.map(Json).ok_or_else(|| Problem::internal("a model is known to the registry and not to the engine"))
}

fn entry(state: &ApiState, status: &ModelStatus, devices: &[DeviceStatus]) -> Option<ModelEntry> {
    let registry = state.scorer.registry();
    let entry = registry.all().iter().find(|entry| entry.id() == status.id)?;
    Some(ModelEntry::new(entry, status, devices, registry.default_id() == Some(entry.id())))
}
