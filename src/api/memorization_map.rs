//! `/v1/memorization/{id}/map`: the windows of a memorization job along its texts, as lines of JSON or as CSV.

use super::accept::{CSV, CSV_UTF8, NDJSON, preferred};
use super::jobs::JobId;
use super::problem::responses::StateProblems;
use super::problem::{Kind, Problem};
use super::state::ClientState;
use crate::memorization::{MapFormat, MapSource, MapWindow, MemorizationKind};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use std::io;
use std::sync::Arc;

/// Rows that are written at once.
const BLOCK: usize = 8_192;

/// The windows of a memorization job.
///
/// One line a window, along each text, those of the control last. CSV has the same fields as columns. In CSV an id that begins
/// with `=`, `+`, `-`, `@`, a tab or a carriage return, which a spreadsheet would take for a formula, has an apostrophe before it.
#[utoipa::path(
    get,
    path = "/v1/memorization/{id}/map",
    operation_id = "get_memorization_map",
    tag = "memorization",
    params(
        ("id" = String, Path, description = "Id of the memorization job"),
        ("Accept" = Option<String>, Header, description = "`application/x-ndjson` or `text/csv`", example = "text/csv")
    ),
    responses(
        (status = 200, description = "The windows", content(
            (MapWindow = "application/x-ndjson"),
            (String = "text/csv")
        )),
        StateProblems
    )
)]
pub async fn map(
    ClientState(state): ClientState,
    JobId(id, _): JobId<MemorizationKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let formats = NDJSON.map(|media| (media, MapFormat::Ndjson)).into_iter().chain([(CSV, MapFormat::Csv)]);
    let format = preferred(&headers, formats).ok_or_else(|| Problem::not_acceptable(&[NDJSON[0], CSV]))?;
    let jobs = state.jobs.kind::<MemorizationKind>()?;
    let job = jobs.get(id).await?;
    let Some(report) = jobs.report(id).await? else {
        let detail = format!("the job is {}; there is a map once it has succeeded", job.status.name());
        return Err(Problem::new(Kind::Conflict, detail));
    };
    let source = state.scorer.workers().run(move || serde_json::from_str::<MapSource>(&report)).await?;
    let body = body(Arc::new(source.map_err(Problem::internal)?), format);
    let media = if format == MapFormat::Csv { CSV_UTF8 } else { NDJSON[0] };
    Ok(([(header::CONTENT_TYPE, media), (header::VARY, "accept")], body).into_response())
}

fn body(source: Arc<MapSource>, format: MapFormat) -> Body {
    Body::from_stream(stream::try_unfold(Some(0), move |first: Option<usize>| {
        let source = Arc::clone(&source);
        async move {
            let Some(first) = first else { return Ok(None) };
            let written = tokio::task::spawn_blocking(move || block(&source, format, first)).await;
            written.map_err(io::Error::other)?.map(Some)
        }
    }))
}

/// Rows from the one at index `first` on, and the index after them; `None` for the last block.
fn block(source: &MapSource, format: MapFormat, first: usize) -> io::Result<(Bytes, Option<usize>)> {
    let mut out = if first == 0 { format.header().into_bytes() } else { Vec::new() };
    let mut rows = 0;
    format.write(source.windows().skip(first).take(BLOCK).inspect(|_| rows += 1), &mut out)?;
    Ok((out.into(), (rows == BLOCK).then_some(first + BLOCK)))
}
