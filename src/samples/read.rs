//! The records of one file of any kind, whose kind is detected, or of several files.

use super::columns::{FileKind, ReadOptions};
use super::csv_file;
use super::input::InputFile;
use super::json::{self, BYTE_ORDER_MARK};
use super::paired::split;
use super::parquet_file::{self, MAGIC};
use super::parquet_process;
use super::passages::{self, cut_record};
use super::record::{FileRecords, ReadError, Record, RecordPlace, RunningTally};
use std::path::PathBuf;
use std::vec::IntoIter;

/// The records of an input, from its beginning; one for each text where it has members and non-members in columns of their own.
///
/// # Errors
/// Where the input is no file of samples: not UTF-8, no column of texts, or damaged. What is wrong later is an item of the iterator.
pub fn records(mut input: InputFile, options: &ReadOptions) -> Result<FileRecords, ReadError> {
    let kind = determine(&mut input, options)?;
    let limit = options.limit.unwrap_or(u64::MAX - 1);
    let records: FileRecords = match kind {
        FileKind::Ndjson => Box::new(json::lines(input, limit)),
        FileKind::Json => Box::new(json::elements(input, limit)?),
        FileKind::Csv => Box::new(csv_file::read(input, limit, options)?),
        FileKind::Parquet => match &options.parquet {
            Some(process) => parquet_process::read(input, limit, &options.columns, process)?,
            None => Box::new(parquet_file::read(input, &options.columns)?),
        },
        FileKind::Text | FileKind::Markdown | FileKind::Html | FileKind::Epub | FileKind::Zip => {
            return passages::read(input, kind.document(), options);
        }
    };
    let (columns, cut) = (options.columns.clone(), options.cut);
    let (report, tally) = (options.report.clone(), RunningTally::default());
    let counted = tally.clone();
    let records = records.flat_map(move |record| {
        let (records, error) = match record {
            Ok(record) => (Some(split(record, &columns)), None),
            Err(error) => (None, Some(error)),
        };
        let (columns, tally) = (columns.clone(), counted.clone());
        let cut = move |record| match cut {
            Some(cut) => cut_record(record, &columns, cut, &tally),
            None => Box::new(std::iter::once(record)),
        };
        records.into_iter().flatten().flat_map(cut).map(Ok).chain(error.map(Err))
    });
    let end = std::iter::from_fn(move || {
        if cut.is_some() {
            report.set(tally.get(), Vec::new());
        }
        None
    });
    Ok(Box::new(records.chain(end)))
}

/// The kind of a file: as the options say, else by its content where that tells, else by the extension of its name.
fn determine(input: &mut InputFile, options: &ReadOptions) -> Result<FileKind, ReadError> {
    match options.kind {
        Some(kind) if kind == FileKind::Parquet || kind.document().is_some() => Ok(kind),
        Some(kind) => check_encoding(input.peek(MAGIC.len())?).map(|()| kind),
        None => detect(input, options),
    }
}

fn detect(input: &mut InputFile, options: &ReadOptions) -> Result<FileKind, ReadError> {
    let extension = input.extension().to_owned();
    let head = input.peek(MAGIC.len())?;
    if head.starts_with(MAGIC) {
        return Ok(FileKind::Parquet);
    }
    if extension == "parquet" {
        return Err(ReadError::Unfit("not a Parquet file: it does not begin with \"PAR1\"".to_owned()));
    }
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Ok(FileKind::Zip);
    }
    match extension.as_str() {
        "md" | "markdown" => return Ok(FileKind::Markdown),
        "html" | "htm" | "xhtml" => return Ok(FileKind::Html),
        "epub" => return Ok(FileKind::Epub),
        "zip" => return Ok(FileKind::Zip),
        _ => {}
    }
    if extension == "txt" && !begins_as_json(head) && !csv_file::is_table(head, options) {
        return Ok(FileKind::Text);
    }
    let is_named_samples = ["csv", "tsv", "jsonl", "ndjson", "json"].contains(&&*extension);
    if !is_named_samples && head.starts_with(b"%PDF") {
        return Ok(FileKind::Text);
    }
    check_encoding(head)?;
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let first = head.trim_ascii_start().first();
    match (first, extension.as_str()) {
        (Some(b'{' | b'['), "csv" | "tsv") => {
            let fault = "line 1: JSON, where the name of the file promises columns; rename it, or use --input-format";
            Err(ReadError::Unfit(fault.to_owned()))
        }
        (_, "csv" | "tsv") => Ok(FileKind::Csv),
        (Some(b'['), _) => Ok(FileKind::Json),
        (_, "jsonl" | "ndjson" | "json") | (Some(b'{') | None, _) => Ok(FileKind::Ndjson),
        _ if csv_file::is_table(head, options) => Ok(FileKind::Csv),
        // A string alone is a text.
        (Some(b'"'), _) => Ok(FileKind::Ndjson),
        _ => Ok(FileKind::Text),
    }
}

