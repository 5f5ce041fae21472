//! Records of CSV with a header, bounded in length.

use super::lines::InputReader;
use crate::audits::{Label, Sample, SampleId};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::io::Read;

/// The columns that are read; others are passed over. An empty field of a column that may be missing is none.
#[derive(Deserialize)]
pub struct Row {
    id: Option<String>,
    /// Of the column `text`, or else `input`.
    pub text: String,
    label: Option<String>,
    group: Option<String>,
}

/// A record and its place.
pub struct Record {
    /// The line that it begins at, from 1.
    pub line: u64,
    /// How much of the file it took.
    pub bytes: u64,
    pub row: Row,
}

/// The records of a file, each of at most `limit` bytes.
///
/// # Errors
/// Where the header has no column of texts; what cannot be read later is an item of the iterator and names its line.
pub fn read(reader: InputReader, limit: u64) -> Result<impl Iterator<Item = Result<Record>>> {
    let mut reader = csv::Reader::from_reader(Bounded { reader, limit, left: limit });
    let headers = columns(reader.headers()?)?;
    let mut record = csv::StringRecord::new();
    Ok(std::iter::from_fn(move || {
        let before = reader.position().clone();
        reader.get_mut().left = limit;
        let row = match reader.read_record(&mut record) {
            Ok(false) => return None,
            Ok(true) => record.deserialize(Some(&headers)),
            Err(error) => Err(error),
        };
        let line = record.position().map_or(before.line(), csv::Position::line).max(before.line());
        let bytes = reader.position().byte() - before.byte();
        Some(row.map(|row| Record { line, bytes, row }).with_context(|| format!("line {}", before.line())))
    }))
}

/// The names of the columns without the space around them. Where there is no `text`, `input` is the text.
fn columns(headers: &csv::StringRecord) -> Result<csv::StringRecord> {
    let names = || headers.iter().map(str::trim);
    let Some(text) = ["text", "input"].into_iter().find(|wanted| names().any(|name| name == *wanted)) else {
        bail!("the header names no column `text` or `input`")
    };
    // Of two columns of one name the first is read.
    let is_repeated = |place: usize, name: &str| names().take(place).any(|earlier| earlier == name);
    let read_as = |(place, name)| match name {
        name if is_repeated(place, name) => "",
        name if name == text => "text",
        // Only one of the two is the text.
        "text" | "input" => "",
        name => name,
    };
    Ok(names().enumerate().map(read_as).collect())
}

impl TryFrom<Row> for Sample {
    type Error = anyhow::Error;

    fn try_from(row: Row) -> Result<Self> {
        let label = match row.label {
            None => None,
            Some(label) => match label.trim().parse() {
                Ok(number) => Some(Label::new(number)),
                Err(_) => bail!("the label is {label:?}; it must be 0 or 1"),
            },
        };
        Ok(Self { id: row.id.map(SampleId::Text), text: row.text, label, group: row.group, neighbors: None })
    }
}

/// A quotation mark that is never closed would make one record of all that follows.
struct Bounded {
    reader: InputReader,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Cursor};

    fn rows(text: &str, limit: u64) -> Result<Vec<Record>, String> {
        let reader = Box::new(BufReader::with_capacity(9, Cursor::new(text.as_bytes().to_vec())));
        let records = read(reader, limit).and_then(|records| records.collect::<Result<Vec<_>>>());
        records.map_err(|error| format!("{error:#}"))
    }

    fn texts(text: &str, limit: u64) -> Result<Vec<(u64, String)>, String> {
        rows(text, limit).map(|all| all.into_iter().map(|record| (record.line, record.row.text)).collect())
    }

    #[test]
    fn csv_has_a_column_of_texts() {
        let text = "id,text\n1,\"two\nlines, a comma\"\n2,\n3,last";
        let expected = [(2, "two\nlines, a comma"), (4, ""), (5, "last")];
        assert_eq!(texts(text, 100).unwrap(), expected.map(|(line, text)| (line, text.to_owned())));
        assert_eq!(texts("\u{feff}input\na\n", 100).unwrap(), [(2, "a".to_owned())]);
        assert_eq!(texts(" input , text \na,b\n", 100).unwrap(), [(2, "b".to_owned())]);
        assert!(texts("id,body\n1,a\n", 100).unwrap_err().contains("no column `text` or `input`"));
        assert!(texts("id,text\n1,a\n2\n", 100).unwrap_err().contains("line 3"));
    }

    #[test]
    fn a_record_is_bounded() {
        // Many records of that size are no fault.
        let many = format!("text\n{}", "0123456789\n".repeat(5_000));
        assert_eq!(texts(&many, 10_000).unwrap().len(), 5_000);
        let unclosed = format!("text\na\n\"b\n{}", "0123456789\n".repeat(5_000));
        let said = texts(&unclosed, 10_000).unwrap_err();
        assert!(said.starts_with("line 3: ") && said.contains("longer than 10000 bytes"), "{said}");
    }

    #[test]
    fn a_record_is_a_sample() {
        let samples = |text: &str| -> Result<Vec<Sample>> {
            rows(text, 1_000).unwrap().into_iter().map(|record| record.row.try_into()).collect()
        };
        let all = samples("id,text,label,group,more\n007,a, 1 ,g,x\n,b,0.0,,\n,c,,,\n").unwrap();
        let expected = Sample {
            id: Some(SampleId::Text("007".into())),
            text: "a".into(),
            label: Some(Label::MEMBER),
            group: Some("g".into()),
            neighbors: None,
        };
        assert_eq!(all[0], expected);
        assert_eq!(all[1], Sample { text: "b".into(), label: Some(Label::NON_MEMBER), ..Sample::default() });
        assert_eq!(all[2], Sample { text: "c".into(), ..Sample::default() });
        assert!(samples("text,label\na,yes\n").unwrap_err().to_string().contains("\"yes\"; it must be 0 or 1"));
    }
}
