//! Tables of Apache Parquet, as the Hugging Face Hub keeps its datasets.

use super::columns::ColumnNames;
use super::input::InputFile;
use super::record::{Fields, ReadError, Record, RecordPlace};
use bytes::Bytes;
use lm::panics::caught;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use serde_json::{Number, Value};
use std::fs::File;
use std::io::Read;
use std::sync::atomic::Ordering::Relaxed;

/// Magic number at the start of a file.
pub const MAGIC: &[u8] = b"PAR1";

/// The records of a table. What cannot be read at any place, a compressed file or standard input, is held in memory.
pub fn read(
    mut input: InputFile,
    columns: &ColumnNames,
) -> Result<impl Iterator<Item = Result<Record, ReadError>> + use<>, ReadError> {
    let rows = match input.plain_file() {
        Some(path) => ParquetRows::open(File::open(path)?),
        None => {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes)?;
            ParquetRows::open(Bytes::from(bytes))
        }
    };
    let rows = rows.map_err(ReadError::Unfit)?;
    check_columns(columns, &rows.columns)?;
    let count = rows.claimed.max(1);
    Ok(rows.zip(1..).map(move |(row, number)| {
        let place = RecordPlace::Row(number);
        let fields = row.map_err(|fault| ReadError::Broken { place, fault })?;
        let size = input.size();
        let position = size.map_or_else(|| input.counter().load(Relaxed), |size| position(size, number, count));
        Ok(Record { place, position, fields: Ok(fields) })
    }))
}

/// Checks that the columns of a table are those of samples.
///
/// # Errors
/// [`ReadError::Unfit`], which names what is missing.
pub fn check_columns(columns: &ColumnNames, names: &[String]) -> Result<(), ReadError> {
    let known = |name: &str| names.iter().any(|known| known == name);
    columns.check(known, || names.iter().map(String::as_str)).map_err(ReadError::Unfit)
}

/// The position in a file of `size` bytes behind a row, as if every row took an equal part of it.
pub fn position(size: u64, row: u64, rows: u64) -> u64 {
    (size as f64 * row as f64 / rows as f64) as u64
}

/// The rows of a table, or why one cannot be read. The library panics on some damaged files; nothing is read after that.
pub struct ParquetRows {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The number of rows that the file claims to have.
    pub claimed: u64,
    rows: Option<RowIter<'static>>,
}

impl ParquetRows {
    /// # Errors
    /// Why it is no table, in words.
    pub fn open<R: ChunkReader + 'static>(file: R) -> Result<Self, String> {
        let opened = caught(|| SerializedFileReader::new(file).map_err(|error| error.to_string())).flatten();
        let reader = opened.map_err(|fault| format!("not a Parquet file that can be read: {fault}"))?;
        let metadata = reader.metadata().file_metadata();
        let columns = metadata.schema().get_fields().iter().map(|field| field.name().to_owned()).collect();
        let claimed = u64::try_from(metadata.num_rows()).unwrap_or(0);
        Ok(Self { columns, claimed, rows: Some(RowIter::from_file_into(Box::new(reader))) })
    }
}

impl Iterator for ParquetRows {
    type Item = Result<Fields, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.as_mut()?;
        let read = caught(|| rows.next().map(|row| row.map(|row| fields(&row)).map_err(|error| error.to_string())));
        read.unwrap_or_else(|panic| {
            self.rows = None;
            Some(Err(format!("the library that reads Parquet failed: {panic}")))
        })
    }
}

fn fields(row: &Row) -> Fields {
    row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
}

/// The value as JSON has it. Dates and the like are texts; what is no number, and bytes that are no text, are null.
fn value(field: &Field) -> Value {
    let float = |number: f64| Number::from_f64(number).map_or(Value::Null, Value::Number);
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        Field::Float(number) => float(f64::from(*number)),
        Field::Double(number) => float(*number),
        Field::Str(text) => text.as_str().into(),
        // Some writers do not say that their bytes are texts. Others, as of images, are nothing that JSON can hold.
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).map_or(Value::Null, Value::from),
        Field::Group(row) => Value::Object(fields(row)),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::samples::{InputFile, ReadOptions, records};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use std::io::Cursor;

    /// Found by fuzzing: the library panics where a column begins before its file.
    const NEGATIVE_START: &str = "UEFSMRUAFSgVKCwVBBUAFQYVBgAABwAAAG9uZSB0d28FAAAAAXRocmVlFQAVCix0aHIBAAAAAAAAAAAAAAAAAAAAFQIZPEgGc2No\
    ZW1hFQQAFQwlABgEdGV4dCUAABUEJQAYBWxhYmVsABYEGRwZLCYIHBUMGRUAGRgEdGV4dBUAFgQWShZKJiMAACZSHBUEGRUAGRgF\
    bGFiZWwVABYEFkIWQiZSAAAWjAEWBAAAbAAAAFBBUjE=";

    #[test]
    fn a_file_that_the_library_panics_on_has_a_fault() {
        let bytes = STANDARD.decode(NEGATIVE_START).unwrap();
        let input = InputFile::from_reader(Cursor::new(bytes), "").unwrap();
        let read: Vec<_> = records(input, &ReadOptions::default()).unwrap().collect();
        let fault = read.last().unwrap().as_ref().unwrap_err().to_string();
        assert!(fault.contains("the library that reads Parquet failed: column start"), "{fault}");
    }
}
