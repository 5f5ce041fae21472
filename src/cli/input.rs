//! The arguments that say what file is read, and how.

use super::cut_args::{CutArgs, summary};
use super::scoring_args::variant;
use super::source::SampleSource;
use crate::datasets::Sample;
use crate::samples::{
    BadRecord, ColumnNames, Fields, FileKind, FileSample, ReadOptions, Record, RecordPlace, first_words,
};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The texts of `score`, `audit` and `dataset`, and how they are read.
#[derive(Args, Clone)]
pub struct InputArgs {
    /// NDJSON, a JSON array, CSV or TSV with a header, or Parquet, plain or compressed with gzip or zstd; `-` for standard
    /// input. Each record has `text` (or `input`) and perhaps `id` and `neighbors`; `audit` also reads `label` (0 or 1, true or
    /// false, member or non-member) and `group`. A conversation has `messages`, objects with `role` and `content`, in place of `text`;
    /// the chat template of the model renders it. Instead of `text` and `label` there may be `member` and `nonmember`, as in
    /// MIMIR. `hub:OWNER/NAME:SPLIT` and `hub:OWNER/NAME/CONFIG:SPLIT`, perhaps followed by `@REVISION`, are the Parquet files
    /// of a dataset on the Hub. A document is cut into passages: plain text, Markdown, HTML, EPUB, a `.zip` or a folder of such.
    pub file: PathBuf,
    /// Further documents, folders and archives.
    #[arg(value_name = "FILE")]
    pub more: Vec<PathBuf>,
    #[command(flatten)]
    pub reader: ReaderArgs,
}

/// Options for reading files of texts.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Texts")]
pub struct ReaderArgs {
    /// Format of the file, if its name and its content do not show it.
    #[arg(long, value_name = "KIND", value_parser = variant::<FileKind>())]
    input_format: Option<FileKind>,
    /// Separator of the columns of CSV, one ASCII character; by default the one in the header.
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Column or field of the texts; by default `text` or else `input`.
    #[arg(long, value_name = "NAME")]
    text_column: Option<String>,
    /// Column or field of the ids; by default `id`.
    #[arg(long, value_name = "NAME")]
    id_column: Option<String>,
    /// Maximum number of words of a text; the rest is cut off. Shorter texts stay as they are.
    #[arg(long, value_name = "NUMBER")]
    words: Option<NonZeroUsize>,
    #[command(flatten)]
    cut: CutArgs,
}

/// The fields of results; those of the input that are called so get another name.
const RESULT_FIELDS: [&str; 22] = [
    "index",
    "cluster",
    "scored_tokens",
    "bos_prepended",
    "truncated",
    "windows",
    "scores",
    "alpha_used",
    "errors",
    "tokens",
    "thresholds",
    "posterior",
    "p_values",
    "p_value_adjusted",
    "flagged",
    "control_scores",
    "control_measures",
    "log_odds",
    "text_digest",
    "baseline_scores",
    "salt",
    "sample_digest",
];

/// The fields that come along with a result, beside which those of the result have their names.
fn beside_result(fields: Fields) -> Fields {
    let name = |name: String| if RESULT_FIELDS.contains(&name.as_str()) { format!("{name} (input)") } else { name };
    fields.into_iter().map(|(field, value)| (name(field), value)).collect()
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err("expected one ASCII character, as in ';' or '\\t'".to_owned()),
    }
}

impl InputArgs {
    /// Returns all files and folders that are named.
    pub fn files(&self) -> Vec<&Path> {
        std::iter::once(&self.file).chain(&self.more).map(PathBuf::as_path).collect()
    }

    /// Finds what is to be read, on the Hub too.
    pub fn source(&self) -> Result<SampleSource> {
        self.reader.cut.given()?;
        SampleSource::open(&self.file, &self.more).with_context(|| self.unreadable())
    }

