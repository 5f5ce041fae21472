//! One JSON object a line, or one JSON array of objects that is read an element at a time.

use super::input::InputFile;
use super::record::{Fields, ReadError, Record, RecordPlace};
use crate::wire::without_place;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};
use std::io::{self, BufRead, Read};
use std::iter::from_fn;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of JSON values of a record, names included: each takes 100 bytes of memory or more, and may take two of the file.
const MAX_VALUES: usize = 200_000;

/// Some editors begin a file with it.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The records of lines of at most `limit` bytes; blank lines are none.
pub fn lines(input: InputFile, limit: u64) -> impl Iterator<Item = Result<Record, ReadError>> {
    let counter = input.counter();
    let mut lines = Lines { reader: input, number: 0, limit };
    from_fn(move || {
        let line = match lines.next() {
            Ok(line) => line?,
            Err(error) => return Some(Err(ReadError::broken(RecordPlace::Line(lines.number + 1), error))),
        };
        let fields = line.and_then(|line| parse(&line));
        Some(Ok(Record { place: RecordPlace::Line(lines.number), position: counter.load(Relaxed), fields }))
    })
}

/// Reads a record.
fn parse(line: &[u8]) -> Result<Fields, String> {
    let line = line.trim_ascii();
    check_size(line)?;
    if line == b"{" {
        return Err(
            "not JSON: an object begins that does not end on its line; write each on one line (`jq -c .`)".into()
        );
    }
    let fault = |error: serde_json::Error| format!("not JSON: {} at column {}", without_place(&error), error.column());
    let value = serde_json::from_slice(line).map_err(fault)?;
    fields(value)
}

/// Refuses a record of more than [`MAX_VALUES`] values, before any of them is read.
///
/// # Errors
/// The limit, in words.
pub fn check_size(json: &[u8]) -> Result<(), String> {
    // A value takes a byte, and another one separates it from the next.
    let may_be_too_large = json.len() > 2 * MAX_VALUES;
    if may_be_too_large && most_values(json) > MAX_VALUES {
        return Err(format!("the record has more than {MAX_VALUES} JSON values"));
    }
    Ok(())
}

/// Returns an upper bound on the number of values of a JSON text: each but the first follows a bracket, a comma or a colon.
fn most_values(json: &[u8]) -> usize {
    let (mut values, mut in_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' | b':' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// The fields of an object; a string alone is a text.
fn fields(value: Value) -> Result<Fields, String> {
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
struct Lines {
    reader: InputFile,
    /// Of the last line, from 1.
    number: u64,
    /// Maximum length of a line in bytes.
    limit: u64,
}

impl Lines {
    /// The next line that is not blank, or what is wrong with it.
    fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, String>>> {
        loop {
            let mut line = Vec::new();
            self.reader.begin_record();
            // One byte over the limit tells a line that is too long from one that just fits.
            let most = self.limit.saturating_add(1);
            if Read::take(&mut self.reader, most).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let complete = line.last() == Some(&b'\n');
            if !complete && line.len() as u64 > self.limit {
                self.skip_line()?;
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

    /// Skips the rest of a line, which takes no memory.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            self.reader.begin_record();
            let bytes = self.reader.fill_buf()?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let skipped = end.map_or(bytes.len(), |end| end + 1);
            self.reader.consume(skipped);
            if end.is_some() || skipped == 0 {
                return Ok(());
            }
        }
    }
}

/// The elements of an array, each of at most `limit` bytes.
pub fn elements(
    mut input: InputFile,
    limit: u64,
) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    if input.peek(BYTE_ORDER_MARK.len())?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    let first = next_byte(&mut input)?;
    if first != Some(b'[') {
        let begins = first.map_or("nothing".to_owned(), |byte| format!("{:?}", char::from(byte)));
        return Err(ReadError::Unfit(format!("a JSON array begins with '[', and this file with {begins}")));
    }
    input.consume(1);
    let counter = input.counter();
    let (mut number, mut ended) = (0, false);
    Ok(from_fn(move || {
        if ended {
            return None;
        }
        let next = next_element(&mut input, number == 0, limit);
        number += 1;
        let place = RecordPlace::Element(number);
        // After a fault there is no telling where the next element begins.
        ended = !matches!(next, Ok(Some(_)));
        match next {
            Ok(None) => None,
            Ok(Some(element)) => {
                let fields = parse(element.get().as_bytes());
                Some(Ok(Record { place, position: counter.load(Relaxed), fields }))
            }
            Err(fault) => Some(Err(ReadError::broken(place, fault))),
        }
    }))
}

/// The next element; none at the end of the array, after which nothing may follow.
fn next_element(input: &mut InputFile, is_first: bool, limit: u64) -> io::Result<Option<Box<RawValue>>> {
    let fault = |words: &str| io::Error::other(words);
    let cut_off = || io::Error::other("the file ends in the middle of the array");
    let byte = next_byte(input)?.ok_or_else(cut_off)?;
    if byte == b']' {
        input.consume(1);
        return match next_byte(input)? {
            None => Ok(None),
            Some(_) => Err(fault("something follows the end of the array")),
        };
    }
    if !is_first {
        if byte != b',' {
            return Err(io::Error::other(format!("expected ',' or ']', found {:?}", char::from(byte))));
        }
        input.consume(1);
        next_byte(input)?.ok_or_else(cut_off)?;
    }
    if !matches!(input.fill_buf()?.first(), Some(b'{' | b'"')) {
        return Err(fault("expected an object with `text`"));
    }
    let mut element = Read::take(input, limit);
    // An object or a string ends with its last byte: nothing that follows it is read.
    let value = Box::<RawValue>::deserialize(&mut Deserializer::from_reader(&mut element));
    value.map(Some).map_err(|error| match (error.is_eof(), element.limit()) {
        (true, 0) => io::Error::other(format!("the element is longer than {limit} bytes (server.body_limit)")),
        (true, _) => cut_off(),
        (false, _) if error.is_io() => error.into(),
        (false, _) => io::Error::other(format!("not JSON: {}", without_place(&error))),
    })
}

/// The next byte that is no white space, without taking it.
fn next_byte(input: &mut InputFile) -> io::Result<Option<u8>> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = bytes.get(blank).copied();
        input.consume(blank);
        input.begin_record();
        if next.is_some() {
            return Ok(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn lines_are_bounded_and_blank_ones_skipped() {
        let content = Cursor::new(b"one\n\n  \r\ntoo long a line\nlast");
        let reader = InputFile::from_reader(content, "").unwrap();
        let mut lines = Lines { reader, number: 0, limit: 5 };
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((lines.number, line.map(|line| String::from_utf8(line).unwrap().trim_end().to_owned()).ok()));
        }
        assert_eq!(all, [(1, Some("one".into())), (4, None), (5, Some("last".into()))]);
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        for (json, most) in [(r#""a,b""#, 1), ("[]", 2), (r#"{"a": [1, "x,\", [", null], "\\": {}}"#, 9)] {
            assert_eq!(most_values(json.as_bytes()), most, "{json}");
        }
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
            (
                format!("{{\"text\": \"a\", \"x\": [0{}]}}", ",0".repeat(MAX_VALUES)).as_bytes(),
                "more than 200000 JSON values",
            ),
        ] {
            let fault = parse(line).unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