/// Returns true if a text may be JSON: a line that is a value, or a list of objects or strings.
fn begins_as_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match text.strip_prefix(b"[") {
        Some(list) => matches!(list.trim_ascii_start().first(), Some(b'{' | b'"' | b']') | None),
        None => serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok(),
    }
}

fn check_encoding(head: &[u8]) -> Result<(), ReadError> {
    match foreign_encoding(head) {
        Some(encoding) => Err(ReadError::Unfit(format!(
            "the file is {encoding}, not UTF-8; convert it (`iconv -f {encoding} -t UTF-8`)"
        ))),
        None => Ok(()),
    }
}

/// The encoding of a text that is not UTF-8, by its byte order mark or by the zero bytes of its first characters.
fn foreign_encoding(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] | [_, 0, 0, 0, ..] => Some("UTF-32LE"),
        [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, _, ..] => Some("UTF-32BE"),
        [0xff, 0xfe, ..] | [_, 0, ..] => Some("UTF-16LE"),
        [0xfe, 0xff, ..] | [0, _, ..] => Some("UTF-16BE"),
        _ => None,
    }
}

/// Files that are read one after another. Rows are counted through all of them.
struct Series {
    options: ReadOptions,
    current: FileRecords,
    /// The bytes of the current file, and of those before it.
    size: u64,
    before: u64,
    /// Rows of the files before the current one, and with what was read of it.
    rows_before: u64,
    rows: u64,
    next: IntoIter<PathBuf>,
}

/// Returns the records of files of tables; there must be at least one file.
pub fn records_of_files(files: Vec<PathBuf>, options: &ReadOptions) -> Result<FileRecords, ReadError> {
    let mut next = files.into_iter();
    let first = next.next().ok_or_else(|| ReadError::Unfit("there is no file".to_owned()))?;
    let input = InputFile::open(&first)?;
    let size = input.size().unwrap_or(0);
    let current = records(input, options)?;
    Ok(Box::new(Series { options: options.clone(), current, size, before: 0, rows_before: 0, rows: 0, next }))
}

impl Series {
    fn open(&mut self, path: PathBuf) -> Result<(), ReadError> {
        let input = InputFile::open(&path)?;
        self.before += self.size;
        self.size = input.size().unwrap_or(0);
        self.rows_before = self.rows;
        self.current = records(input, &self.options)?;
        Ok(())
    }

    fn shifted(&mut self, place: RecordPlace) -> RecordPlace {
        let RecordPlace::Row(row) = place else { return place };
        self.rows = self.rows_before + row;
        RecordPlace::Row(self.rows)
    }
}

impl Iterator for Series {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.next() {
                Some(Ok(Record { place, position, fields })) => {
                    return Some(Ok(Record { place: self.shifted(place), position: self.before + position, fields }));
                }
                Some(Err(ReadError::Broken { place, fault })) => {
                    return Some(Err(ReadError::Broken { place: self.shifted(place), fault }));
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
            let path = self.next.next()?;
            if let Err(error) = self.open(path) {
                self.next = Vec::new().into_iter();
                return Some(Err(error));
            }
        }
    }
}
