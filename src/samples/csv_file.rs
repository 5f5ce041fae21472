//! CSV with a header, whatever separates its columns.

use super::columns::{MAX_COLUMNS, ReadOptions};
use super::input::InputFile;
use super::record::{Fields, ReadError, Record, RecordPlace};
use crate::wire::number_of;
use csv::{ErrorKind, StringRecord};
use serde_json::Value;
use std::io::Read;
use std::iter::from_fn;
use std::sync::atomic::Ordering::Relaxed;

/// Delimiters to detect if none is given.
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
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(RecordBytes::new(input, limit));
    let header = reader.headers().map_err(unfit)?;
    if header.len() > MAX_COLUMNS {
        return Err(ReadError::Unfit(format!("line 1: {} columns; the limit is {MAX_COLUMNS}", header.len())));
    }
    let names: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
    let known = |name: &str| names.iter().any(|known| known == name);
    let all = || names.iter().map(String::as_str);
    options.columns.check(known, all).map_err(ReadError::Unfit)?;
    // None where members and non-members have a column each.
    let text = options.columns.text_among(known, all).ok().map(str::to_owned);
    let mut record = StringRecord::new();
    Ok(from_fn(move || {
        let end_of_last = reader.position().clone();
        reader.get_mut().begin_record(end_of_last.byte());
        let read = reader.read_record(&mut record);
        let line = end_of_last.line() + reader.get_ref().line_ends_before();
        let fields = match read {
            Ok(false) => return None,
            Ok(true) => Ok(fields(&record, &names, text.as_deref())),
            Err(error) => match (error.to_string(), error.into_kind()) {
                (_, ErrorKind::Io(error)) => return Some(Err(ReadError::broken(RecordPlace::Line(line), error))),
                (_, ErrorKind::UnequalLengths { expected_len, len, .. }) => {
                    Err(format!("{}, where the header has {expected_len}", number_of(len, "field")))
                }
                (_, ErrorKind::Utf8 { .. }) => Err("not UTF-8".to_owned()),
                (fault, _) => return Some(Err(ReadError::Broken { place: RecordPlace::Line(line), fault })),
            },
        };
        Some(Ok(Record { place: RecordPlace::Line(line), position: counter.load(Relaxed), fields }))
    }))
}

fn unfit(error: csv::Error) -> ReadError {
    match (error.to_string(), error.into_kind()) {
        (_, ErrorKind::Io(error)) => ReadError::broken(RecordPlace::Line(1), error),
        (fault, _) => ReadError::Unfit(format!("line 1: {fault}")),
    }
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

/// Detects the delimiter from the head of a file: one that makes the text's name a column, or else the most columns.
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

/// Returns true if a file with this head is a table with the column of texts.
pub fn is_table(head: &[u8], options: &ReadOptions) -> bool {
    let delimiter = options.delimiter.unwrap_or_else(|| delimiter(head, options));
    let header = header(head, delimiter);
    options.columns.have_texts(|name| header.iter().any(|known| known == name))
}

/// The bytes of the file as they are parsed, at most `limit` for a record: a quotation mark that is never closed would make one
/// record of all that follows. Those of the record are kept, since the parser counts the line ends before it only as it passes
/// them.
struct RecordBytes {
    reader: InputFile,
    limit: u64,
    /// Number of bytes that may still be read.
    left: u64,
    /// Bytes read since the end of the last record.
    ahead: Vec<u8>,
    /// Offset of `ahead` in the file.
    start: u64,
}

impl RecordBytes {
    fn new(mut reader: InputFile, limit: u64) -> Self {
        reader.begin_record();
        Self { reader, limit, left: limit, ahead: Vec::new(), start: 0 }
    }

    /// Goes on to the record after the one that ends at this byte.
    fn begin_record(&mut self, end_of_last: u64) {
        let passed = usize::try_from(end_of_last - self.start).unwrap_or(usize::MAX).min(self.ahead.len());
        self.ahead.drain(..passed);
        (self.start, self.left) = (end_of_last, self.limit);
        self.reader.begin_record();
    }

    /// Counts the line ends between the last record and this one.
    fn line_ends_before(&self) -> u64 {
        let before = self.ahead.iter().take_while(|byte| b"\r\n".contains(byte));
        before.filter(|byte| **byte == b'\n').count() as u64
    }
}

impl Read for RecordBytes {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let fault = format!("the record is longer than {} bytes (server.body_limit)", self.limit);
            return Err(std::io::Error::other(fault));
        }
        let read = Read::take(&mut self.reader, self.left).read(buffer)?;
        self.left -= read as u64;
        self.ahead.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn places(content: &str) -> Vec<RecordPlace> {
        let input = InputFile::from_reader(Cursor::new(content.to_owned()), "csv").unwrap();
        read(input, u64::MAX, &ReadOptions::default()).unwrap().map(|record| record.unwrap().place).collect()
    }

    #[test]
    fn the_columns_of_a_header_are_bounded() {
        let table = |columns: usize| {
            let content = format!("text{}\n", ",a".repeat(columns - 1));
            let input = InputFile::from_reader(Cursor::new(content), "csv").unwrap();
            read(input, u64::MAX, &ReadOptions::default()).err().map(|error| error.to_string())
        };
        assert_eq!(table(MAX_COLUMNS), None);
        assert_eq!(table(MAX_COLUMNS + 1).unwrap(), "line 1: 10001 columns; the limit is 10000");
    }

    #[test]
    fn a_record_is_at_the_line_on_which_it_begins() {
        let long = "x\n".repeat(9_999);
        for (content, lines) in [
            ("text\na\nb", &[2, 3][..]),
            ("text\n\n\na\n\nb\n\n", &[4, 6]),
            ("\n\ntext\na\n", &[4]),
            ("text\r\na\r\nb\r\n", &[2, 3]),
            ("text\r\n\r\na\r\n\r\n\r\nb\r\n", &[3, 6]),
            ("text\n\"a\n\nb\"\nc\n", &[2, 5]),
            ("text\r\n\"a\r\nb\"\r\n\r\nc", &[2, 5]),
            ("text,label\r\na\r\n\"b\r\n\",1\r\nc\r\n", &[2, 3, 5]),
            (&format!("text\n\"{long}\"\n\nb\n"), &[2, 10_003]),
        ] {
            let lines: Vec<RecordPlace> = lines.iter().map(|line| RecordPlace::Line(*line)).collect();
            assert_eq!(places(content), lines, "{:?}", &content[..content.len().min(60)]);
        }
    }
}
