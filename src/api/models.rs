//! `/v1/models`: the configured models and their states; loading and unloading by hand. `/v1/methods`: the catalogue of methods.

use super::extract::PathNames;
use super::middleware::Arrival;
use super::model_view::{DeviceEntry, ModelEntry, ModelList};
use super::problem::Problem;
use super::problem::responses::{ListProblems, LoadProblems, MethodProblems};
use super::query::parameters;
use super::state::{ApiState, ClientState};
use crate::access::KeyScope;
use crate::engine::DeviceStatus;
use crate::finetunes::FinetuneKind;
use crate::pool::{ModelStatus, UnknownModel};
use axum::http::{StatusCode, Uri};
use axum::{Extension, Json};
use mia::methods::{Catalogue, catalogue};

/// List the models.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "list_models",
    tag = "service",
    responses((status = 200, description = "The models in the order of the configuration", body = ModelList), ListProblems)
)]
pub async fn models(ClientState(state): ClientState) -> Json<ModelList> {
    let devices = state.scorer.engine().status().devices;
    let models = state.scorer.pool().status();
    let models = models.iter().map(|status| entry(&state, status, &devices)).collect();
    let devices = devices.iter().map(|device| DeviceEntry::new(device, tells_reasons(&state))).collect();
    Json(ModelList { models, devices })
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
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    PathNames(id): PathNames<String>,
) -> Result<Json<ModelEntry>, Problem> {
    let (pool, name) = (state.scorer.pool().clone(), state.scorer.pool().find(Some(&id))?.id.clone());
    // On a task of its own: a client that goes away does not stop what it asked for.
    let loading = tokio::spawn(async move { pool.load(&id).await });
    arrival
        .in_time(state.request_timeout, loading)
        .await
        .ok_or_else(Problem::deadline)?
        .map_err(Problem::internal)??;
    shown(&state, &name)
}

/// Unload a model.
///
/// Requests already queued for it are finished and its memory is freed before the answer is sent. Meanwhile new requests for
/// the model are refused with 503; the next one after that loads it again. For a model under an adapter, only the adapter is
/// closed: at once, or not at all while requests run under it.
#[utoipa::path(
    post,
    path = "/v1/models/{id}/unload",
    operation_id = "unload_model",
    tag = "service",
    params(("id" = String, Path, description = "Id of a configured model", example = "demo")),
    responses((status = 200, description = "The model, unloaded", body = ModelEntry), LoadProblems)
)]
pub async fn unload(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    PathNames(id): PathNames<String>,
) -> Result<Json<ModelEntry>, Problem> {
    let (pool, name) = (state.scorer.pool().clone(), state.scorer.pool().find(Some(&id))?.id.clone());
    let unloading = tokio::spawn(async move { pool.unload(&id).await });
    arrival
        .in_time(state.request_timeout, unloading)
        .await
        .ok_or_else(Problem::deadline)?
        .map_err(Problem::internal)??;
    shown(&state, &name)
}

/// Remove an adapter.
///
/// Requests cannot name it any more. One that a fine-tune made is deleted; one of the settings is gone until the service starts
/// again, and its files stay where they are. An adapter that requests or unfinished jobs use stays.
#[utoipa::path(
    delete,
    path = "/v1/models/{id}/adapters/{name}",
    operation_id = "remove_adapter",
    tag = "service",
    params(
        ("id" = String, Path, description = "Id of a configured model", example = "demo"),
        ("name" = String, Path, description = "Name of one of its adapters", example = "tuned")
    ),
    responses((status = 204, description = "The adapter is gone"), LoadProblems)
)]
pub async fn remove_adapter(
    ClientState(state): ClientState,
    PathNames((id, name)): PathNames<(String, String)>,
) -> Result<StatusCode, Problem> {
    state.jobs.kind::<FinetuneKind>()?.kind().shelf().remove(&id, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(state: &ApiState, id: &str) -> Result<Json<ModelEntry>, Problem> {
    let devices = state.scorer.engine().status().devices;
    // It may have been removed meanwhile.
    let status = state.scorer.pool().status_of(id).ok_or_else(|| UnknownModel(id.to_owned()))?;
    Ok(Json(entry(state, &status, &devices)))
}

fn entry(state: &ApiState, status: &ModelStatus, devices: &[DeviceStatus]) -> ModelEntry {
    let is_default = state.scorer.pool().default_id().as_ref() == Some(&status.declaration.id);
    ModelEntry::new(status, devices, is_default, tells_reasons(state))
}

/// Returns true if the client may see why a model or a device failed: the reason may have paths in it, and texts of other servers.
fn tells_reasons(state: &ApiState) -> bool {
    state.client.may(KeyScope::Admin)
}

/// List the methods.
///
/// Every method and every positional decay with its parameters, defaults and ranges. With `model`, those that it does not have say
/// why.
#[utoipa::path(
    get,
    path = "/v1/methods",
    operation_id = "list_methods",
    tag = "service",
    params(("model" = Option<String>, Query, description = "Id of a configured model", example = "demo")),
    responses((status = 200, description = "The methods and decays", body = Catalogue), MethodProblems)
)]
pub async fn methods(ClientState(state): ClientState, uri: Uri) -> Result<Json<Catalogue>, Problem> {
    let model = parameters(&uri).into_iter().find(|(name, _)| name == "model").map(|(_, id)| id);
    let Some(id) = model else { return Ok(Json(catalogue())) };
    let (ids, declaration) = (state.scorer.pool().ids(), state.scorer.pool().find(Some(&id))?);
    let scope = state.scorer.scope(&ids, Some(&declaration), false, false);
    Ok(Json(catalogue().for_model(&scope)))
}
