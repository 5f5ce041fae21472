//! `GET /v1/{kind}/{id}/report`: the report of a job, as a page or as JSON.

use super::JobResource;
use crate::api::accept::preferred;
use crate::api::page::{self, HTML, JSON};
use crate::api::problem::{Kind, Problem};
use crate::api::state::ApiState;
use crate::jobs::{JobKind, JobSubject};
use crate::store::JobStatus;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use pages::{BYTES_PER_SCORE, MethodScores, Page, Provenance};
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// Memory that a report takes as values and as a page, in multiples of its JSON.
const COPIES: u64 = 40;

/// The report in the format that the client prefers; a page where it has no preference.
pub async fn respond<K: JobResource>(state: &ApiState, id: Uuid, headers: &HeaderMap) -> Result<Response, Problem> {
    let formats = [(HTML, true), (JSON, false)];
    let is_page = preferred(headers, formats).ok_or_else(|| Problem::not_acceptable(&[HTML, JSON]))?;
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
    // Megabytes of JSON are no work for the threads that serve connections.
    let parse = move || serde_json::from_str::<Value>(&report).map_err(Problem::internal);
    let report = state.scorer.workers().run(parse).await??;
    let scores = K::drawn_scores(state, id, &report).await?;
    let drawn: usize = scores.iter().map(MethodScores::count).sum();
    state.memory.grow_to(COPIES * bytes + BYTES_PER_SCORE * drawn as u64)?;
    let ended = job.finished_at.and_then(|time| time.format(&Rfc3339).ok());
    let model = Some(job.subject.summary().model.to_owned());
    let provenance = Provenance { job: Some(id.to_string()), ended, command: None, model };
    let kind = K::DOCUMENT.operation;
    let draw = move || Page { kind, report: &report, scores: &scores, provenance: &provenance }.html();
    let page = state.scorer.workers().run(draw).await?;
    Ok(page::answer(page))
}
