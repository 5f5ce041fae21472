//! The scores of an audit's samples as lines of JSON, as CSV or as Parquet, written as they are sent.

use super::accept::preference;
use super::audit_parquet;
use super::problem::Problem;
use super::sample_line::{LEADING, SampleLine, TRAILING, column_name};
use crate::audits::{ScoreReader, ScoredRow, StoredScores};
use crate::datasets::SampleId;
use crate::table::text;
use crate::wire::inert;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::Value;
use std::borrow::Cow;
use std::io;

/// The names by which clients know lines of JSON; the first is ours.
const NDJSON: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
const CSV: &str = "text/csv";
const PARQUET: &str = "application/vnd.apache.parquet";

/// How the lines are written.
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
    let (media, body) = match format {
        ScoresFormat::Ndjson => (NDJSON[0], lines(scores, ndjson)),
        ScoresFormat::Csv => ("text/csv; charset=utf-8", lines(scores, csv)),
        ScoresFormat::Parquet => (PARQUET, audit_parquet::body(scores).await?),
    };
    Ok(([(header::CONTENT_TYPE, media)], body).into_response())
}

/// Writes some rows, of which the first has this index; `begin` says whether it is the beginning of the file.
type WriteRows = fn(scores: &StoredScores, rows: &[ScoredRow], first: usize, begin: bool) -> io::Result<Vec<u8>>;

/// Lines of text, block by block.
fn lines(scores: StoredScores, write: WriteRows) -> Body {
    let begin = Position { row: 0, begun: false };
    let chunks = stream::try_unfold((ScoreReader::new(scores), begin), move |(mut reader, position)| async move {
        let Position { row, begun } = position;
        let rows = match reader.next_block().await.map_err(io::Error::other)? {
            Some(rows) => rows,
            // What a file begins with is there even without rows.
            None if !begun => Vec::new(),
            None => return Ok(None),
        };
        let written = write(reader.scores(), &rows, row, !begun)?;
        let next = Position { row: row + rows.len(), begun: true };
        Ok::<_, io::Error>(Some((written, (reader, next))))
    });
    Body::from_stream(chunks)
}

/// How far the scores have been written.
#[derive(Clone, Copy)]
struct Position {
    row: usize,
    begun: bool,
}

/// What the client wants most; of formats that it wants alike the first of lines of JSON, CSV and Parquet. None where it takes none.
fn preferred(headers: &HeaderMap) -> Option<ScoresFormat> {
    let ndjson = NDJSON.map(|media| (media, ScoresFormat::Ndjson));
    let formats = ndjson.into_iter().chain([(CSV, ScoresFormat::Csv), (PARQUET, ScoresFormat::Parquet)]);
    let wanted = formats.filter_map(|(media, format)| Some((preference(headers, media)?, format)));
    wanted.reduce(|one, other| if other.0 > one.0 { other } else { one }).map(|(_, format)| format)
}

/// Lines of JSON.
fn ndjson(scores: &StoredScores, rows: &[ScoredRow], first: usize, _: bool) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (index, row) in (first..).zip(rows) {
        serde_json::to_writer(&mut lines, &SampleLine::new(&scores.header, index, row))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Lines of CSV, after the names of the columns where they are the first.
fn csv(scores: &StoredScores, rows: &[ScoredRow], first: usize, begin: bool) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if begin {
        let fixed = |names: &'static [&str]| names.iter().map(|name| Cow::Borrowed(*name));
        let labels = scores.header.listed().map(|(_, column)| inert(&column.method.label));
        let others = scores.columns.iter().map(|name| inert(&column_name(&scores.header, name)).into_owned().into());
        let names = fixed(&LEADING).chain(labels).chain(fixed(&TRAILING)).chain(others);
        writer.write_record(names.map(|name| name.into_owned()))?;
    }
    for (index, row) in (first..).zip(rows) {
        writer.write_record(record(scores, index, row)?)?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// The fields of one sample; a score that is missing is empty.
fn record(scores: &StoredScores, index: usize, row: &ScoredRow) -> io::Result<Vec<String>> {
    let line = SampleLine::new(&scores.header, index, row);
    let mut fields = vec![
        line.index.to_string(),
        line.id.map_or(String::new(), csv_id),
        line.label.map_or(String::new(), |label| label.to_string()),
        inert(line.group.unwrap_or_default()).into_owned(),
        line.scored_tokens.to_string(),
        line.truncated.to_string(),
        line.windows.map_or(String::new(), |windows| windows.to_string()),
    ];
    for (place, _) in scores.header.listed() {
        fields.push(json_number(row.scores.scores[place])?);
    }
    fields.push(json_map(&line.alpha_used)?);
    fields.push(if line.errors.is_empty() { String::new() } else { serde_json::to_string(&line.errors)? });
    fields.push(json_number(line.posterior)?);
    fields.push(json_map(&line.p_values)?);
    fields.push(json_number(line.p_value_adjusted)?);
    fields.push(line.flagged.map_or(String::new(), |flagged| flagged.to_string()));
    fields.extend(scores.columns.iter().map(|name| csv_value(row.columns.get(name).unwrap_or(&Value::Null))));
    Ok(fields)
}

/// In the digits of JSON, so that all formats hold the same number; empty where there is none.
fn json_number(number: Option<f64>) -> serde_json::Result<String> {
    number.map_or(Ok(String::new()), |number| serde_json::to_string(&number))
}

/// Numbers by label as an object; empty where there are none.
fn json_map(numbers: &[(&str, f64)]) -> serde_json::Result<String> {
    let object: serde_json::Map<String, Value> =
        numbers.iter().map(|(label, number)| ((*label).to_owned(), (*number).into())).collect();
    if object.is_empty() { Ok(String::new()) } else { serde_json::to_string(&object) }
}

/// What came along as a field of CSV; lists and objects are JSON.
fn csv_value(value: &Value) -> String {
    let text = text(value).unwrap_or_default();
    if value.is_string() { inert(&text).into_owned() } else { text.into_owned() }
}

/// An id as a field of CSV; an integer is no formula, negative or not.
fn csv_id(id: &SampleId) -> String {
    match id {
        SampleId::Text(text) => inert(text).into_owned(),
        SampleId::Integer(_) => id.to_string(),
    }
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
