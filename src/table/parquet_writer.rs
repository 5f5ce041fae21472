//! A table as Parquet.

use super::columns::{ColumnKind, ResultRow, Table, text};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

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
