//! `/v1/finetunes`: submitted, looked at, cancelled, deleted.

use super::client_state::ClientState;
use super::extract::JsonBody;
use super::finetune_request::FinetuneBody;
use super::finetune_view::{Finetune, FinetuneList, location};
use super::job_id::JobId;
use super::middleware::Arrival;
use super::problem::Problem;
use super::problems::{ListProblems, LookProblems, StateProblems, SubmitProblems};
use super::state::ApiState;
use super::{answer, job_events, job_list, job_request};
use crate::finetunes::{FinetuneKind, FinetuneRequest, FinetuneSnapshot, NewFinetune};
use crate::jobs::JobError;
use crate::pool::adapted_id;
use crate::store::JobStatus;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};

/// Submit a fine-tune.
///
/// Tunes a LoRA adapter of a model on texts that the model has not seen, for the method `fsd`. Interactive requests go first. When it
/// succeeds, `<model>:<name>` is a model like others. The same request gives the same adapter, bit for bit, on one machine.
#[utoipa::path(
    post,
    path = "/v1/finetunes",
    operation_id = "submit_finetune",
    tag = "finetunes",
    params(("Prefer" = Option<String>, Header,
        description = "`wait=N` waits up to N seconds, at most 600, for the fine-tune to finish", example = "wait=60"),
        ("Idempotency-Key" = Option<String>, Header,
        description = "A name for this submission: the same again gives the same fine-tune, another body is refused",
        example = "8c9a4d2e-books-2019")),
    request_body(content = FinetuneBody, example = json!({
        "name": "unseen",
        "dataset": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "lora": { "rank": 8 },
        "seed": 42
    })),
    responses(
        (status = 200, description = "The fine-tune, finished within the time of `Prefer: wait=N`", body = Finetune,
            headers(("Preference-Applied" = String, description = "The wait that was honoured"))),
        (status = 202, description = "The fine-tune, not finished", body = Finetune,
            headers(("Location" = String, description = "Where the fine-tune is"),
                ("Preference-Applied" = String, description = "The wait that was honoured, if there was one"))),
        SubmitProblems
    ),
)]
pub async fn submit(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<FinetuneBody>,
) -> Result<Response, Problem> {
    let idempotency_key = job_request::idempotency_key(&headers)?;
    let dataset = job_request::named_dataset(&state.finetunes, body.dataset(), idempotency_key.as_deref()).await?;
    let checking = state.clone();
    let new = state.scorer.workers().run(move || body.check(&checking, dataset)).await??;
    let is_repeated = match &idempotency_key {
        Some(key) => state.finetunes.submitted_under(key).await?.is_some(),
        None => false,
    };
    if !is_repeated {
        refuse_taken_name(&state, &new.request)?;
    }
    job_request::refuse_lost_work(&state)?;
    let finetune = state.finetunes.submit(NewFinetune { idempotency_key, ..new }).await?;
    let finetune = job_request::awaited(&state, &state.finetunes, finetune, &headers).await;
    let body = finetune_answer(&state, &finetune, arrival.id()).await?;
    Ok(job_request::accepted(&finetune, location(finetune.id), &headers, body))
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

/// The fine-tune with its report, where there is one.
async fn finetune_answer(state: &ApiState, finetune: &FinetuneSnapshot, request_id: &str) -> Result<Response, Problem> {
    let report = match finetune.status {
        JobStatus::Succeeded => state.finetunes.report(finetune.id).await?,
        _ => None,
    };
    answer::json(state, Finetune::new(finetune, report, request_id)?).await
}

/// List the fine-tunes.
#[utoipa::path(
    get,
    path = "/v1/finetunes",
    operation_id = "list_finetunes",
    tag = "finetunes",
    params(
        ("status" = Option<JobStatus>, Query, description = "Only those that stand so"),
        ("model" = Option<String>, Query, description = "Only those of this model"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "The most fine-tunes of a page; 500 if left out"),
        ("after" = Option<String>, Query, description = "The `next` of the page before")
    ),
    responses((status = 200, description = "The fine-tunes without their results, newest first", body = FinetuneList), ListProblems)
)]
pub async fn list(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<FinetuneList>, Problem> {
    let query = job_list::query(&uri)?;
    Ok(Json(FinetuneList::new(&state.finetunes.list(&query).await?, arrival.id())))
}

/// Look at a fine-tune.
#[utoipa::path(
    get,
    path = "/v1/finetunes/{id}",
    operation_id = "get_finetune",
    tag = "finetunes",
    params(("id" = String, Path, description = "Id of the fine-tune")),
    responses((status = 200, description = "The fine-tune as it stands", body = Finetune), LookProblems)
)]
pub async fn get(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<FinetuneKind>,
) -> Result<Response, Problem> {
    let finetune = state.finetunes.get(id).await?;
    finetune_answer(&state, &finetune, arrival.id()).await
}

/// Cancel a fine-tune.
///
/// The step that it is at is finished; nothing is kept.
#[utoipa::path(
    post,
    path = "/v1/finetunes/{id}/cancel",
    operation_id = "cancel_finetune",
    tag = "finetunes",
    params(("id" = String, Path, description = "Id of the fine-tune")),
    responses((status = 200, description = "The fine-tune, stopped", body = Finetune), StateProblems)
)]
pub async fn cancel(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<FinetuneKind>,
) -> Result<Response, Problem> {
    let finetune = state.finetunes.cancel(id).await?;
    finetune_answer(&state, &finetune, arrival.id()).await
}

/// Delete a finished fine-tune.
///
/// Its adapter stays; `DELETE /v1/models/{id}/adapters/{name}` deletes that.
#[utoipa::path(
    delete,
    path = "/v1/finetunes/{id}",
    operation_id = "delete_finetune",
    tag = "finetunes",
    params(("id" = String, Path, description = "Id of the fine-tune")),
    responses((status = 204, description = "The fine-tune is gone"), StateProblems)
)]
pub async fn delete(ClientState(state): ClientState, JobId(id, _): JobId<FinetuneKind>) -> Result<StatusCode, Problem> {
    state.finetunes.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a fine-tune.
///
/// `progress` has `done` and `total` steps and, once there is one, the `loss` of the last step; `status` has `status`. Both come once
/// at the beginning and then with changes. Ids count up: a client that sends the last one as `Last-Event-ID` gets what it has not
/// seen. The stream ends after the final status.
#[utoipa::path(
    get,
    path = "/v1/finetunes/{id}/events",
    operation_id = "follow_finetune",
    tag = "finetunes",
    params(
        ("id" = String, Path, description = "Id of the fine-tune"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen", example = "7")
    ),
    responses(
        (status = 200, description = "The events, each with `id`, `event` and `data`, which is JSON", content_type = "text/event-stream"),
        LookProblems
    )
)]
pub async fn events(
    ClientState(state): ClientState,
    JobId(id, _): JobId<FinetuneKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    job_events::follow(&state, &state.finetunes, id, &headers).await
}