    /// Reads all samples with their places; a bad record is refused with its place.
    ///
    /// # Errors
    /// Where the file cannot be read, or a record is no sample.
    pub fn samples(&self, options: &ReadOptions) -> Result<Vec<(RecordPlace, FileSample)>> {
        let source = self.source()?;
        let read = || -> Result<Vec<(RecordPlace, FileSample)>> {
            let sample = |record: Record| {
                let place = record.place;
                let sample = self.reader.scored_sample(record, options).map_err(|bad| anyhow!(bad.fault))?;
                Ok((place, sample))
            };
            source.records(options)?.map(|record| sample(record?)).collect()
        };
        let samples = read().with_context(|| self.unreadable())?;
        tell_documents(options);
        Ok(samples)
    }

    /// Returns the beginning of an error message, before the reason.
    pub fn unreadable(&self) -> String {
        format!("cannot read {}", self.file.display())
    }
}

/// Says on standard error what was read of documents, once all of it is read.
pub fn tell_documents(options: &ReadOptions) {
    if let Some((tally, skipped)) = options.report.get() {
        eprint!("{}", summary(tally, skipped));
    }
}

impl ReaderArgs {
    /// Returns true if the kind of file is given.
    pub fn has_format(&self) -> bool {
        self.input_format.is_some()
    }

    /// The first flag that is given and that plain text has no use for.
    pub fn flag_of_samples(&self) -> Option<&'static str> {
        let given = [
            (self.delimiter.is_some(), "--delimiter"),
            (self.text_column.is_some(), "--text-column"),
            (self.id_column.is_some(), "--id-column"),
            (self.words.is_some(), "--words"),
        ];
        given.into_iter().find_map(|(is_given, flag)| is_given.then_some(flag))
    }

    /// Returns the options for reading the file; `limit` is the maximum number of bytes of a record. Labels are read from
    /// `label`, or from the column that `label_column` names. Conversations are refused until `columns.chat` renders them.
    pub fn options(&self, limit: Option<u64>, labelled: bool, label_column: Option<String>) -> ReadOptions {
        let (text, id) = (self.text_column.clone(), self.id_column.clone());
        let columns = ColumnNames { text, id, label: label_column, labelled, chat: None };
        // A cut that is none was refused with the source.
        let cut = self.cut.given().unwrap_or_default();
        ReadOptions {
            kind: self.input_format,
            delimiter: self.delimiter,
            columns,
            limit,
            cut,
            ..ReadOptions::default()
        }
    }

    /// All that decides what is read from the file, for comparison.
    pub fn describe(&self) -> Value {
        json!({
            "input_format": self.input_format.map(<&str>::from),
            "delimiter": self.delimiter.map(char::from),
            "text_column": self.text_column,
            "id_column": self.id_column,
            "words": self.words,
            "cut": self.cut.given().unwrap_or_default(),
        })
    }

    /// The sample of a record as it is to be scored, with what comes along beside the result; or the fault with its place.
    pub fn scored_sample(&self, record: Record, options: &ReadOptions) -> Result<FileSample, BadRecord> {
        match self.sample(record, options) {
            Ok(FileSample { sample, others }) => Ok(FileSample { sample, others: beside_result(others) }),
            Err(BadRecord { fault, others }) => Err(BadRecord { fault, others: beside_result(others) }),
        }
    }

    /// The sample of a record with its text cut, and what comes along; or the fault with its place.
    pub fn sample(&self, record: Record, options: &ReadOptions) -> Result<FileSample, BadRecord> {
        let Record { place, fields, .. } = record;
        match fields.map_err(BadRecord::from).and_then(|fields| options.columns.sample(fields)) {
            Ok(FileSample { sample, others }) => {
                let text = match self.words {
                    Some(words) => first_words(&sample.text, words.get()).to_owned(),
                    None => sample.text,
                };
                Ok(FileSample { sample: Sample { text, ..sample }, others })
            }
            Err(BadRecord { fault, others }) => Err(BadRecord { fault: format!("{place}: {fault}"), others }),
        }
    }
}
