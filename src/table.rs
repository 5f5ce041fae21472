//! Rows of named values as a table: which columns they have and of which kind, and the table as Parquet.
//!
//! The command line and the HTTP interface both write results so. A row is a result as NDJSON has it; in a table each of its
//! scores is a column.

use indexmap::IndexMap;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

/// One result.
pub type ResultRow = Map<String, Value>;

/// Kind of the values of a column; of two kinds the later holds both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnKind {
    /// It has no values yet.
    Empty,
    Boolean,
    Integer,
    Float,
    Text,
}

/// The columns of some rows: the fields of the rows in the order in which they come, those of `scores` as a column each.
///
/// A field of the input that is called like a method keeps its place in NDJSON; in a table its name is followed by ` (input)`.
pub struct Table {
    labels: Vec<String>,
    columns: IndexMap<String, ColumnKind>,
}

impl Table {
    /// A table without columns yet; the scores of rows have these labels.
    #[must_use]
    pub fn new(labels: &[String]) -> Self {
        Self { labels: labels.to_vec(), columns: IndexMap::new() }
    }

    /// A table with these columns to begin with, whether or not a row has values of them.
    #[must_use]
    pub fn with_columns<'a>(labels: &[String], columns: impl IntoIterator<Item = (&'a str, ColumnKind)>) -> Self {
        let columns = columns.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect();
        Self { labels: labels.to_vec(), columns }
    }

    /// Takes notice of the columns of a row.
    pub fn add(&mut self, row: &ResultRow) {
        for (name, value) in self.cells(row) {
            let kind = kind(&value);
            let known = self.columns.entry(name).or_insert(ColumnKind::Empty);
            *known = joined(*known, kind);
        }
    }

    pub fn columns(&self) -> impl Iterator<Item = (&str, ColumnKind)> {
        self.columns.iter().map(|(name, kind)| (name.as_str(), *kind))
    }

    /// The values of a row, one for each column; null where it has none.
    #[must_use]
    pub fn values(&self, row: &ResultRow) -> Vec<Value> {
        let mut cells: Map<String, Value> =
            self.cells(row).into_iter().map(|(name, value)| (name, value.into_owned())).collect();
        self.columns.keys().map(|name| cells.remove(name).unwrap_or(Value::Null)).collect()
    }

    fn cells<'a>(&self, row: &'a ResultRow) -> Vec<(String, Cow<'a, Value>)> {
        let mut cells = Vec::new();
        for (name, value) in row {
            match (name.as_str(), value) {
                ("scores", Value::Object(scores)) => {
                    // All methods, in order, also where this row has no score of some.
                    let score =
                        |label: &String| (label.clone(), Cow::Borrowed(scores.get(label).unwrap_or(&Value::Null)));
                    cells.extend(self.labels.iter().map(score));
                }
                ("thresholds", Value::Object(thresholds)) => cells.extend(threshold_cells(thresholds)),
                _ if self.labels.contains(name) => cells.push((format!("{name} (input)"), Cow::Borrowed(value))),
                _ => cells.push((name.clone(), Cow::Borrowed(value))),
            }
        }
        cells
    }
}

/// Of each method and false-positive rate the threshold, and whether the score reaches it.
fn threshold_cells(thresholds: &Map<String, Value>) -> Vec<(String, Cow<'_, Value>)> {
    let mut cells = Vec::new();
    for (label, points) in thresholds {
        for point in points.as_array().into_iter().flatten() {
            for what in ["threshold", "above"] {
                cells.push((format!("{label} {what} at FPR {}", point["fpr"]), Cow::Borrowed(&point[what])));
            }
        }
    }
    cells
}

fn kind(value: &Value) -> ColumnKind {
    match value {
        Value::Null => ColumnKind::Empty,
        Value::Bool(_) => ColumnKind::Boolean,
        Value::Number(number) if number.is_i64() => ColumnKind::Integer,
        // Beyond 64 bits with a sign a table has no integers that all programs read.
        Value::Number(number) if number.is_u64() => ColumnKind::Text,
        Value::Number(_) => ColumnKind::Float,
        Value::Array(list) if list.is_empty() => ColumnKind::Empty,
        Value::String(_) | Value::Array(_) | Value::Object(_) => ColumnKind::Text,
    }
}

fn joined(one: ColumnKind, other: ColumnKind) -> ColumnKind {
    match (one.min(other), one.max(other)) {
        // There is no number that is a truth value.
        (ColumnKind::Boolean, ColumnKind::Integer | ColumnKind::Float) => ColumnKind::Text,
        (_, wider) => wider,
    }
}

/// Returns the value as text: a string as it is, a list or an object as JSON; `None` for null and the empty list.
#[must_use]
pub fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::Array(list) if list.is_empty() => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        value => Some(Cow::Owned(value.to_string())),
    }
}

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the table cannot be written as Parquet: {0}")]
pub struct TableError(#[from] ParquetError);

/// Writes a table a group of rows at a time, every column optional; lists and objects are JSON.
pub struct ParquetWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    table: Table,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file with the columns of a table.
    pub fn new(out: W, table: Table) -> Result<Self, TableError> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema(&table)?), Arc::new(properties))?;
        Ok(Self { writer, table })
    }

    /// Writes some rows; values of other columns than the table's are left out.
    pub fn write_group(&mut self, rows: &[ResultRow]) -> Result<(), TableError> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<Vec<Value>> = rows.iter().map(|row| self.table.values(row)).collect();
        let mut columns = self.writer.next_row_group()?;
        for (place, (_, kind)) in self.table.columns().enumerate() {
            let values = rows.iter().map(|row| &row[place]);
            match kind {
                ColumnKind::Boolean => column::<BoolType>(&mut columns, values.map(Value::as_bool))?,
                ColumnKind::Integer => column::<Int64Type>(&mut columns, values.map(Value::as_i64))?,
                ColumnKind::Float => column::<DoubleType>(&mut columns, values.map(Value::as_f64))?,
                ColumnKind::Empty | ColumnKind::Text => {
                    let bytes = |value| text(value).map(|text| ByteArray::from(text.into_owned().into_bytes()));
                    column::<ByteArrayType>(&mut columns, values.map(bytes))?;
                }
            }
        }
        columns.close()?;
        Ok(())
    }

    /// Flushes all rows written so far, and returns the underlying writer.
    pub fn flushed(&mut self) -> Result<&mut W, TableError> {
        self.writer.flush().map_err(ParquetError::from)?;
        Ok(self.writer.inner_mut())
    }

    /// Completes the file.
    pub fn finish(self) -> Result<W, TableError> {
        Ok(self.writer.into_inner()?)
    }
}

fn schema(table: &Table) -> Result<Type, ParquetError> {
    let field = |(name, kind)| {
        let (physical, logical) = match kind {
            ColumnKind::Boolean => (PhysicalType::BOOLEAN, None),
            ColumnKind::Integer => (PhysicalType::INT64, None),
            ColumnKind::Float => (PhysicalType::DOUBLE, None),
            ColumnKind::Empty | ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical).build()?))
    };
    let fields = table.columns().map(field).collect::<Result<_, ParquetError>>()?;
    Type::group_type_builder("results").with_fields(fields).build()
}

/// Writes the next column of a group.
fn column<T: DataType>(
    columns: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    let few = || ParquetError::General("the table has fewer columns than its schema".to_owned());
    let mut column = columns.next_column()?.ok_or_else(few)?;
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}
