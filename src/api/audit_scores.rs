//! The scores of an audit's samples as lines of JSON, as CSV or as Parquet, written as they are sent.

use super::accept::{preference, takes_gzip};
use super::audit_lines::{self, WriteRows, csv, ndjson};
use super::audit_parquet;
use super::problem::Problem;
use crate::audits::StoredScores;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

/// The names by which clients know lines of JSON; the first is ours.
const NDJSON: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
const CSV: &str = "text/csv";
/// The media type of Parquet.
pub const PARQUET: &str = "application/vnd.apache.parquet";

/// Output format of the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScoresFormat {
    Ndjson,
    Csv,
    Parquet,
}

/// The scores in the format that the client prefers, written as they are read.
///
/// # Errors
/// Where it takes none of them, or the store cannot be read.
pub async fn respond(scores: StoredScores, headers: &HeaderMap) -> Result<Response, Problem> {
    let format = preferred(headers).ok_or_else(|| Problem::not_acceptable(&[NDJSON[0], CSV, PARQUET]))?;
    let (media, write): (_, WriteRows) = match format {
        ScoresFormat::Ndjson => (NDJSON[0], ndjson),
        ScoresFormat::Csv => ("text/csv; charset=utf-8", csv),
        ScoresFormat::Parquet => {
            let body = audit_parquet::body(scores).await?;
            return Ok(([(header::CONTENT_TYPE, PARQUET), (header::VARY, "accept")], body).into_response());
        }
    };
    let compressed = takes_gzip(headers);
    let mut response = ([(header::CONTENT_TYPE, media)], audit_lines::body(scores, write, compressed)).into_response();
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    if compressed {
        // The layer that compresses answers leaves those alone that have this header.
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// Returns the format that the client prefers, or `None` if it accepts none. Ties go to the first of NDJSON, CSV and Parquet.
fn preferred(headers: &HeaderMap) -> Option<ScoresFormat> {
    let ndjson = NDJSON.map(|media| (media, ScoresFormat::Ndjson));
    let formats = ndjson.into_iter().chain([(CSV, ScoresFormat::Csv), (PARQUET, ScoresFormat::Parquet)]);
    let wanted = formats.filter_map(|(media, format)| Some((preference(headers, media)?, format)));
    wanted.reduce(|one, other| if other.0 > one.0 { other } else { one }).map(|(_, format)| format)
}

#[cfg(test)]
mod tests {
    use super::{ScoresFormat, preferred};
    use axum::http::{HeaderMap, HeaderValue, header};

    #[test]
    fn csv_is_for_those_who_ask_for_it() {
        let cases = [
            ("text/csv", Some(ScoresFormat::Csv)),
            ("Text/CSV; charset=utf-8", Some(ScoresFormat::Csv)),
            ("text/csv;q=0.5, application/x-ndjson;q=0.4", Some(ScoresFormat::Csv)),
            ("text/csv;q=0.5, application/x-ndjson", Some(ScoresFormat::Ndjson)),
            ("text/csv, */*", Some(ScoresFormat::Csv)),
            ("text/csv, application/jsonl", Some(ScoresFormat::Ndjson)),
            ("text/*", Some(ScoresFormat::Csv)),
            ("application/*", Some(ScoresFormat::Ndjson)),
            ("*/*", Some(ScoresFormat::Ndjson)),
            ("text/csv;q=0", None),
            ("text/html, application/json", None),
            ("application/vnd.apache.parquet", Some(ScoresFormat::Parquet)),
            ("application/vnd.apache.parquet, */*", Some(ScoresFormat::Parquet)),
            ("application/vnd.apache.parquet;q=0.5, text/csv;q=0.5", Some(ScoresFormat::Csv)),
        ];
        for (accept, format) in cases {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(preferred(&headers), format, "{accept}");
        }
        assert_eq!(preferred(&HeaderMap::new()), Some(ScoresFormat::Ndjson));
    }
}
