//! `GET /v1/{kind}/{id}/report`: the report of a job, as a page or as JSON.

use super::JobResource;
use super::routes::JobId;
use crate::api::accept::preferred;
use crate::api::problem::{Kind, Problem};
use crate::api::state::ClientState;
use crate::jobs::JobKind;
use crate::store::JobStatus;
use ::report::{MethodScores, Page, Provenance};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use time::format_description::well_known::Rfc3339;

pub const HTML: &str = "text/html";
pub const JSON: &str = "application/json";

/// The media type of a page as it is sent.
const HTML_UTF8: &str = "text/html; charset=utf-8";

/// A page runs nothing and loads nothing, whatever a text in it tries.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Memory that a report takes as values and as a page, in multiples of its JSON.
const COPIES: u64 = 12;

/// Memory that a score takes while a curve is made of it, in bytes: sorted with its label, as a tie and as a point of the curve.
pub const DRAWN_BYTES: u64 = 128;

/// The report in the format that the client prefers; a page where it has no preference.
pub async fn get<K: JobResource>(
    ClientState(state): ClientState,
    JobId(id, _): JobId<K>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let formats = [(HTML, true), (JSON, false)];
    let is_page = preferred(&headers, formats).ok_or_else(|| Problem::not_acceptable(&[HTML, JSON]))?;
    let jobs = state.jobs.kind::<K>()?;
    let job = jobs.get(id).await?;
    let report = match job.status {
        JobStatus::Succeeded => jobs.report(id).await?,
        _ => None,
    };
    let Some(report) = report else {
        let (noun, status) = (<K as JobKind>::NAME, job.status.name());
        return Err(Problem::new(
            Kind::Conflict,
            format!("the {noun} is {status}; it has a report once it has succeeded"),
        ));
    };
    let bytes = report.len() as u64;
    if !is_page {
        state.memory.grow_to(2 * bytes)?;
        return Ok(([(header::CONTENT_TYPE, JSON), (header::VARY, "accept")], report).into_response());
    }
    state.memory.grow_to(COPIES * bytes)?;
    let report: Value = serde_json::from_str(&report).map_err(Problem::internal)?;
    let scores = K::drawn_scores(&state, id, &report).await?;
    let drawn: usize = scores.iter().map(MethodScores::count).sum();
    state.memory.grow_to(COPIES * bytes + DRAWN_BYTES * drawn as u64)?;
    let ended = job.finished_at.and_then(|time| time.format(&Rfc3339).ok());
    let provenance = Provenance { job: Some(id.to_string()), ended, command: None };
    let kind = K::DOCUMENT.operation;
    let draw = move || Page { kind, report: &report, scores: &scores, provenance: &provenance }.html();
    let page = tokio::task::spawn_blocking(draw).await.map_err(Problem::internal)?;
    let headers = [
        (header::CONTENT_TYPE, HTML_UTF8),
        (header::VARY, "accept"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, page).into_response())
}
