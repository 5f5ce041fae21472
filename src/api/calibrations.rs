//! `/v1/calibrations`: submitted, looked at, cancelled, deleted.

use super::calibration_request::CalibrationBody;
use super::calibration_view::{CalibrationList, CalibrationView, location};
use super::client_state::ClientState;
use super::extract::JsonBody;
use super::job_id::JobId;
use super::middleware::Arrival;
use super::problem::Problem;
use super::problems::{ListProblems, LookProblems, StateProblems, SubmitProblems};
use super::state::ApiState;
use super::{answer, job_events, job_list, job_request};
use crate::audits::{AuditSnapshot, CalibrationKind, NewCalibration};
use crate::store::JobStatus;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};

/// Submit a calibration.
///
/// Scores known non-members behind interactive work and keeps the scores, so that those of other texts get p-values: the id goes into
/// `calibration` of `/v1/score` and `/v1/audits`. P-values hold for texts that would be like the known non-members had the model not
/// been trained on them: of the same kind, date, length and cut.
#[utoipa::path(
    post,
    path = "/v1/calibrations",
    operation_id = "submit_calibration",
    tag = "calibrations",
    params(("Prefer" = Option<String>, Header,
        description = "`wait=N` waits up to N seconds, at most 600, for the calibration to finish", example = "wait=60"),
        ("Idempotency-Key" = Option<String>, Header,
        description = "A name for this submission: the same again gives the same calibration, another body is refused",
        example = "8c9a4d2e-books-2019")),
    request_body(content = CalibrationBody, example = json!({
        "dataset": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "methods": ["min_k_plus_plus"]
    })),
    responses(
        (status = 200, description = "The calibration, finished within the time of `Prefer: wait=N`", body = CalibrationView,
            headers(("Preference-Applied" = String, description = "The wait that was honoured"))),
        (status = 202, description = "The calibration, not finished", body = CalibrationView,
            headers(("Location" = String, description = "Where the calibration is"),
                ("Preference-Applied" = String, description = "The wait that was honoured, if there was one"))),
        SubmitProblems
    ),
)]
pub async fn submit(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<CalibrationBody>,
) -> Result<Response, Problem> {
    let idempotency_key = job_request::idempotency_key(&headers)?;
    let dataset = job_request::named_dataset(&state.calibrations, body.dataset(), idempotency_key.as_deref()).await?;
    let checking = state.clone();
    let new = state.scorer.workers().run(move || body.check(&checking, dataset)).await??;
    job_request::refuse_lost_work(&state)?;
    let calibration = state.calibrations.submit(NewCalibration { idempotency_key, ..new }).await?;
    let calibration = job_request::awaited(&state, &state.calibrations, calibration, &headers).await;
    let body = calibration_answer(&state, &calibration, arrival.id()).await?;
    Ok(job_request::accepted(&calibration, location(calibration.id), &headers, body))
}

/// The calibration with its report, where there is one.
async fn calibration_answer(
    state: &ApiState,
    calibration: &AuditSnapshot,
    request_id: &str,
) -> Result<Response, Problem> {
    let report = match calibration.status {
        JobStatus::Succeeded => state.calibrations.report(calibration.id).await?,
        _ => None,
    };
    answer::json(state, CalibrationView::new(calibration, report.as_deref(), request_id)?).await
}

/// List the calibrations.
#[utoipa::path(
    get,
    path = "/v1/calibrations",
    operation_id = "list_calibrations",
    tag = "calibrations",
    params(
        ("status" = Option<JobStatus>, Query, description = "Only those that stand so"),
        ("model" = Option<String>, Query, description = "Only those of this model"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "The most calibrations of a page; 500 if left out"),
        ("after" = Option<String>, Query, description = "The `next` of the page before")
    ),
    responses((status = 200, description = "The calibrations, newest first, without sizes", body = CalibrationList), ListProblems)
)]
pub async fn list(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<CalibrationList>, Problem> {
    let query = job_list::query(&uri)?;
    Ok(Json(CalibrationList::new(&state.calibrations.list(&query).await?, arrival.id())?))
}

/// Look at a calibration.
#[utoipa::path(
    get,
    path = "/v1/calibrations/{id}",
    operation_id = "get_calibration",
    tag = "calibrations",
    params(("id" = String, Path, description = "Id of the calibration")),
    responses((status = 200, description = "The calibration as it stands", body = CalibrationView), LookProblems)
)]
pub async fn get(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<CalibrationKind>,
) -> Result<Response, Problem> {
    let calibration = state.calibrations.get(id).await?;
    calibration_answer(&state, &calibration, arrival.id()).await
}

/// Cancel a calibration.
#[utoipa::path(
    post,
    path = "/v1/calibrations/{id}/cancel",
    operation_id = "cancel_calibration",
    tag = "calibrations",
    params(("id" = String, Path, description = "Id of the calibration")),
    responses((status = 200, description = "The calibration, stopped", body = CalibrationView), StateProblems)
)]
pub async fn cancel(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<CalibrationKind>,
) -> Result<Response, Problem> {
    let calibration = state.calibrations.cancel(id).await?;
    calibration_answer(&state, &calibration, arrival.id()).await
}

/// Delete a finished calibration.
///
/// Audits that are done keep the p-values that they have of it; those that are to use it yet will fail.
#[utoipa::path(
    delete,
    path = "/v1/calibrations/{id}",
    operation_id = "delete_calibration",
    tag = "calibrations",
    params(("id" = String, Path, description = "Id of the calibration")),
    responses((status = 204, description = "The calibration is gone"), StateProblems)
)]
pub async fn delete(
    ClientState(state): ClientState,
    JobId(id, _): JobId<CalibrationKind>,
) -> Result<StatusCode, Problem> {
    state.calibrations.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow a calibration.
///
/// `progress` has `done` and `total` texts, and `status` has `status`. Both come once at the beginning and then with changes. Ids count
/// up: a client that sends the last one as `Last-Event-ID` gets what it has not seen. The stream ends after the final status.
#[utoipa::path(
    get,
    path = "/v1/calibrations/{id}/events",
    operation_id = "follow_calibration",
    tag = "calibrations",
    params(
        ("id" = String, Path, description = "Id of the calibration"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen", example = "7")
    ),
    responses(
        (status = 200, description = "The events, each with `id`, `event` and `data`, which is JSON", content_type = "text/event-stream"),
        LookProblems
    )
)]
pub async fn events(
    ClientState(state): ClientState,
    JobId(id, _): JobId<CalibrationKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    job_events::follow(&state, &state.calibrations, id, &headers).await
}
