//! The scores of an audit's samples as lines of JSON or as CSV, written as they are sent.

use super::accept::preference;
use super::problem::Problem;
use crate::audits::{AuditOutcome, AuditResults, SampleId, SampleScores};
use crate::scorer::TextError;
use crate::wire::inert;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use utoipa::ToSchema;

/// Samples that are written at once.
const CHUNK: usize = 500;
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

/// The scores in the format that the client prefers.
///
/// # Errors
/// Where it takes neither.
pub fn respond(outcome: Arc<AuditOutcome>, headers: &HeaderMap) -> Result<Response, Problem> {
    let format = preferred(headers).ok_or_else(|| Problem::not_acceptable(&[NDJSON[0], CSV]))?;
    let media = match format {
        ScoresFormat::Ndjson => "application/x-ndjson",
        ScoresFormat::Csv => "text/csv; charset=utf-8",
    };
    let rows = outcome.results.rows.len();
    // The header of CSV is part of the first chunk, so there is one even without rows.
    let chunks = (0..rows.max(1)).step_by(CHUNK).map(move |start| start..rows.min(start + CHUNK));
    let written = chunks.map(move |rows| match format {
        ScoresFormat::Ndjson => ndjson(&outcome.results, rows),
        ScoresFormat::Csv => csv(&outcome.results, rows),
    });
    Ok(([(header::CONTENT_TYPE, media)], Body::from_stream(stream::iter(written))).into_response())
}

/// What the client wants most: lines of JSON where it wants them as much as CSV. None where it takes neither.
fn preferred(headers: &HeaderMap) -> Option<ScoresFormat> {
    let ndjson = NDJSON.iter().filter_map(|media| preference(headers, media)).reduce(|a, b| if b > a { b } else { a });
    let csv = preference(headers, CSV);
    if csv > ndjson { Some(ScoresFormat::Csv) } else { ndjson.map(|_| ScoresFormat::Ndjson) }
}

fn ndjson(results: &AuditResults, rows: Range<usize>) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (index, row) in rows.clone().zip(&results.rows[rows]) {
        serde_json::to_writer(&mut lines, &line(results, index, row))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn csv(results: &AuditResults, rows: Range<usize>) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if rows.start == 0 {
        let fixed = |names: &'static [&str]| names.iter().map(|name| Cow::Borrowed(*name));
        let labels = results.listed().map(|(_, column)| inert(&column.method.label));
        let header = fixed(&LEADING).chain(labels).chain(fixed(&TRAILING));
        writer.write_record(header.map(|name| name.into_owned()))?;
    }
    for (index, row) in rows.clone().zip(&results.rows[rows]) {
        writer.write_record(record(results, line(results, index, row), row)?)?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// The fields of one sample; a score that is missing is empty.
fn record(results: &AuditResults, line: SampleLine<'_>, row: &SampleScores) -> io::Result<Vec<String>> {
    let mut fields = vec![
        line.index.to_string(),
        line.id.map_or(String::new(), csv_id),
        line.label.map_or(String::new(), |label| label.to_string()),
        inert(line.group.unwrap_or_default()).into_owned(),
        line.scored_tokens.to_string(),
        line.truncated.to_string(),
        line.windows.map_or(String::new(), |windows| windows.to_string()),
    ];
    for (place, _) in results.listed() {
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

fn line<'a>(results: &'a AuditResults, index: usize, row: &'a SampleScores) -> SampleLine<'a> {
    let known = |label: &Arc<str>| results.listed().any(|(_, column)| *column.method.label == **label);
    SampleLine {
        index,
        id: row.id.as_ref(),
        label: row.member.map(u8::from),
        group: row.group.as_deref(),
        scored_tokens: row.scored_tokens,
        truncated: row.truncated,
        windows: row.windows,
        alpha_used: row.alpha_used.iter().map(|(label, alpha)| (&**label, *alpha)).collect(),
        scores: results
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
