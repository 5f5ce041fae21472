//! Lines of NDJSON, bounded in length, read on a thread of their own.

use crate::audits::Sample;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

/// Some editors begin a file with it.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The fields of a line that is a text to score.
pub const TEXT: [&str; 4] = ["text", "input", "id", "neighbors"];
/// The fields of a line that is a sample to audit.
pub const SAMPLE: [&str; 6] = ["text", "input", "id", "neighbors", "label", "group"];

/// One text of a file, with all fields but the text as they were given.
#[derive(Clone, Debug)]
pub struct TextLine {
    pub sample: Sample,
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

/// A file, or standard input.
pub type InputReader = Box<dyn BufRead + Send>;

/// Opens a file, or standard input for `-`; with its size where it is known.
///
/// # Errors
/// Where it cannot be opened.
pub fn open(path: &Path) -> std::io::Result<(InputReader, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::new(stdin())), None));
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((Box::new(BufReader::with_capacity(1 << 20, file)), Some(size)))
}

/// The lines of an input that are not blank.
pub struct Lines {
    reader: InputReader,
    number: u64,
    /// The most bytes of a line.
    limit: u64,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub fn new(reader: InputReader, limit: u64) -> Self {
        Self { reader, number: 0, limit }
    }

    /// The number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank, or what is wrong with it.
    ///
    /// # Errors
    /// Where the input cannot be read.
    pub fn next(&mut self) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
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

/// Reads one JSON object as a sample of these fields; others are passed over, whatever they are.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(line: &[u8], fields: &[&str]) -> Result<TextLine, BadLine> {
    let value: Value = serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    let Value::Object(mut others) = value else { return Err("not a JSON object".to_owned().into()) };
    let known = others.iter().filter(|(name, _)| fields.contains(&name.as_str()));
    let known: Map<String, Value> = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    let sample = if known.contains_key("text") && known.contains_key("input") {
        Err("both `text` and `input`".to_owned())
    } else {
        serde_path_to_error::deserialize(Value::Object(known)).map_err(in_words)
    };
    match sample {
        Ok(Sample { neighbors: Some(neighbors), .. }) if neighbors.is_empty() => {
            Err(BadLine { fault: "`neighbors`: the list is empty; it takes at least one text".to_owned(), others })
        }
        Ok(sample) => {
            for name in ["text", "input"] {
                others.shift_remove(name);
            }
            Ok(TextLine { sample, others })
        }
        Err(fault) => Err(BadLine { fault, others }),
    }
}

/// The fault with the field that has it.
fn in_words(error: serde_path_to_error::Error<serde_json::Error>) -> String {
    match error.path().to_string().as_str() {
        "." => error.into_inner().to_string(),
        path => format!("`{path}`: {}", error.inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::{Label, SampleId};
    use serde_json::json;

    #[test]
    fn lines_are_bounded_and_blank_ones_skipped() {
        let text = b"one\n\n  \r\ntoo long a line\nlast";
        let mut lines = Lines::new(Box::new(&text[..]), 5);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((lines.number(), line.map(|l| String::from_utf8(l).unwrap().trim_end().to_owned()).ok()));
        }
        assert_eq!(all, [(1, Some("one".into())), (4, None), (5, Some("last".into()))]);
    }

    #[test]
    fn a_line_is_an_object_with_text() {
        let line = parse(br#"{"input": "a", "id": 7, "label": "any", "more": [1]}"#, &TEXT).unwrap();
        assert_eq!(line.sample, Sample { id: Some(SampleId::Integer(7)), text: "a".into(), ..Sample::default() });
        assert_eq!(Value::Object(line.others), json!({ "id": 7, "label": "any", "more": [1] }));
        let line = parse(br#"{"text": "a", "label": 1, "group": "g", "more": 1}"#, &SAMPLE).unwrap();
        let expected =
            Sample { text: "a".into(), label: Some(Label::MEMBER), group: Some("g".into()), ..Sample::default() };
        assert_eq!(line.sample, expected);
        for (bad, words) in [
            ("", "not JSON"),
            ("[]", "not a JSON object"),
            ("{}", "missing field `text`"),
            (r#"{"text": 1}"#, "`text`: invalid type: integer `1`, expected a string"),
            (r#"{"text": "a", "input": "b"}"#, "both `text` and `input`"),
            (r#"{"text": "a", "id": []}"#, "`id`: invalid type: sequence, expected a string or an integer"),
            (r#"{"text": "a", "neighbors": []}"#, "`neighbors`: the list is empty"),
            (r#"{"text": "a", "neighbors": ["b", 1]}"#, "`neighbors[1]`"),
            (r#"{"text": "a", "label": "1"}"#, "`label`"),
        ] {
            let said = parse(bad.as_bytes(), &SAMPLE).unwrap_err().fault;
            assert!(said.contains(words), "{bad}: {said}");
        }
        assert!(parse(b"{\"text\": \"\xff\"}", &TEXT).is_err());
        assert_eq!(parse(br#"{"text": 5, "id": "e"}"#, &TEXT).unwrap_err().others["id"], "e");
    }
}
