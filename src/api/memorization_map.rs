//! `/v1/memorization/{id}/map`: the windows of a memorization job along its texts, as lines of JSON or as CSV.

use super::accept::{CSV, CSV_UTF8, NDJSON, preferred};
use super::jobs::JobId;
use super::problem::responses::StateProblems;
use super::problem::{Kind, Problem};
use super::state::ClientState;
use crate::memorization::{MapFormat, MapSource, MapWindow, MemorizationKind, RowPlace};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use std::io;
use std::sync::Arc;

/// A block of the answer ends with the row that reaches this many bytes.
const BLOCK: usize = 1 << 20;

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
    state.memory.grow_to(report.len() as u64)?;
    let source = state.scorer.workers().run(move || MapSource::parse(&report)).await?;
    let body = body(Arc::new(source.map_err(Problem::internal)?), format);
    let media = if format == MapFormat::Csv { CSV_UTF8 } else { NDJSON[0] };
    Ok(([(header::CONTENT_TYPE, media), (header::VARY, "accept")], body).into_response())
}

fn body(source: Arc<MapSource>, format: MapFormat) -> Body {
    let header = stream::once(async move { Ok(Bytes::from(format.header())) });
    let blocks = stream::try_unfold(RowPlace::default(), move |first| {
        let source = Arc::clone(&source);
        let block = move || block(&source, format, first);
        async move { tokio::task::spawn_blocking(block).await.map_err(io::Error::other)? }
    });
    Body::from_stream(header.chain(blocks))
}

/// The rows from a place on, and the place behind them; `None` behind the last row.
fn block(source: &MapSource, format: MapFormat, first: RowPlace) -> io::Result<Option<(Bytes, RowPlace)>> {
    let (mut out, mut place) = (Vec::new(), first);
    for (row, next) in source.rows(first) {
        out.extend(format.line(row)?);
        place = next;
        if out.len() >= BLOCK {
            break;
        }
    }
    Ok((!out.is_empty()).then(|| (out.into(), place)))
}
