//! Lines of NDJSON, bounded in length, read on a thread of their own.

use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

/// Some editors begin a file with it.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One text of a file, with the fields that came along.
#[derive(Clone, Debug)]
pub struct Line {
    pub text: String,
    pub id: Option<String>,
    /// Texts that differ little from it; also among the others.
    pub neighbors: Option<Vec<String>>,
    pub others: Map<String, Value>,
}

/// A line that holds no text to score, with the fields that it does hold.
#[derive(Clone, Debug)]
pub struct BadLine {
    pub fault: String,
    pub others: Map<String, Value>,
}

impl From<String> for BadLine {
    fn from(fault: String) -> Self {
        Self { fault, others: Map::new() }
    }
}

/// An opened input, with its size where it is known.
pub type Opened = (Box<dyn BufRead + Send>, Option<u64>);

/// Opens a file, or standard input for `-`.
pub fn open(path: &Path) -> std::io::Result<Opened> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::new(stdin())), None));
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((Box::new(BufReader::with_capacity(1 << 20, file)), Some(size)))
}

/// The next line that is not blank, without its end: its number from 1, and its bytes or what is wrong with it.
///
/// # Errors
/// Where the input cannot be read.
pub fn next(
    reader: &mut dyn BufRead,
    number: &mut usize,
    limit: u64,
) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
    loop {
        let mut line = Vec::new();
        // One byte over the limit tells a line that is too long from one that just fits.
        if Read::take(&mut *reader, limit.saturating_add(1)).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        *number += 1;
        let complete = line.last() == Some(&b'\n');
        if !complete && line.len() as u64 > limit {
            reader.skip_until(b'\n')?;
            return Ok(Some(Err(format!("the line is longer than {limit} bytes (server.body_limit)"))));
        }
        if *number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Ok(line)));
        }
    }
}

/// Reads one JSON object with `text` (or `input`) and perhaps `id`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(line: &[u8]) -> Result<Line, BadLine> {
    let value: Value = serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    let Value::Object(mut others) = value else { return Err("not a JSON object".to_owned().into()) };
    match text_and_id(&others).and_then(|found| Ok((found, neighbors(&others)?))) {
        Err(fault) => Err(BadLine { fault: fault.to_owned(), others }),
        Ok(((text, id), neighbors)) => {
            for name in ["text", "input", "id"] {
                others.shift_remove(name);
            }
            Ok(Line { text, id, neighbors, others })
        }
    }
}

fn text_and_id(object: &Map<String, Value>) -> Result<(String, Option<String>), &'static str> {
    let text = match (object.get("text"), object.get("input")) {
        (Some(Value::String(text)), None) | (None, Some(Value::String(text))) => text.clone(),
        (None, None) => return Err("no `text` (or `input`)"),
        (Some(_), Some(_)) => return Err("both `text` and `input`"),
        _ => return Err("`text` is not a string"),
    };
    match object.get("id") {
        None | Some(Value::Null) => Ok((text, None)),
        Some(Value::String(id)) => Ok((text, Some(id.clone()))),
        Some(Value::Number(id)) => Ok((text, Some(id.to_string()))),
        Some(_) => Err("`id` is neither a string nor a number"),
    }
}

fn neighbors(object: &Map<String, Value>) -> Result<Option<Vec<String>>, &'static str> {
    match object.get("neighbors") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(texts)) if !texts.is_empty() => {
            let texts = texts.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<String>>>().map(Some).ok_or("`neighbors` holds something else than strings")
        }
        Some(_) => Err("`neighbors` is no list of at least one string"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_blank_ones_skipped() {
        let text = b"one\n\n  \r\ntoo long a line\nlast";
        let (mut reader, mut number) = (&text[..], 0);
        let mut all = Vec::new();
        while let Some(line) = next(&mut reader, &mut number, 5).unwrap() {
            all.push((number, line.map(|l| String::from_utf8(l).unwrap().trim_end().to_owned()).ok()));
        }
        assert_eq!(all, [(1, Some("one".into())), (4, None), (5, Some("last".into()))]);
    }

    #[test]
    fn a_line_is_an_object_with_text() {
        let line = parse(br#"{"input": "a", "id": 7, "label": 1}"#).unwrap();
        assert_eq!((line.text.as_str(), line.id.as_deref()), ("a", Some("7")));
        assert_eq!(line.others["label"], 1);
        for bad in ["", "[]", "{}", r#"{"text": 1}"#, r#"{"text": "a", "input": "b"}"#, r#"{"text": "a", "id": []}"#] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse(b"{\"text\": \"\xff\"}").is_err());
    }
}
