//! Passages of documents, and of the texts of records, as records.
//!
//! A passage has the fields `text`, `document`, and `offset` and `length` in characters of the document's text, so that anything found can
//! be shown in place.

use super::columns::{ColumnNames, ReadOptions};
use super::input::InputFile;
use super::record::{Fields, FileRecords, PassageReport, ReadError, Record, RecordPlace, RunningTally};
use crate::datasets::{ColumnText, Sample, SampleId};
use documents::{
    Cut, Document, DocumentError, DocumentKind, Documents, Passage, Passages, open, open_reader, passages,
};
use serde_json::Value;
use std::fs::File;
use std::io::Seek;
use std::iter::from_fn;
use std::path::PathBuf;

/// Name of a document that comes without one.
const UNNAMED: &str = "document";

/// The passages of the documents of an input.
pub fn read(mut input: InputFile, kind: Option<DocumentKind>, options: &ReadOptions) -> Result<FileRecords, ReadError> {
    let limits = options.documents;
    let name = options.document_name.as_deref();
    let documents = match (input.named_file(), name) {
        (Some(path), None) => open(&[path.to_owned()], limits),
        (Some(path), Some(name)) => open_reader(File::open(path)?, name, kind, limits),
        (None, name) => {
            // Archives need random access.
            let mut file = tempfile::tempfile()?;
            std::io::copy(&mut input, &mut file)?;
            file.rewind()?;
            open_reader(file, name.unwrap_or(UNNAMED), kind, limits)
        }
    };
    // A temporary file is there as long as its input is.
    cut_documents(documents, options, Some(input))
}

/// The passages of the documents of paths: files, folders and archives.
///
/// # Errors
/// Where one of them cannot be read.
pub fn records_of_documents(paths: &[PathBuf], options: &ReadOptions) -> Result<FileRecords, ReadError> {
    cut_documents(open(paths, options.documents), options, None)
}

fn cut_documents(
    documents: Result<Documents, DocumentError>,
    options: &ReadOptions,
    mut input: Option<InputFile>,
) -> Result<FileRecords, ReadError> {
    let documents = documents.map_err(|error| ReadError::Unfit(error.to_string()))?;
    let cut = options.cut.unwrap_or_default();
    let mut passages = passages(documents, cut).map_err(|fault| ReadError::Unfit(fault.to_string()))?;
    let (mut number, report) = (0, options.report.clone());
    Ok(Box::new(from_fn(move || match passages.next() {
        Some(Ok(passage)) => {
            number += 1;
            let place = RecordPlace::Passage(number);
            Some(Ok(Record { place, position: 0, fields: Ok(fields(passage, Fields::new())) }))
        }
        Some(Err(error)) => Some(Err(ReadError::Unfit(error.to_string()))),
        None => {
            note(&report, &passages);
            drop(input.take());
            None
        }
    })))
}

fn note(report: &PassageReport, passages: &Passages<Documents>) {
    let skipped = passages.documents().skipped().iter().map(ToString::to_string).collect();
    report.set(*passages.tally(), skipped);
}

/// The records that one record stands for: one for each passage of its text, with the other fields of the record.
pub fn cut_record(
    record: Record,
    columns: &ColumnNames,
    cut: Cut,
    tally: &RunningTally,
) -> Box<dyn Iterator<Item = Record> + Send> {
    let Record { place, position, fields } = record;
    let with = move |fields| Record { place, position, fields };
    let (name, id, text) = match fields.as_ref().map(|fields| text_to_cut(fields, columns, place)) {
        Ok(Ok(Some(text))) => text,
        Ok(Err(fault)) => return Box::new(std::iter::once(with(Err(fault)))),
        Ok(Ok(None)) | Err(_) => return Box::new(std::iter::once(with(fields))),
    };
    let (mut passages, others) = match passages_of(id, text, cut, tally.clone()) {
        Ok(passages) => (passages.peekable(), fields.unwrap_or_default()),
        Err(fault) => return Box::new(std::iter::once(with(Err(fault)))),
    };
    if passages.peek().is_none() {
        return Box::new(std::iter::once(with(Err(CutSampleError::NothingLeft.to_string()))));
    }
    Box::new(passages.map(move |passage| with(passage.map(|passage| renamed(passage, &others, &name)))))
}

