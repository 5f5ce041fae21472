//! `/v1/audits`: submitted, looked at, cancelled, deleted.

use super::audit_request::AuditBody;
use super::audit_scores;
use super::audit_view::{Audit, AuditList, location};
use super::client_state::ClientState;
use super::datasets::DatasetFile;
use super::extract::JsonBody;
use super::job_id::JobId;
use super::middleware::Arrival;
use super::problem::{Kind, Problem};
use super::problems::{ListProblems, LookProblems, StateProblems, SubmitProblems};
use super::sample_line::SampleLine;
use super::score_calibration;
use super::state::ApiState;
use super::{answer, dataset_check, job_events, job_list, job_request, plans};
use crate::audits::{AuditKind, AuditRequest, AuditSnapshot, Calibration, CalibrationSource, NewAudit};
use crate::datasets::SubmittedSamples;
use crate::scorer::{Plan, ScorerError};
use crate::store::JobStatus;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json};
use std::time::Duration;

/// How long a submission waits to see whether its methods fit the models.
const FIT_TIME: Duration = Duration::from_secs(2);

/// Submit an audit.
///
/// Scores all samples behind interactive work and reports how well each method tells members from non-members. Without
/// labels it is a scoring job. Four audits run at once; the others are queued in the order of their submission.
#[utoipa::path(
    post,
    path = "/v1/audits",
    operation_id = "submit_audit",
    tag = "audits",
    params(("Prefer" = Option<String>, Header,
        description = "`wait=N` waits up to N seconds, at most 600, for the audit to finish", example = "wait=60"),
        ("Idempotency-Key" = Option<String>, Header,
        description = "A name for this submission: the same again gives the same audit, another body is refused",
        example = "8c9a4d2e-books-2019")),
    request_body(content = AuditBody, example = json!({
        "samples": [
            { "id": "m", "text": "It was the best of times, it was the worst of times.", "label": 1 },
            { "id": "n", "text": "The committee met again on a rainy Tuesday.", "label": 0 }
        ],
        "methods": ["loss", { "name": "min_k", "k": 0.2, "pdr": { "decay": "linear", "alpha": 1.0 } }],
        "metrics": { "fpr_targets": [0.05] }
    })),
    responses(
        (status = 200, description = "The audit, finished within the time of `Prefer: wait=N`", body = Audit,
            headers(("Preference-Applied" = String, description = "The wait that was honoured"))),
        (status = 202, description = "The audit, not finished", body = Audit,
            headers(("Location" = String, description = "Where the audit is"),
                ("Preference-Applied" = String, description = "The wait that was honoured, if there was one"))),
        SubmitProblems
    ),
)]
pub async fn submit(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<AuditBody>,
) -> Result<Response, Problem> {
    let idempotency_key = job_request::idempotency_key(&headers)?;
    let dataset = job_request::named_dataset(&state.audits, body.dataset(), idempotency_key.as_deref()).await?;
    // Looking for texts that are audited and put before others hashes them all.
    let plan = body.plan().map(str::to_owned);
    let checking = state.clone();
    let new = state.scorer.workers().run(move || body.check(&checking, dataset)).await??;
    if let SubmittedSamples::Dataset(dataset) = &new.samples {
        dataset_check::methods_fit(&state, dataset, &new.request.methods).await?;
    }
    let calibration = match &new.request.evidence.calibration {
        Some(CalibrationSource::Stored(id)) => Some(score_calibration::named(&state, id).await?),
        _ => None,
    };
    check_fit(&state, &new.request, calibration.as_deref()).await?;
    let new = match plan {
        Some(plan) => plans::cite(&state, new, &plan).await?,
        None => new,
    };
    job_request::refuse_lost_work(&state)?;
    let audit = state.audits.submit(NewAudit { idempotency_key, ..new }).await?;
    let audit = job_request::awaited(&state, &state.audits, audit, &headers).await;
    let body = audit_answer(&state, &audit, arrival.id()).await?;
    Ok(job_request::accepted(&audit, location(audit.id), &headers, body))
}

/// The audit with its report, where there is one.
async fn audit_answer(state: &ApiState, audit: &AuditSnapshot, request_id: &str) -> Result<Response, Problem> {
    let report = match audit.status {
        JobStatus::Succeeded => state.audits.report(audit.id).await?,
        _ => None,
    };
    answer::json(state, Audit::new(audit, report, request_id)?).await
}

