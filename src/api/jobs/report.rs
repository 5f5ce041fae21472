//! `GET /v1/{kind}/{id}/report`: the report of a job, as a page, as JSON or signed.

use super::JobResource;
use crate::api::accept::preferred;
use crate::api::page::{self, BUNDLE, DSSE, HTML, JSON};
use crate::api::problem::{Kind, Problem};
use crate::api::query::read_parameters;
use crate::api::state::ApiState;
use crate::audits::MOST_STRIPS;
use crate::jobs::{JobKind, JobSnapshot, JobSubject, Subject};
use crate::store::JobStatus;
use attestation::{RunTimes, sign_eval_result, sign_report};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use pages::{BYTES_PER_SCORE, Page, Provenance};
use serde_json::Value;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// Memory that a report takes as values and as a page, in multiples of its JSON.
const COPIES: u64 = 40;

/// Memory that a report takes while it is signed, in multiples of its JSON.
const SIGNED_COPIES: u64 = 24;

/// Memory that a token takes as a value and on a page.
const BYTES_PER_TOKEN: u64 = 600;

#[derive(Clone, Copy)]
enum ReportMedia {
    Page,
    Json,
    Signed,
    Bundle,
}

/// The report in the format that the client prefers; a page where it has no preference.
pub async fn respond<K: JobResource>(
    state: &ApiState,
    id: Uuid,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let texts = texts(uri)?;
    let formats = [
        (HTML, ReportMedia::Page),
        (JSON, ReportMedia::Json),
        (DSSE, ReportMedia::Signed),
        (BUNDLE, ReportMedia::Bundle),
    ];
    let format = preferred(headers, formats).ok_or_else(|| Problem::not_acceptable(&[HTML, JSON, DSSE, BUNDLE]))?;
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
    match format {
        ReportMedia::Page => page::<K>(state, &job, report, texts).await,
        ReportMedia::Json => {
            state.memory.grow_to(2 * bytes)?;
            Ok(([(header::CONTENT_TYPE, JSON), (header::VARY, "accept")], report).into_response())
        }
        ReportMedia::Signed => signed::<K>(state, &job, report, DSSE).await,
        ReportMedia::Bundle => signed::<K>(state, &job, report, BUNDLE).await,
    }
}

async fn page<K: JobResource>(
    state: &ApiState,
    job: &JobSnapshot<Subject<K>>,
    report: String,
    texts: usize,
) -> Result<Response, Problem> {
    let bytes = report.len() as u64;
    state.memory.grow_to(COPIES * bytes)?;
    // Megabytes of JSON are no work for the threads that serve connections.
    let parse = move || serde_json::from_str::<Value>(&report).map_err(Problem::internal);
    let report = state.scorer.workers().run(parse).await??;
    let scores = K::drawn_scores(state, job.id, &report).await?;
    let texts = if texts > 0 { K::text_strips(state, job.id, &report, texts).await? } else { Vec::new() };
    let tokens: usize = texts.iter().map(|text| text.tokens.len()).sum();
    state.memory.grow_to(COPIES * bytes + BYTES_PER_SCORE * scores.count() as u64 + BYTES_PER_TOKEN * tokens as u64)?;
    let ended = rfc3339(job.finished_at);
    let model = Some(job.subject.summary().model.to_owned());
    let provenance = Provenance { job: Some(job.id.to_string()), ended, command: None, model };
    let kind = K::DOCUMENT.operation;
    let draw = move || Page { kind, report: &report, scores: &scores, texts: &texts, provenance: &provenance }.html();
    let page = state.scorer.workers().run(draw).await?;
    Ok(page::answer(page))
}

/// The number of texts that the query asks for.
fn texts(uri: &Uri) -> Result<usize, Problem> {
    let mut texts = 0;
    read_parameters(uri, |_, value| {
        let given = value.parse().ok().filter(|count| *count <= MOST_STRIPS);
        texts = given.ok_or_else(|| format!("it must be a whole number up to {MOST_STRIPS}"))?;
        Ok(())
    })?;
    Ok(texts)
}

/// The report in a signed envelope; in a bundle, the verdict as `eval-result` after it.
async fn signed<K: JobResource>(
    state: &ApiState,
    job: &JobSnapshot<Subject<K>>,
    report: String,
    media: &'static str,
) -> Result<Response, Problem> {
    let Some(key) = state.signing_key.clone() else {
        let detail = "the service signs no reports: `signing.key_file` of its settings names no key";
        return Err(Problem::new(Kind::Conflict, detail));
    };
    state.memory.grow_to(SIGNED_COPIES * report.len() as u64)?;
    let scores = K::sample_trees(state, job.id).await?;
    let run = RunTimes {
        job: Some(job.id.to_string()),
        started_at: rfc3339(job.started_at),
        finished_at: rfc3339(job.finished_at),
    };
    let sign = move || {
        let (kind, report) = (K::DOCUMENT.operation, RawValue::from_string(report)?);
        let envelope = sign_report(kind, run.clone(), report.clone(), scores, &key)?;
        let mut signed = serde_json::to_vec(&envelope)?;
        if media == BUNDLE {
            let verdict = sign_eval_result(kind, &run, &serde_json::from_str(report.get())?, &signed, &key)?;
            signed.push(b'\n');
            if let Some(verdict) = verdict {
                serde_json::to_writer(&mut signed, &verdict)?;
                signed.push(b'\n');
            }
        }
        Ok::<_, serde_json::Error>(signed)
    };
    let signed = state.scorer.workers().run(sign).await?.map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, media), (header::VARY, "accept")], signed).into_response())
}

fn rfc3339(time: Option<OffsetDateTime>) -> Option<String> {
    time.and_then(|time| time.format(&Rfc3339).ok())
}
