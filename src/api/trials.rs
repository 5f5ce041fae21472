//! `/v1/tests`: submitted, looked at, cancelled, deleted.

use super::client_state::ClientState;
use super::extract::JsonBody;
use super::job_id::JobId;
use super::middleware::Arrival;
use super::problem::Problem;
use super::problems::{ListProblems, LookProblems, StateProblems, SubmitProblems};
use super::state::ApiState;
use super::trial_request::TrialBody;
use super::trial_view::{TrialList, TrialView, location};
use super::{answer, job_events, job_list, job_request};
use crate::audits::{NewTrial, TrialJob, TrialSubject};
use crate::jobs::JobSnapshot;
use crate::store::JobStatus;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};

/// Submit a test that needs no threshold.
///
/// Scores all texts behind interactive work and computes the p-value of the result under the null hypothesis of the test.
/// `dataset` compares suspects with held-out texts of the same source (Mann and Whitney), `paired` published texts with private
/// rewrites (permutations of which text was published), `rank` canaries with their twins (the exact distribution of the sum of
/// ranks), and `order` the published order of the items of shards with random orders (Student's t).
#[utoipa::path(
    post,
    path = "/v1/tests",
    operation_id = "submit_test",
    tag = "tests",
    params(("Prefer" = Option<String>, Header,
        description = "`wait=N` waits up to N seconds, at most 600, for the test to finish", example = "wait=60"),
        ("Idempotency-Key" = Option<String>, Header,
        description = "A name for this submission: the same again gives the same test, another body is refused",
        example = "8c9a4d2e-books-2019")),
    request_body(content = TrialBody, example = json!({
        "kind": "rank",
        "canaries": [{ "text": "The brass clock struck nine in Fallowfield.",
            "twins": ["The tin clock struck four in Fallowfield.", "The oak clock struck two in Fallowfield."] }],
        "methods": ["loss"]
    })),
    responses(
        (status = 200, description = "The test, finished within the time of `Prefer: wait=N`", body = TrialView,
            headers(("Preference-Applied" = String, description = "The wait that was honoured"))),
        (status = 202, description = "The test, not finished", body = TrialView,
            headers(("Location" = String, description = "Where the test is"),
                ("Preference-Applied" = String, description = "The wait that was honoured, if there was one"))),
        SubmitProblems
    ),
)]
pub async fn submit(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<TrialBody>,
) -> Result<Response, Problem> {
    let idempotency_key = job_request::idempotency_key(&headers)?;
    let dataset = job_request::named_dataset(&state.trials, body.dataset(), idempotency_key.as_deref()).await?;
    let checking = state.clone();
    let new = state.scorer.workers().run(move || body.check(&checking, dataset)).await??;
    job_request::refuse_lost_work(&state)?;
    let trial = state.trials.submit(NewTrial { idempotency_key, ..new }).await?;
    let trial = job_request::awaited(&state, &state.trials, trial, &headers).await;
    let body = trial_answer(&state, &trial, arrival.id()).await?;
    Ok(job_request::accepted(&trial, location(trial.id), &headers, body))
}

/// The test with its report, where there is one.
async fn trial_answer(
    state: &ApiState,
    trial: &JobSnapshot<TrialSubject>,
    request_id: &str,
) -> Result<Response, Problem> {
    let report = match trial.status {
        JobStatus::Succeeded => state.trials.report(trial.id).await?,
        _ => None,
    };
    answer::json(state, TrialView::new(trial, report, request_id)?).await
}

/// List the tests.
#[utoipa::path(
    get,
    path = "/v1/tests",
    operation_id = "list_tests",
    tag = "tests",
    params(
        ("status" = Option<JobStatus>, Query, description = "Only those that stand so"),
        ("model" = Option<String>, Query, description = "Only those of this model"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "The most tests of a page; 500 if left out"),
        ("after" = Option<String>, Query, description = "The `next` of the page before")
    ),
    responses((status = 200, description = "The tests, newest first, without their results", body = TrialList), ListProblems)
)]
pub async fn list(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<TrialList>, Problem> {
    let query = job_list::query(&uri)?;
    Ok(Json(TrialList::new(&state.trials.list(&query).await?, arrival.id())))
}

/// Look at a test.
#[utoipa::path(
    get,
    path = "/v1/tests/{id}",
    operation_id = "get_test",
    tag = "tests",
    params(("id" = String, Path, description = "Id of the test")),
    responses((status = 200, description = "The test as it stands", body = TrialView), LookProblems)
)]
pub async fn get(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<TrialJob>,
) -> Result<Response, Problem> {
    let trial = state.trials.get(id).await?;
    trial_answer(&state, &trial, arrival.id()).await
}

/// Cancel a test.
#[utoipa::path(
    post,
    path = "/v1/tests/{id}/cancel",
    operation_id = "cancel_test",
    tag = "tests",
    params(("id" = String, Path, description = "Id of the test")),
    responses((status = 200, description = "The test, stopped", body = TrialView), StateProblems)
)]
pub async fn cancel(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<TrialJob>,
) -> Result<Response, Problem> {
    let trial = state.trials.cancel(id).await?;
    trial_answer(&state, &trial, arrival.id()).await
}

/// Delete a finished test.
#[utoipa::path(
    delete,
    path = "/v1/tests/{id}",
    operation_id = "delete_test",
    tag = "tests",
    params(("id" = String, Path, description = "Id of the test")),
    responses((status = 204, description = "The test is gone"), StateProblems)
)]
pub async fn delete(ClientState(state): ClientState, JobId(id, _): JobId<TrialJob>) -> Result<StatusCode, Problem> {
    state.trials.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a test.
///
/// `progress` has `done` and `total` texts, and `status` has `status`. Both come once at the beginning and then with changes. Ids count
/// up: a client that sends the last one as `Last-Event-ID` gets what it has not seen. The stream ends after the final status.
#[utoipa::path(
    get,
    path = "/v1/tests/{id}/events",
    operation_id = "follow_test",
    tag = "tests",
    params(
        ("id" = String, Path, description = "Id of the test"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen", example = "7")
    ),
    responses(
        (status = 200, description = "The events, each with `id`, `event` and `data`, which is JSON", content_type = "text/event-stream"),
        LookProblems
    )
)]
pub async fn events(
    ClientState(state): ClientState,
    JobId(id, _): JobId<TrialJob>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    job_events::follow(&state, &state.trials, id, &headers).await
}