/// The field of the text, its document and the text; `None` for a record without a text, whose fault is named where it is read.
fn text_to_cut(
    fields: &Fields,
    columns: &ColumnNames,
    place: RecordPlace,
) -> Result<Option<(String, String, String)>, String> {
    let known = |name: &str| fields.contains_key(name);
    let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
    if columns.has_conversation(fields) {
        return Err(format!("`messages`: {}", CutSampleError::WholeText("messages")));
    }
    let Ok(name) = columns.text_among(known, std::iter::empty) else { return Ok(None) };
    let Some(Value::String(text)) = fields.get(name) else { return Ok(None) };
    if let Some(other) = ["context", "spans", "neighbors"].into_iter().find(|name| given(name).is_some()) {
        return Err(format!("`{other}`: {}", CutSampleError::WholeText(other)));
    }
    let id = match given("document").or_else(|| given(columns.id.as_deref().unwrap_or("id"))) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => place.to_string(),
    };
    Ok(Some((name.to_owned(), id, text.clone())))
}

/// The samples that one sample stands for: one for each passage of its text. `name` is the document where it names none and has no id.
///
/// # Errors
/// A field that belongs to the whole text, or why the text cannot be cut, in words. `budget` is the number of bytes that passages and
/// their columns may still take.
pub fn cut_sample(sample: &Sample, name: String, cut: Cut, budget: &mut usize) -> Result<Vec<Sample>, CutSampleError> {
    let whole = [
        ("context", sample.context.is_some()),
        ("spans", sample.spans.is_some()),
        ("neighbors", sample.neighbors.is_some()),
    ];
    if let Some((field, _)) = whole.into_iter().find(|(_, is_given)| *is_given) {
        return Err(CutSampleError::WholeText(field));
    }
    let id = sample.document.as_ref().or(sample.id.as_ref()).map_or(name, ToString::to_string);
    let document = sample.document.clone().or_else(|| sample.id.clone()).unwrap_or_else(|| SampleId::Text(id.clone()));
    let columns = serde_json::to_value(&sample.columns).map_err(|error| CutSampleError::Uncut(error.to_string()))?;
    let columns = columns.as_object().cloned().unwrap_or_default();
    let mut samples = Vec::new();
    for passage in passages_of(id, sample.text.clone(), cut, RunningTally::default()).map_err(CutSampleError::Uncut)? {
        let Passage { offset, length, text, .. } = passage.map_err(CutSampleError::Uncut)?;
        let mut columns = columns.clone();
        columns.extend([("offset".to_owned(), offset.into()), ("length".to_owned(), length.into())]);
        let columns = ColumnText::new(&columns).map_err(|error| CutSampleError::Uncut(error.to_string()))?;
        if let Some(fault) = columns.fault() {
            return Err(CutSampleError::Uncut(fault));
        }
        let left = budget.checked_sub(text.len() + columns.bytes() + size_of::<Sample>());
        *budget = left.ok_or(CutSampleError::TooLarge)?;
        let (id, label, group) = (sample.id.clone(), sample.label, sample.group.clone());
        samples.push(Sample { text, document: Some(document.clone()), columns, id, label, group, ..Sample::default() });
    }
    if samples.is_empty() { Err(CutSampleError::NothingLeft) } else { Ok(samples) }
}

/// The reason why a sample is not cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutSampleError {
    #[error("it belongs to the whole text, which is to be cut; leave out either")]
    WholeText(&'static str),
    #[error("no passage is left of the text: it has no words, or fewer letters than other characters")]
    NothingLeft,
    #[error("the passages take too many bytes; submit fewer samples, or longer passages with fewer columns")]
    TooLarge,
    #[error("{0}")]
    Uncut(String),
}

/// The passages of one text, and what was left out of it added to the tally in the end.
///
/// # Errors
/// Where passages cannot be cut so, in words.
fn passages_of(
    id: String,
    text: String,
    cut: Cut,
    tally: RunningTally,
) -> Result<impl Iterator<Item = Result<Passage, String>> + Send, String> {
    let document = std::iter::once(Ok(Document::from_text(id, text)));
    let mut passages = passages(document, cut).map_err(|fault| fault.to_string())?;
    let mut tally = Some(tally);
    Ok(from_fn(move || match passages.next() {
        Some(passage) => Some(passage.map_err(|error| error.to_string())),
        None => {
            if let Some(tally) = tally.take() {
                tally.add(*passages.tally());
            }
            None
        }
    }))
}

fn renamed(passage: Passage, others: &Fields, text: &str) -> Fields {
    let mut fields = fields(passage, others.clone());
    if text != "text"
        && let Some(value) = fields.shift_remove("text")
    {
        fields.insert(text.to_owned(), value);
    }
    fields
}

/// The fields of a passage beside others, which it replaces where they have the same name.
fn fields(Passage { document, offset, length, text }: Passage, mut others: Fields) -> Fields {
    for (name, value) in [
        ("text", Value::from(text)),
        ("document", document.into()),
        ("offset", offset.into()),
        ("length", length.into()),
    ] {
        others.insert(name.to_owned(), value);
    }
    others
}
