//! Results as CSV.

use crate::table::{ResultRow, Table, text};
use crate::wire::inert;
use anyhow::Result;
use serde_json::Value;
use std::io::Write;

/// Writes the header and the rows. What is missing is empty; numbers have the digits of JSON.
pub fn write(out: impl Write, table: &Table, rows: impl Iterator<Item = Result<ResultRow>>) -> Result<()> {
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
