//! Results as Parquet.

use super::ResultRow;
use super::table::{ColumnKind, Table, text};
use anyhow::{Context, Result};
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

/// Rows that are held in memory and written at once.
const GROUP: usize = 10_000;

/// Writes the rows, every column optional; lists and objects are JSON.
pub fn write(out: impl Write + Send, table: &Table, mut rows: impl Iterator<Item = Result<ResultRow>>) -> Result<()> {
    let kinds: Vec<ColumnKind> = table.columns().map(|(_, kind)| kind).collect();
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema(table)?), Arc::new(properties))?;
    loop {
        let group = rows.by_ref().take(GROUP).map(|row| Ok(table.values(&row?)));
        let group: Vec<Vec<Value>> = group.collect::<Result<_>>()?;
        if group.is_empty() {
            break;
        }
        let mut columns = writer.next_row_group()?;
        for (place, kind) in kinds.iter().enumerate() {
            let values = group.iter().map(|row| &row[place]);
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
    }
    writer.close()?;
    Ok(())
}

fn schema(table: &Table) -> Result<Type> {
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
    let fields = table.columns().map(field).collect::<Result<_>>()?;
    Ok(Type::group_type_builder("results").with_fields(fields).build()?)
}

/// Writes the next column of a group.
fn column<T: DataType>(
    columns: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    let mut column = columns.next_column()?.context("the table has fewer columns than its schema")?;
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    Ok(column.close()?)
}
