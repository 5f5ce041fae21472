//! The scores of an audit's samples as lines of JSON or as CSV, written as they are sent.

use super::accept::preference;
use super::problem::Problem;
use crate::audits::{SampleId, SampleScores, ScoreHeader, StoredScores};
use crate::scorer::TextError;
use crate::wire::inert;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use utoipa::ToSchema;

/// The columns before and after those of the methods.
const LEADING: [&str; 7] = ["index", "id", "label", "group", "scored_tokens", "truncated", "windows"];
const TRAILING: [&str; 2] = ["alpha_used", "errors"];
/// The names by which clients know lines of JSON; the first is ours.
const NDJSON: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
const CSV: &str = "text/csv";

/// How the lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScoresFormat {
    Ndjson,
    Csv,
}

/// One sample.
#[derive(Serialize, ToSchema)]
pub struct SampleLine<'a> {
    /// Place among the samples, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a SampleId>,
    /// 1 for a member, 0 for a non-member; absent where the audit has no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<u8>,
    /// The group that the sample names.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    scored_tokens: usize,
    truncated: bool,
    /// In how many windows the text was read, where the audit asks for windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<usize>,
    /// Score by label of the method.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    scores: Vec<(&'a str, f64)>,
    /// The alpha of methods weighted by `slope`, by label.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    alpha_used: Vec<(&'a str, f64)>,
    /// What could not be computed, and why.
    #[schema(value_type = Vec<TextError>)]
    errors: Vec<&'a TextError>,
}

/// The scores in the format that the client prefers, written as they are read.
///
/// # Errors
/// Where it takes neither.
pub fn respond(scores: StoredScores, headers: &HeaderMap) -> Result<Response, Problem> {
    let format = preferred(headers).ok_or_else(|| Problem::not_acceptable(&[NDJSON[0], CSV]))?;
    let media = match format {
        ScoresFormat::Ndjson => "application/x-ndjson",
        ScoresFormat::Csv => "text/csv; charset=utf-8",
    };
    let first = Position { block: 0, row: 0, begun: false };
    let chunks = stream::try_unfold((scores, first), move |(scores, position)| async move {
        let Position { block, row, begun } = position;
        let Some(rows) = scores.block(block).await.map_err(io::Error::other)? else {
            // The header of CSV is there even without rows.
            let ended = Position { begun: true, ..position };
            let header = (!begun && format == ScoresFormat::Csv).then(|| csv(&scores.header, &[], 0));
            return header.transpose().map(|header| header.map(|header| (header, (scores, ended))));
        };
        let written = match format {
            ScoresFormat::Ndjson => ndjson(&scores.header, &rows, row),
            ScoresFormat::Csv => csv(&scores.header, &rows, row),
        }?;
        let next = Position { block: block + 1, row: row + rows.len(), begun: true };
        Ok::<_, io::Error>(Some((written, (scores, next))))
    });
    Ok(([(header::CONTENT_TYPE, media)], Body::from_stream(chunks)).into_response())
}

/// How far the scores have been written.
#[derive(Clone, Copy)]
struct Position {
    block: usize,
    row: usize,
    begun: bool,
}

/// What the client wants most: lines of JSON where it wants them as much as CSV. None where it takes neither.
fn preferred(headers: &HeaderMap) -> Option<ScoresFormat> {
    let ndjson = NDJSON.iter().filter_map(|media| preference(headers, media)).reduce(|a, b| if b > a { b } else { a });
    let csv = preference(headers, CSV);
    if csv > ndjson { Some(ScoresFormat::Csv) } else { ndjson.map(|_| ScoresFormat::Ndjson) }
}

/// Lines of JSON; the first row has this index.
fn ndjson(header: &ScoreHeader, rows: &[SampleScores], first: usize) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (index, row) in (first..).zip(rows) {
        serde_json::to_writer(&mut lines, &line(header, index, row))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Lines of CSV, after a header where the first row is the first of all.
fn csv(header: &ScoreHeader, rows: &[SampleScores], first: usize) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if first == 0 {
        let fixed = |names: &'static [&str]| names.iter().map(|name| Cow::Borrowed(*name));
        let labels = header.listed().map(|(_, column)| inert(&column.method.label));
        let names = fixed(&LEADING).chain(labels).chain(fixed(&TRAILING));
        writer.write_record(names.map(|name| name.into_owned()))?;
    }
    for (index, row) in (first..).zip(rows) {
        writer.write_record(record(header, line(header, index, row), row)?)?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// The fields of one sample; a score that is missing is empty.
fn record(header: &ScoreHeader, line: SampleLine<'_>, row: &SampleScores) -> io::Result<Vec<String>> {
    let mut fields = vec![
        line.index.to_string(),
        line.id.map_or(String::new(), csv_id),
        line.label.map_or(String::new(), |label| label.to_string()),
        inert(line.group.unwrap_or_default()).into_owned(),
        line.scored_tokens.to_string(),
        line.truncated.to_string(),
        line.windows.map_or(String::new(), |windows| windows.to_string()),
    ];
    for (place, _) in header.listed() {
        // In the digits of JSON, so that both formats hold the same number.
        fields.push(row.scores[place].map_or(Ok(String::new()), |score| serde_json::to_string(&score))?);
    }
    let alphas: serde_json::Map<String, serde_json::Value> =
        line.alpha_used.iter().map(|(label, alpha)| ((*label).to_owned(), (*alpha).into())).collect();
    fields.push(if alphas.is_empty() { String::new() } else { serde_json::to_string(&alphas)? });
    fields.push(if line.errors.is_empty() { String::new() } else { serde_json::to_string(&line.errors)? });
    Ok(fields)
}

/// An id as a field of CSV; an integer is no formula, negative or not.
fn csv_id(id: &SampleId) -> String {
    match id {
        SampleId::Text(text) => inert(text).into_owned(),
        SampleId::Integer(_) => id.to_string(),
    }
}

fn line<'a>(header: &'a ScoreHeader, index: usize, row: &'a SampleScores) -> SampleLine<'a> {
    let known = |label: &Arc<str>| header.listed().any(|(_, column)| *column.method.label == **label);
    SampleLine {
        index,
        id: row.id.as_ref(),
        label: row.member.map(u8::from),
        group: row.group.as_deref(),
        scored_tokens: row.scored_tokens,
        truncated: row.truncated,
        windows: row.windows,
        alpha_used: row.alpha_used.iter().map(|(label, alpha)| (&**label, *alpha)).collect(),
        scores: header
            .listed()
            .filter_map(|(place, column)| Some((&*column.method.label, row.scores[place]?)))
            .collect(),
        errors: row.errors.iter().filter(|error| error.label.as_ref().is_none_or(known)).collect(),
    }
}

fn as_map<S: Serializer>(scores: &[(&str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(scores.iter().copied())
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
        ];
        for (accept, format) in cases {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(preferred(&headers), format, "{accept}");
        }
        assert_eq!(preferred(&HeaderMap::new()), Some(ScoresFormat::Ndjson));
    }
}
