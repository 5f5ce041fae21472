//! Results as files: NDJSON, CSV or Parquet. A row is a result as NDJSON has it; in a table its scores are columns.

use crate::new_file::NewFile;
use crate::table::{ParquetWriter, ResultRow, Table, text};
use crate::wire::inert;
use anyhow::{Context, Result, bail};
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::Value;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Rows of Parquet that are held in memory and written at once.
const GROUP: usize = 10_000;

/// A kind of file that results are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    Ndjson,
    Csv,
    Parquet,
}

impl ExportFormat {
    /// The format that the name of a file asks for; NDJSON where it has no extension.
    ///
    /// # Errors
    /// Where nothing is written under such an extension.
    pub fn from_path(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        match extension.to_str() {
            Some("csv") => Ok(Self::Csv),
            Some("parquet") => Ok(Self::Parquet),
            Some("" | "ndjson" | "jsonl") => Ok(Self::Ndjson),
            _ => bail!(
                "results are not written as `.{}`; the name ends in .ndjson, .jsonl, .csv or .parquet",
                extension.display()
            ),
        }
    }
}

/// Reads the name of a file for results.
pub fn result_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match ExportFormat::from_path(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(error.to_string()),
    })
}

/// Returns true if results go to a table, which takes two passes.
///
/// # Errors
/// Where nothing is written under the extension of the file.
pub fn is_table(target: Option<&Path>) -> Result<bool> {
    Ok(target.map(ExportFormat::from_path).transpose()?.is_some_and(|format| format != ExportFormat::Ndjson))
}

/// Writes rows to a file, as its name asks for: as a whole or not at all. `rows` is asked for twice where a table is written, once
/// to find the columns. `labels` are those of the methods, in order.
///
/// # Errors
/// Where a row cannot be read or the file cannot be written.
pub fn write<I>(target: &Path, labels: &[String], rows: impl Fn() -> Result<I>) -> Result<()>
where
    I: Iterator<Item = Result<ResultRow>>,
{
    let unwritable = || format!("cannot write {}", target.display());
    let file = NewFile::create(target).with_context(unwritable)?;
    let mut out = BufWriter::new(file.file());
    match ExportFormat::from_path(target)? {
        ExportFormat::Ndjson => {
            for row in rows()? {
                serde_json::to_writer(&mut out, &row?)?;
                out.write_all(b"\n").with_context(unwritable)?;
            }
        }
        format => {
            let mut table = Table::new(labels);
            for row in rows()? {
                table.add(&row?);
            }
            match format {
                ExportFormat::Parquet => write_parquet(&mut out, table, rows()?).with_context(unwritable)?,
                _ => write_csv(&mut out, &table, rows()?).with_context(unwritable)?,
            }
        }
    }
    out.flush().with_context(unwritable)?;
    drop(out);
    file.complete().with_context(unwritable)
}

fn write_parquet(
    out: impl Write + Send,
    table: Table,
    mut rows: impl Iterator<Item = Result<ResultRow>>,
) -> Result<()> {
    let mut writer = ParquetWriter::new(out, table)?;
    loop {
        let group: Vec<ResultRow> = rows.by_ref().take(GROUP).collect::<Result<_>>()?;
        if group.is_empty() {
            break;
        }
        writer.write_group(&group)?;
    }
    writer.finish()?;
    Ok(())
}

/// Writes the header and the rows. What is missing is empty; numbers have the digits of JSON.
fn write_csv(out: impl Write, table: &Table, rows: impl Iterator<Item = Result<ResultRow>>) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.columns().map(|(name, _)| inert(name).into_owned()))?;
    for row in rows {
        writer.write_record(table.values(&row?).iter().map(cell))?;
    }
    Ok(writer.flush()?)
}

fn cell(value: &Value) -> String {
    match value {
        // A number of the input is no formula.
        Value::String(text) if text.parse::<f64>().is_ok() => text.clone(),
        Value::String(text) => inert(text).into_owned(),
        value => text(value).unwrap_or_default().into_owned(),
    }
}
