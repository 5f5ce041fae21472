//! `/v1/memorization`: submitted, looked at, cancelled, deleted.

use super::client_state::ClientState;
use super::extract::JsonBody;
use super::job_id::JobId;
use super::memorization_request::MemorizationBody;
use super::memorization_view::{Memorization, MemorizationList, location};
use super::middleware::Arrival;
use super::problem::Problem;
use super::problems::{ListProblems, LookProblems, StateProblems, SubmitProblems};
use super::state::ApiState;
use super::{answer, job_events, job_list, job_request};
use crate::memorization::{
    MemorizationError, MemorizationKind, MemorizationRequest, MemorizationSnapshot, NewMemorization, WindowScorer,
};
use crate::scorer::ScorerError;
use crate::store::JobStatus;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};
use std::time::Duration;

/// How long a submission waits to see whether its windows fit the model.
const FIT_TIME: Duration = Duration::from_secs(2);

/// Submit a memorization job.
///
/// Cuts every text into windows of a prefix and a suffix, and reports how likely the model is to continue the prefix with the
/// suffix, word by word; and the same for texts that the model cannot have seen, the control. Interactive requests go first.
#[utoipa::path(
    post,
    path = "/v1/memorization",
    operation_id = "submit_memorization",
    tag = "memorization",
    params(("Prefer" = Option<String>, Header,
        description = "`wait=N` waits up to N seconds, at most 600, for the job to finish", example = "wait=60"),
        ("Idempotency-Key" = Option<String>, Header,
        description = "A name for this submission: the same again gives the same job, another body is refused",
        example = "8c9a4d2e-books-2019")),
    request_body(content = MemorizationBody, example = json!({
        "texts": [
            { "id": "dickens", "text": "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness." }
        ],
        "control": ["The committee met again on a rainy Tuesday, and nobody had read the minutes of the meeting before."],
        "prefix": 8,
        "suffix": 8,
        "stride": 4
    })),
    responses(
        (status = 200, description = "The job, finished within the time of `Prefer: wait=N`", body = Memorization,
            headers(("Preference-Applied" = String, description = "The wait that was honoured"))),
        (status = 202, description = "The job, not finished", body = Memorization,
            headers(("Location" = String, description = "Where the job is"),
                ("Preference-Applied" = String, description = "The wait that was honoured, if there was one"))),
        SubmitProblems
    ),
)]
pub async fn submit(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<MemorizationBody>,
) -> Result<Response, Problem> {
    let idempotency_key = job_request::idempotency_key(&headers)?;
    let dataset = job_request::named_dataset(&state.memorizations, body.dataset(), idempotency_key.as_deref()).await?;
    let checking = state.clone();
    let new = state.scorer.workers().run(move || body.check(&checking, dataset)).await??;
    check_fit(&state, &new.request).await?;
    job_request::refuse_lost_work(&state)?;
    let job = state.memorizations.submit(NewMemorization { idempotency_key, ..new }).await?;
    let job = job_request::awaited(&state, &state.memorizations, job, &headers).await;
    let body = job_answer(&state, &job, arrival.id()).await?;
    Ok(job_request::accepted(&job, location(job.id), &headers, body))
}

/// Refuses windows that do not fit the model, where it is open by now; otherwise the job finds out.
async fn check_fit(state: &ApiState, request: &MemorizationRequest) -> Result<(), Problem> {
    let fit = async { WindowScorer::open(&state.scorer, &request.model).await?.check(request.windows).await };
    match tokio::time::timeout(FIT_TIME, fit).await {
        Ok(Err(MemorizationError::Scorer(error @ ScorerError::Masked(_)))) => Err(error.into()),
        Ok(Err(error @ MemorizationError::WindowTooLong { .. })) => Err(Problem::fault("/prefix", error.to_string())),
        _ => Ok(()),
    }
}

/// The job with its report, where there is one.
async fn job_answer(state: &ApiState, job: &MemorizationSnapshot, request_id: &str) -> Result<Response, Problem> {
    let report = match job.status {
        JobStatus::Succeeded => state.memorizations.report(job.id).await?,
        _ => None,
    };
    answer::json(state, Memorization::new(job, report, request_id)?).await
}

/// List the memorization jobs.
#[utoipa::path(
    get,
    path = "/v1/memorization",
    operation_id = "list_memorization",
    tag = "memorization",
    params(
        ("status" = Option<JobStatus>, Query, description = "Only those that stand so"),
        ("model" = Option<String>, Query, description = "Only those of this model"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "The most jobs of a page; 500 if left out"),
        ("after" = Option<String>, Query, description = "The `next` of the page before")
    ),
    responses((status = 200, description = "The jobs without their results, newest first", body = MemorizationList), ListProblems)
)]
pub async fn list(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<MemorizationList>, Problem> {
    let query = job_list::query(&uri)?;
    Ok(Json(MemorizationList::new(&state.memorizations.list(&query).await?, arrival.id())))
}

/// Look at a memorization job.
#[utoipa::path(
    get,
    path = "/v1/memorization/{id}",
    operation_id = "get_memorization",
    tag = "memorization",
    params(("id" = String, Path, description = "Id of the job")),
    responses((status = 200, description = "The job as it stands", body = Memorization), LookProblems)
)]
pub async fn get(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<MemorizationKind>,
) -> Result<Response, Problem> {
    let job = state.memorizations.get(id).await?;
    job_answer(&state, &job, arrival.id()).await
}

/// Cancel a memorization job.
#[utoipa::path(
    post,
    path = "/v1/memorization/{id}/cancel",
    operation_id = "cancel_memorization",
    tag = "memorization",
    params(("id" = String, Path, description = "Id of the job")),
    responses((status = 200, description = "The job, stopped", body = Memorization), StateProblems)
)]
pub async fn cancel(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<MemorizationKind>,
) -> Result<Response, Problem> {
    let job = state.memorizations.cancel(id).await?;
    job_answer(&state, &job, arrival.id()).await
}

/// Delete a finished memorization job.
#[utoipa::path(
    delete,
    path = "/v1/memorization/{id}",
    operation_id = "delete_memorization",
    tag = "memorization",
    params(("id" = String, Path, description = "Id of the job")),
    responses((status = 204, description = "The job is gone"), StateProblems)
)]
pub async fn delete(
    ClientState(state): ClientState,
    JobId(id, _): JobId<MemorizationKind>,
) -> Result<StatusCode, Problem> {
    state.memorizations.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a memorization job.
///
/// `progress` has `done` and `total` texts and, once they are counted, `windows` and `total_windows`; `status` has `status`. Both
/// come once at the beginning and then with changes. Ids count up: a client that sends the last one as `Last-Event-ID` gets what it
/// has not seen. The stream ends after the final status.
#[utoipa::path(
    get,
    path = "/v1/memorization/{id}/events",
    operation_id = "follow_memorization",
    tag = "memorization",
    params(
        ("id" = String, Path, description = "Id of the job"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen", example = "7")
    ),
    responses(
        (status = 200, description = "The events, each with `id`, `event` and `data`, which is JSON", content_type = "text/event-stream"),
        LookProblems
    )
)]
pub async fn events(
    ClientState(state): ClientState,
    JobId(id, _): JobId<MemorizationKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    job_events::follow(&state, &state.memorizations, id, &headers).await
}
