//! The scores of an audit's samples as lines of text, written and compressed block by block away from the threads that serve
//! connections.

use super::sample_line::{LEADING, SampleLine, TRAILING, column_name};
use crate::audits::{ScoreReader, ScoredRow, StoredScores};
use crate::datasets::SampleId;
use crate::table::text;
use crate::wire::inert;
use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes some rows, the first at index `first`; `begin` is true at the beginning of the file.
pub type WriteRows = fn(scores: &StoredScores, rows: &[ScoredRow], first: usize, begin: bool) -> io::Result<Vec<u8>>;

/// A file that is being written.
struct LineFile {
    reader: ScoreReader,
    write: WriteRows,
    /// Rows so far.
    rows: usize,
    begun: bool,
    /// `None` if the lines are sent uncompressed.
    gzip: Option<GzEncoder<Vec<u8>>>,
}

/// The file, compressed by gzip where that is asked for.
pub fn body(scores: StoredScores, write: WriteRows, compressed: bool) -> Body {
    let gzip = compressed.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
    let begin = LineFile { reader: ScoreReader::new(scores), write, rows: 0, begun: false, gzip };
    let chunks = stream::try_unfold(Some(begin), |file| async {
        let Some(mut file) = file else { return Ok(None) };
        let rows = file.reader.next_block().await.map_err(io::Error::other)?;
        let written = tokio::task::spawn_blocking(move || file.add(rows)).await;
        written.map_err(io::Error::other)?.map(Some)
    });
    Body::from_stream(chunks)
}

impl LineFile {
    /// The bytes of a block and what is left to do; the end of the file where there is no block.
    fn add(mut self, block: Option<Vec<ScoredRow>>) -> io::Result<(Bytes, Option<Self>)> {
        let last = block.is_none();
        let rows = block.unwrap_or_default();
        // The beginning of the file is written even without rows.
        let lines = match last && self.begun {
            true => Vec::new(),
            false => (self.write)(self.reader.scores(), &rows, self.rows, !self.begun)?,
        };
        (self.rows, self.begun) = (self.rows + rows.len(), true);
        let bytes = match &mut self.gzip {
            None => lines,
            Some(gzip) => {
                gzip.write_all(&lines)?;
                if last {
                    gzip.try_finish()?;
                }
                std::mem::take(gzip.get_mut())
            }
        };
        Ok((bytes.into(), (!last).then_some(self)))
    }
}

/// Lines of JSON.
pub fn ndjson(scores: &StoredScores, rows: &[ScoredRow], first: usize, _: bool) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (index, row) in (first..).zip(rows) {
        serde_json::to_writer(&mut lines, &SampleLine::new(&scores.header, index, row))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Lines of CSV, after the names of the columns where they are the first.
pub fn csv(scores: &StoredScores, rows: &[ScoredRow], first: usize, begin: bool) -> io::Result<Vec<u8>> {
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
        line.document.map_or(String::new(), csv_id),
        line.cluster.map_or(String::new(), |cluster| cluster.to_string()),
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
    fields.push(json_map(&line.control_scores)?);
    fields.push(json_map(&line.control_measures)?);
    fields.push(json_number(line.log_odds)?);
    fields.push(line.text_digest);
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

/// Formats the value of an extra column as a CSV field; lists and objects are JSON.
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
