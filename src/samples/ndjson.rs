//! One JSON object a line.

use super::error::ReadError;
use super::input::InputFile;
use super::place::RecordPlace;
use super::record::{Fields, Record};
use crate::wire::without_place;
use serde_json::Value;
use std::io::{BufRead, Read, Result};
use std::iter::from_fn;
use std::sync::atomic::Ordering::Relaxed;

/// Some editors begin a file with it.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The records of lines of at most `limit` bytes; blank lines are none.
pub fn read(input: InputFile, limit: u64) -> impl Iterator<Item = std::result::Result<Record, ReadError>> {
    let counter = input.counter();
    let mut lines = Lines { reader: input, number: 0, limit };
    from_fn(move || {
        let line = match lines.next() {
            Ok(line) => line?,
            Err(error) => {
                return Some(Err(ReadError::Broken {
                    place: RecordPlace::Line(lines.number + 1),
                    fault: error.to_string(),
                }));
            }
        };
        let fields = line.and_then(|line| parse(&line));
        Some(Ok(Record { place: RecordPlace::Line(lines.number), position: counter.load(Relaxed), fields }))
    })
}

fn parse(line: &[u8]) -> std::result::Result<Fields, String> {
    let line = line.trim_ascii();
    if line == b"{" {
        return Err(
            "not JSON: an object begins that does not end on its line; write each on one line (`jq -c .`)".into()
        );
    }
    let fault = |error: serde_json::Error| format!("not JSON: {} at column {}", without_place(&error), error.column());
    let value = serde_json::from_slice(line).map_err(fault)?;
    fields(value)
}

/// The fields of an object; a string alone is a text.
pub fn fields(value: Value) -> std::result::Result<Fields, String> {
    let kind = match value {
        Value::Object(fields) => return Ok(fields),
        Value::String(text) => return Ok(Fields::from_iter([("text".to_owned(), text.into())])),
        Value::Array(_) => "array",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
    };
    Err(format!("not a JSON object with `text`, but a JSON {kind}"))
}

/// The lines of an input that are not blank.
struct Lines<R> {
    reader: R,
    /// Of the last line, from 1.
    number: u64,
    /// Maximum length of a line in bytes.
    limit: u64,
}

impl<R: BufRead> Lines<R> {
    /// The next line that is not blank, or what is wrong with it.
    fn next(&mut self) -> Result<Option<std::result::Result<Vec<u8>, String>>> {
        loop {
            let mut line = Vec::new();
            // One byte over the limit tells a line that is too long from one that just fits.
            let most = self.limit.saturating_add(1);
            if Read::take(&mut self.reader, most).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let complete = line.last() == Some(&b'\n');
            if !complete && line.len() as u64 > self.limit {
                self.reader.skip_until(b'\n')?;
                return Ok(Some(Err(format!("the line is longer than {} bytes (server.body_limit)", self.limit))));
            }
            if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(Ok(line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_blank_ones_skipped() {
        let mut lines = Lines { reader: &b"one\n\n  \r\ntoo long a line\nlast"[..], number: 0, limit: 5 };
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((lines.number, line.map(|line| String::from_utf8(line).unwrap().trim_end().to_owned()).ok()));
        }
        assert_eq!(all, [(1, Some("one".into())), (4, None), (5, Some("last".into()))]);
    }

    #[test]
    fn a_line_is_an_object_or_a_text() {
        assert_eq!(parse(b" {\"a\": 1}\r\n").unwrap()["a"], 1);
        assert_eq!(parse(b"\"a text\"").unwrap()["text"], "a text");
        for (line, words) in [
            (&b"nonsense"[..], "not JSON: "),
            (b"{", "(`jq -c .`)"),
            (b"[{\"text\": \"a\"}]", "but a JSON array"),
            (b"7", "but a JSON number"),
            (b"{\"text\": \"\xff\"}", "not JSON: "),
        ] {
            let fault = parse(line).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
