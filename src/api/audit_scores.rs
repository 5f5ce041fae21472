//! The scores of an audit's samples as lines of JSON, as CSV or as Parquet. They are written block by block as they are sent, and
//! compressed away from the threads that serve connections.

use super::accept::{CSV, CSV_UTF8, NDJSON, preferred, takes_gzip};
use super::problem::Problem;
use super::sample_line::{LEADING, SampleLine, TRAILING, column_name};
use super::state::ApiState;
use crate::audits::{AuditError, ScoreHeader, ScoreReader, ScoredRow, StoredScores};
use crate::datasets::ExtraColumns;
use crate::table::{ColumnKind, ParquetWriter, ResultRow, Table, text};
use crate::wire::inert;
use attestation::{LeafSalts, SampleTrees, TreeBuilder};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use pages::{BYTES_PER_SCORE, DrawnScores};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

pub const PARQUET: &str = "application/vnd.apache.parquet";

/// Rows that are held in memory and written as one group of a Parquet file.
const GROUP_ROWS: usize = 4_000;
/// A group ends with the rows that make its extra columns longer than this, in bytes of JSON; as values they take 40 times as much.
const GROUP_COLUMN_BYTES: usize = 1 << 20;
/// Memory that the lines of a file take while they are written, in bytes.
const LINES_MEMORY: u64 = 4 << 20;
/// Memory that the groups of a Parquet file take while they are written, in bytes.
const PARQUET_MEMORY: u64 = 8 << 20;
/// The same with extra columns.
const COLUMNS_MEMORY: u64 = 96 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScoresFormat {
    Ndjson,
    Csv,
    Parquet,
}

/// A file that is being written.
struct ScoresFile {
    reader: ScoreReader,
    /// Salts of the signed report, if there is a signing key.
    salts: Option<LeafSalts>,
    /// Rows so far.
    rows: usize,
    writer: RowWriter,
}

enum RowWriter {
    Lines {
        write: WriteLines,
        /// `None` if the lines are sent uncompressed.
        gzip: Option<GzEncoder<Vec<u8>>>,
    },
    Parquet(ParquetWriter<Vec<u8>>),
}

/// Writes some rows, the first at index `first`, which is 0 at the beginning of the file.
type WriteLines =
    fn(scores: &StoredScores, salts: Option<&LeafSalts>, rows: &[ScoredRow], first: usize) -> io::Result<Vec<u8>>;

