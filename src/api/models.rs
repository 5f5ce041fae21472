//! `/v1/models`: what is configured and where it stands; loading and unloading by hand.

use super::ApiState;
use super::middleware::Arrival;
use super::model_view::{DeviceEntry, ModelEntry, ModelList};
use super::problem::Problem;
use super::problems::{LoadProblems, UnloadProblems};
use crate::engine::{DeviceStatus, EngineStatus, ModelState, ModelStatus};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use tokio::task::JoinHandle;

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
