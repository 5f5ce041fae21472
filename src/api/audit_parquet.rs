//! The scores of an audit's samples as Parquet, written a group of rows at a time.

use super::sample_line::{LEADING, SampleLine, TRAILING, column_name};
use crate::audits::{AuditError, ScoreHeader, ScoreReader, ScoredRow, StoredScores};
use crate::datasets::ExtraColumns;
use crate::table::{ColumnKind, ParquetWriter, ResultRow, Table};
use axum::body::{Body, Bytes};
use futures::stream;
use serde_json::Value;
use std::io;

/// Blocks of rows that are held in memory and written at once.
const GROUP_BLOCKS: usize = 8;

/// Types of the columns before those of the methods; ids are text, since each may be a string or an integer.
const KINDS: [ColumnKind; LEADING.len()] = [
    ColumnKind::Integer,
    ColumnKind::Text,
    ColumnKind::Integer,
    ColumnKind::Text,
    ColumnKind::Text,
    ColumnKind::Integer,
    ColumnKind::Integer,
    ColumnKind::Boolean,
    ColumnKind::Integer,
];
/// Types of the columns after those of the methods.
const TRAILING_KINDS: [ColumnKind; TRAILING.len()] = [
    ColumnKind::Text,
    ColumnKind::Text,
    ColumnKind::Float,
    ColumnKind::Text,
    ColumnKind::Float,
    ColumnKind::Boolean,
    ColumnKind::Text,
    ColumnKind::Text,
    ColumnKind::Float,
    ColumnKind::Text,
];

/// A file that is being written.
struct ParquetScores {
    writer: ParquetWriter<Vec<u8>>,
    reader: ScoreReader,
    /// Rows so far.
    rows: usize,
}

/// Returns the file. The extra columns of the samples are read once beforehand to determine their types.
///
/// # Errors
/// Where the store cannot be read.
pub async fn body(scores: StoredScores) -> Result<Body, AuditError> {
    let table = table(&scores).await?;
    let writer = ParquetWriter::new(Vec::new(), table).map_err(|error| AuditError::Internal(error.to_string()))?;
    let begin = ParquetScores { writer, reader: ScoreReader::new(scores), rows: 0 };
    let chunks = stream::try_unfold(Some(begin), |file| async {
        let Some(mut file) = file else { return Ok(None) };
        let rows = file.next_rows().await.map_err(io::Error::other)?;
        // Compression is no work for the async runtime's threads.
        let written = tokio::task::spawn_blocking(move || file.write(&rows)).await;
        written.map_err(io::Error::other)?.map(Some)
    });
    Ok(Body::from_stream(chunks))
}

async fn table(scores: &StoredScores) -> Result<Table, AuditError> {
    let labels: Vec<String> = scores.header.listed().map(|(_, column)| column.method.label.to_string()).collect();
    let leading = LEADING.into_iter().zip(KINDS);
    let methods = labels.iter().map(|label| (label.as_str(), ColumnKind::Float));
    let trailing = TRAILING.into_iter().zip(TRAILING_KINDS);
    let mut table = Table::with_columns(&labels, leading.chain(methods).chain(trailing));
    if !scores.columns.is_empty() {
        let mut reader = ScoreReader::new(scores.clone());
        while let Some(rows) = reader.next_block().await? {
            for row in rows {
                table.add(&renamed(&scores.header, row.columns));
            }
        }
    }
    Ok(table)
}

impl ParquetScores {
    /// The rows of the next group; none after the last.
    async fn next_rows(&mut self) -> Result<Vec<ScoredRow>, AuditError> {
        let mut rows = Vec::new();
        for _ in 0..GROUP_BLOCKS {
            let Some(block) = self.reader.next_block().await? else { break };
            rows.extend(block);
        }
        Ok(rows)
    }

    /// The bytes of a group and what is left to do; the end of the file where there are no rows.
    fn write(mut self, rows: &[ScoredRow]) -> io::Result<(Bytes, Option<Self>)> {
        if rows.is_empty() {
            return Ok((self.writer.finish().map_err(io::Error::other)?.into(), None));
        }
        let header = &self.reader.scores().header;
        let results = (self.rows..).zip(rows).map(|(index, row)| result(header, index, row));
        let results = results.collect::<io::Result<Vec<_>>>()?;
        self.writer.write_group(&results).map_err(io::Error::other)?;
        self.rows += rows.len();
        let bytes = std::mem::take(self.writer.flushed().map_err(io::Error::other)?);
        Ok((bytes.into(), Some(self)))
    }
}

/// A row with what came along among its other fields.
fn result(header: &ScoreHeader, index: usize, row: &ScoredRow) -> io::Result<ResultRow> {
    let Value::Object(mut result) = serde_json::to_value(SampleLine::new(header, index, row))? else {
        return Err(io::Error::other("a line of scores is an object"));
    };
    result.shift_remove("columns");
    result.extend(renamed(header, row.columns.clone()));
    Ok(result)
}

fn renamed(header: &ScoreHeader, columns: ExtraColumns) -> ResultRow {
    columns.into_iter().map(|(name, value)| (column_name(header, &name).into_owned(), value)).collect()
}