/// Refuses methods that the models or the calibration do not fit, where the models are open by now; otherwise the audit finds out.
async fn check_fit(state: &ApiState, request: &AuditRequest, calibration: Option<&Calibration>) -> Result<(), Problem> {
    match tokio::time::timeout(FIT_TIME, state.scorer.bind(&Plan::from(request))).await {
        Ok(Ok(bound)) => {
            calibration.map_or(Ok(()), |calibration| score_calibration::places(calibration, &bound).map(|_| ()))
        }
        Ok(Err(error @ (ScorerError::Unfit(_) | ScorerError::Masked(_)))) => Err(error.into()),
        _ => Ok(()),
    }
}

/// List the audits.
#[utoipa::path(
    get,
    path = "/v1/audits",
    operation_id = "list_audits",
    tag = "audits",
    params(
        ("status" = Option<JobStatus>, Query, description = "Only those that stand so"),
        ("model" = Option<String>, Query, description = "Only those of this model"),
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "The most audits of a page; 500 if left out"),
        ("after" = Option<String>, Query, description = "The `next` of the page before")
    ),
    responses((status = 200, description = "The audits without their results, newest first", body = AuditList), ListProblems)
)]
pub async fn list(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<AuditList>, Problem> {
    let query = job_list::query(&uri)?;
    Ok(Json(AuditList::new(&state.audits.list(&query).await?, arrival.id())))
}

/// Look at an audit.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}",
    operation_id = "get_audit",
    tag = "audits",
    params(("id" = String, Path, description = "Id of the audit")),
    responses((status = 200, description = "The audit as it stands", body = Audit), LookProblems)
)]
pub async fn get(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<AuditKind>,
) -> Result<Response, Problem> {
    let audit = state.audits.get(id).await?;
    audit_answer(&state, &audit, arrival.id()).await
}

/// The scores of an audit's samples.
///
/// One line a sample, in order. CSV has the columns index, id, label, group, scored_tokens, truncated and windows, one for each
/// method under its label, then alpha_used, which is empty or a JSON object, errors, which is empty or a JSON array, and what came
/// along with the samples. In CSV a text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return, which a spreadsheet would
/// take for a formula, has an apostrophe before it. Parquet has the same columns as CSV.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}/scores",
    operation_id = "get_audit_scores",
    tag = "audits",
    params(
        ("id" = String, Path, description = "Id of the audit"),
        ("Accept" = Option<String>, Header, description = "`application/x-ndjson`, `text/csv` or `application/vnd.apache.parquet`", example = "text/csv")
    ),
    responses(
        (status = 200, description = "The scores", content(
            (SampleLine = "application/x-ndjson"),
            (String = "text/csv"),
            (DatasetFile = "application/vnd.apache.parquet")
        )),
        StateProblems
    )
)]
pub async fn scores(
    ClientState(state): ClientState,
    JobId(id, _): JobId<AuditKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let audit = state.audits.get(id).await?;
    match state.audits.scores(id).await? {
        Some(scores) => audit_scores::respond(scores, &headers).await,
        None => {
            let detail = format!("the audit is {}; there are scores once it has succeeded", audit.status.name());
            Err(Problem::new(Kind::Conflict, detail))
        }
    }
}

/// Cancel an audit.
#[utoipa::path(
    post,
    path = "/v1/audits/{id}/cancel",
    operation_id = "cancel_audit",
    tag = "audits",
    params(("id" = String, Path, description = "Id of the audit")),
    responses((status = 200, description = "The audit, stopped", body = Audit), StateProblems)
)]
pub async fn cancel(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<AuditKind>,
) -> Result<Response, Problem> {
    let audit = state.audits.cancel(id).await?;
    audit_answer(&state, &audit, arrival.id()).await
}

/// Delete a finished audit.
#[utoipa::path(
    delete,
    path = "/v1/audits/{id}",
    operation_id = "delete_audit",
    tag = "audits",
    params(("id" = String, Path, description = "Id of the audit")),
    responses((status = 204, description = "The audit is gone"), StateProblems)
)]
pub async fn delete(ClientState(state): ClientState, JobId(id, _): JobId<AuditKind>) -> Result<StatusCode, Problem> {
    state.audits.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Follow an audit.
///
/// `progress` has `done` and `total`, `status` has `status`; both come once at the beginning and then with every change. Ids count
/// up: a client that sends the last one as `Last-Event-ID` gets what it has not seen. The stream ends after the final status.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}/events",
    operation_id = "follow_audit",
    tag = "audits",
    params(
        ("id" = String, Path, description = "Id of the audit"),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen", example = "7")
    ),
    responses(
        (status = 200, description = "The events, each with `id`, `event` and `data`, which is JSON", content_type = "text/event-stream"),
        LookProblems
    )
)]
pub async fn events(
    ClientState(state): ClientState,
    JobId(id, _): JobId<AuditKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    job_events::follow(&state, &state.audits, id, &headers).await
}