/// The scores in the format that the client prefers, written as they are read.
pub async fn respond(state: &ApiState, scores: StoredScores, headers: &HeaderMap) -> Result<Response, Problem> {
    let format = preferred(headers, formats()).ok_or_else(|| Problem::not_acceptable(&[NDJSON[0], CSV, PARQUET]))?;
    state.memory.grow_to(match format {
        ScoresFormat::Parquet if scores.columns.is_empty() => PARQUET_MEMORY,
        ScoresFormat::Parquet => COLUMNS_MEMORY,
        ScoresFormat::Ndjson | ScoresFormat::Csv => LINES_MEMORY,
    })?;
    let (media, write): (_, WriteLines) = match format {
        ScoresFormat::Ndjson => (NDJSON[0], ndjson),
        ScoresFormat::Csv => (CSV_UTF8, csv),
        ScoresFormat::Parquet => {
            let writer = ParquetWriter::new(Vec::new(), table(&scores).await?).map_err(Problem::internal)?;
            let body = body(scores, None, RowWriter::Parquet(writer));
            return Ok(([(header::CONTENT_TYPE, PARQUET), (header::VARY, "accept")], body).into_response());
        }
    };
    let gzip = takes_gzip(headers).then(|| GzEncoder::new(Vec::new(), Compression::fast()));
    let compressed = gzip.is_some();
    let salts = salts(state, &scores);
    let body = body(scores, salts, RowWriter::Lines { write, gzip });
    let mut response = ([(header::CONTENT_TYPE, media)], body).into_response();
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    if compressed {
        // The layer that compresses answers leaves those alone that have this header.
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// The salts of the lines of an audit; `None` if reports are not signed.
fn salts(state: &ApiState, scores: &StoredScores) -> Option<LeafSalts> {
    state.signing_key.as_ref().map(|key| key.salts(scores.audit.into_bytes()))
}

/// The trees over the samples and over the lines of their scores, and the SHA-256 of all lines.
pub async fn trees(state: &ApiState, scores: StoredScores) -> Result<(SampleTrees, String), Problem> {
    state.memory.grow_to(LINES_MEMORY)?;
    let (header, salts) = (Arc::clone(&scores.header), salts(state, &scores).map(Arc::new));
    let (mut trees, mut reader, mut first) = (TreeBuilder::default(), ScoreReader::new(scores), 0);
    while let Some(rows) = reader.next_rows().await? {
        let (header, salts, count) = (Arc::clone(&header), salts.clone(), rows.len());
        let add = move || {
            for (index, row) in (first..).zip(&rows) {
                let line = serde_json::to_vec(&SampleLine::new(&header, salts.as_deref(), index, row))?;
                let opening = salts.as_ref().map(|salts| row.scores.opening(salts, index));
                trees.add(&line, &opening.unwrap_or_default());
            }
            Ok::<_, serde_json::Error>(trees)
        };
        trees = state.scorer.workers().run(add).await?.map_err(Problem::internal)?;
        first += count;
    }
    Ok(trees.finish())
}

/// Reads the scores that the page of a report draws.
pub async fn drawn(state: &ApiState, scores: StoredScores, report: &Value) -> Result<DrawnScores, Problem> {
    let mut drawn = DrawnScores::new(report);
    let bytes = BYTES_PER_SCORE * (scores.header.rows * (drawn.methods.len() + 1)) as u64;
    state.memory.grow_to(bytes + LINES_MEMORY)?;
    let header = Arc::clone(&scores.header);
    let places: HashMap<&str, usize> = header.listed().map(|(place, column)| (&*column.method.label, place)).collect();
    let mut reader = ScoreReader::new(scores);
    while let Some(rows) = reader.next_rows().await? {
        for ScoredRow { scores, .. } in &rows {
            let document = scores.document.as_ref().map(ToString::to_string);
            drawn.add(scores.member, document.as_deref(), |label| scores.scores[*places.get(label)?]);
        }
    }
    Ok(drawn)
}

/// The formats by their media types.
fn formats() -> impl Iterator<Item = (&'static str, ScoresFormat)> {
    let ndjson = NDJSON.map(|media| (media, ScoresFormat::Ndjson)).into_iter();
    ndjson.chain([(CSV, ScoresFormat::Csv), (PARQUET, ScoresFormat::Parquet)])
}

fn body(scores: StoredScores, salts: Option<LeafSalts>, writer: RowWriter) -> Body {
    let begin = ScoresFile { reader: ScoreReader::new(scores), salts, rows: 0, writer };
    let chunks = stream::try_unfold(Some(begin), |file| async {
        let Some(mut file) = file else { return Ok(None) };
        let rows = file.next_rows().await.map_err(io::Error::other)?;
        // Compression is no work for the async runtime's threads.
        let written = tokio::task::spawn_blocking(move || file.write(&rows)).await;
        written.map_err(io::Error::other)?.map(Some)
    });
    Body::from_stream(chunks)
}

impl ScoresFile {
    /// The rows that are written at once; none after the last.
    async fn next_rows(&mut self) -> Result<Vec<ScoredRow>, AuditError> {
        let most = if matches!(self.writer, RowWriter::Parquet(_)) { GROUP_ROWS } else { 1 };
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < most
            && bytes < GROUP_COLUMN_BYTES
            && let Some(more) = self.reader.next_rows().await?
        {
            bytes += more.iter().map(|row| row.columns.bytes()).sum::<usize>();
            rows.extend(more);
        }
        Ok(rows)
    }

    /// The bytes of some rows and the rest of the file; the end of the file where there are no rows.
    fn write(mut self, rows: &[ScoredRow]) -> io::Result<(Bytes, Option<Self>)> {
        let (scores, first, is_end) = (self.reader.scores(), self.rows, rows.is_empty());
        let bytes = match self.writer {
            RowWriter::Parquet(writer) if is_end => {
                return Ok((writer.finish().map_err(io::Error::other)?.into(), None));
            }
            RowWriter::Parquet(ref mut writer) => {
                let results = (first..).zip(rows).map(|(index, row)| result(&scores.header, index, row));
                writer.write_group(&results.collect::<io::Result<Vec<_>>>()?).map_err(io::Error::other)?;
                std::mem::take(writer.flushed().map_err(io::Error::other)?)
            }
            RowWriter::Lines { write, ref mut gzip } => {
                // The beginning of the file is written even without rows.
                let lines =
                    if is_end && first > 0 { Vec::new() } else { write(scores, self.salts.as_ref(), rows, first)? };
                match gzip {
                    Some(gzip) => compressed(gzip, &lines, is_end)?,
                    None => lines,
                }
            }
        };
        self.rows += rows.len();
        Ok((bytes.into(), (!is_end).then_some(self)))
    }
}

fn compressed(gzip: &mut GzEncoder<Vec<u8>>, lines: &[u8], is_end: bool) -> io::Result<Vec<u8>> {
    gzip.write_all(lines)?;
    if is_end {
        gzip.try_finish()?;
    }
    Ok(std::mem::take(gzip.get_mut()))
}

fn ndjson(scores: &StoredScores, salts: Option<&LeafSalts>, rows: &[ScoredRow], first: usize) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for (index, row) in (first..).zip(rows) {
        serde_json::to_writer(&mut lines, &SampleLine::new(&scores.header, salts, index, row))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Lines of CSV, after the names of the columns where they are the first. A value that is missing is empty, a number has the digits
/// of JSON.
fn csv(scores: &StoredScores, _: Option<&LeafSalts>, rows: &[ScoredRow], first: usize) -> io::Result<Vec<u8>> {
    let (leading, trailing) = (LEADING.map(|(name, _)| name), TRAILING.map(|(name, _)| name));
    let labels: Vec<&str> = scores.header.listed().map(|(_, column)| &*column.method.label).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    if first == 0 {
        let labels = labels.iter().map(|label| inert(label).into_owned());
        let others = scores.columns.iter().map(|name| inert(&column_name(&scores.header, name)).into_owned());
        let names = leading.map(str::to_owned).into_iter().chain(labels);
        writer.write_record(names.chain(trailing.map(str::to_owned)).chain(others))?;
    }
    for (index, row) in (first..).zip(rows) {
        let line = SampleLine::new(&scores.header, None, index, row).row()?;
        let fields = leading.iter().map(|name| line.get(*name));
        let fields = fields.chain(labels.iter().map(|label| line.get("scores")?.get(label)));
        let fields = fields.chain(trailing.iter().map(|name| line.get(*name)));
        let columns = row.columns.tree()?;
        let fields = fields.chain(scores.columns.iter().map(|name| columns.get(name)));
        writer.write_record(fields.map(|value| value.map_or(String::new(), csv_field)))?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

/// A value as a field of CSV; lists and objects are JSON.
fn csv_field(value: &Value) -> String {
    let field = text(value).unwrap_or_default();
    if value.is_string() { inert(&field).into_owned() } else { field.into_owned() }
}

/// The columns of a Parquet file. The extra columns of the samples are read once beforehand to determine their types.
async fn table(scores: &StoredScores) -> Result<Table, AuditError> {
    let labels: Vec<String> = scores.header.listed().map(|(_, column)| column.method.label.to_string()).collect();
    let methods = labels.iter().map(|label| (label.as_str(), ColumnKind::Float));
    let mut table = Table::with_columns(&labels, LEADING.into_iter().chain(methods).chain(TRAILING));
    if !scores.columns.is_empty() {
        let mut reader = ScoreReader::new(scores.clone());
        while let Some(rows) = reader.next_rows().await? {
            for row in rows {
                table.add(&renamed(&scores.header, row.columns.tree().map_err(unreadable)?));
            }
        }
    }
    Ok(table)
}

/// A row of a Parquet file with what came along among its other fields.
fn result(header: &ScoreHeader, index: usize, row: &ScoredRow) -> io::Result<ResultRow> {
    let mut result = SampleLine::new(header, None, index, row).row()?;
    result.shift_remove("columns");
    result.extend(renamed(header, row.columns.tree()?));
    Ok(result)
}

fn unreadable(error: serde_json::Error) -> AuditError {
    AuditError::Internal(format!("the columns of a sample as they are stored: {error}"))
}

fn renamed(header: &ScoreHeader, columns: ExtraColumns) -> ResultRow {
    columns.into_iter().map(|(name, value)| (column_name(header, &name).into_owned(), value)).collect()
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
            assert_eq!(preferred(&headers, super::formats()), format, "{accept}");
        }
        assert_eq!(preferred(&HeaderMap::new(), super::formats()), Some(ScoresFormat::Ndjson));
    }
}
