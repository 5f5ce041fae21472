//! CSV with a header, whatever separates its columns.

use super::ReadOptions;
use super::error::ReadError;
use super::input::InputFile;
use super::place::RecordPlace;
use super::record::{Fields, Record};
use csv::{ErrorKind, Position, StringRecord};
use serde_json::Value;
use std::io::Read;
use std::iter::from_fn;
use std::sync::atomic::Ordering::Relaxed;

/// What may separate columns where nothing is said.
const DELIMITERS: [u8; 4] = *b",\t;|";

/// The records, each of at most `limit` bytes. An empty field is the empty text or else null.
pub fn read(
    mut input: InputFile,
    limit: u64,
    options: &ReadOptions,
) -> Result<impl Iterator<Item = Result<Record, ReadError>> + use<>, ReadError> {
    let delimiter = match options.delimiter {
        Some(delimiter) => delimiter,
        None if input.extension() == "tsv" => b'\t',
        None => delimiter(input.peek(1)?, options),
    };
    let counter = input.counter();
    let bounded = Bounded { reader: input, limit, left: limit };
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(bounded);
    let names: Vec<String> = reader.headers().map_err(unfit)?.iter().map(|name| name.trim().to_owned()).collect();
    let known = |name: &str| names.iter().any(|known| known == name);
    let all = || names.iter().map(String::as_str);
    options.columns.check(known, all).map_err(ReadError::Unfit)?;
    // None where members and non-members have a column each.
    let text = options.columns.text_among(known, all).ok().map(str::to_owned);
    let mut record = StringRecord::new();
    Ok(from_fn(move || {
        let line = reader.position().line();
        reader.get_mut().left = limit;
        let read = reader.read_record(&mut record);
        let line = record.position().map_or(line, Position::line).max(line);
        let fields = match read {
            Ok(false) => return None,
            Ok(true) => Ok(fields(&record, &names, text.as_deref())),
            Err(error) => match error.kind() {
                ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    Err(format!("{len} fields, where the header has {expected_len}"))
                }
                ErrorKind::Utf8 { .. } => Err("not UTF-8".to_owned()),
                _ => return Some(Err(ReadError::Broken { place: RecordPlace::Line(line), fault: error.to_string() })),
            },
        };
        Some(Ok(Record { place: RecordPlace::Line(line), position: counter.load(Relaxed), fields }))
    }))
}

fn unfit(error: csv::Error) -> ReadError {
    ReadError::Unfit(format!("line 1: {error}"))
}

/// Of two columns of one name the first is read.
fn fields(record: &StringRecord, names: &[String], text: Option<&str>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in names.iter().zip(record) {
        let value = if value.is_empty() && Some(name.as_str()) != text { Value::Null } else { Value::from(value) };
        fields.entry(name.as_str()).or_insert(value);
    }
    fields
}

/// What separates the columns of a file that begins so: what makes the text's name a column, or else most columns.
fn delimiter(head: &[u8], options: &ReadOptions) -> u8 {
    let count = |delimiter: u8| {
        let header = header(head, delimiter);
        let known = |name: &str| header.iter().any(|known| known == name);
        (options.columns.have_texts(known), header.len())
    };
    // The first of those that are equal.
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

/// The names of the columns of a file that begins so.
pub fn header(head: &[u8], delimiter: u8) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).from_reader(head);
    let first = reader.byte_records().next().and_then(Result::ok).unwrap_or_default();
    first.iter().map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect()
}

/// Whether the file that begins so is a table with the column of texts.
pub fn is_table(head: &[u8], options: &ReadOptions) -> bool {
    let delimiter = options.delimiter.unwrap_or_else(|| delimiter(head, options));
    let header = header(head, delimiter);
    options.columns.have_texts(|name| header.iter().any(|known| known == name))
}

/// A quotation mark that is never closed would make one record of all that follows.
struct Bounded {
    reader: InputFile,
    limit: u64,
    /// How much more may be read.
    left: u64,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let fault = format!("the record is longer than {} bytes (server.body_limit)", self.limit);
            return Err(std::io::Error::other(fault));
        }
        let read = Read::take(&mut self.reader, self.left).read(buffer)?;
        self.left -= read as u64;
        Ok(read)
    }
}
