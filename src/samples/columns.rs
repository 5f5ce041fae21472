//! Which fields of a record are what, and the other options for reading a file.

use super::chat::{ChatRenderer, MESSAGES, is_conversation, rendered, without_conversation};
use super::record::{Fields, PassageReport};
use crate::datasets::Sample;
use crate::slots::Slots;
use documents::{Cut, DocumentKind, ReadLimits};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Common names of columns of texts, only suggested in messages.
const USUAL: [&str; 8] = ["content", "body", "snippet", "passage", "document", "sentence", "prompt", "raw_content"];

/// Maximum number of columns of CSV.
pub const MAX_COLUMNS: usize = 10_000;

/// The columns of datasets that keep members and non-members beside each other.
pub const MEMBER: &str = "member";
pub const NON_MEMBER: &str = "nonmember";

/// The fields that are the text, the label and the id, where they are not called so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnNames {
    /// The field of the text; by default `text` or else `input`.
    pub text: Option<String>,
    /// The field of the label; by default `label`.
    pub label: Option<String>,
    /// The field of the id; by default `id`.
    pub id: Option<String>,
    /// True if labels and groups are read; otherwise they come along like any other field.
    pub labelled: bool,
    /// Renders conversations, where a template is known.
    pub chat: Option<ChatRenderer>,
}

/// A sample of a file, with its other fields as they were given; the id is among them.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSample {
    pub sample: Sample,
    pub others: Fields,
}

/// A record that is no sample, with the fields that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct BadRecord {
    pub fault: String,
    pub others: Fields,
}

impl From<String> for BadRecord {
    fn from(fault: String) -> Self {
        Self { fault, others: Fields::new() }
    }
}

impl ColumnNames {
    /// Reads a record as a sample.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn sample(&self, fields: Fields) -> Result<FileSample, BadRecord> {
        let (fields, rendering) = if self.has_conversation(&fields) {
            match rendered(fields.clone(), self.chat.as_ref()) {
                Ok(fields) => (fields, None),
                Err(fault) => (without_conversation(fields), Some(fault)),
            }
        } else {
            (fields, None)
        };
        match rendering.map_or_else(|| self.parse(&fields), Err) {
            Ok((text, sample)) => Ok(FileSample { sample, others: self.others(fields, &text) }),
            Err(fault) => {
                let text = self.text_among(|name| fields.contains_key(name), std::iter::empty).map(str::to_owned);
                let others = text.map_or_else(|_| fields.clone(), |text| self.others(fields.clone(), &text));
                Err(BadRecord { fault, others })
            }
        }
    }

    /// Returns true if the text of a record is that of its conversation.
    pub fn has_conversation(&self, fields: &Fields) -> bool {
        self.text.is_none() && is_conversation(fields)
    }

    fn parse(&self, fields: &Fields) -> Result<(String, Sample), String> {
        let (known, all) = (|name: &str| fields.contains_key(name), || fields.keys().map(String::as_str));
        let text = self.text_among(known, all)?.to_owned();
        self.check_others(known, all)?;
        let sources = self.sources(&text);
        let given = |(name, source): &(&str, &str)| {
            fields.get(*source).map(|value| ((*name).to_owned(), parsed_list(name, value.clone())))
        };
        let sample = Value::Object(sources.iter().filter_map(given).collect());
        let sample: Sample = serde_path_to_error::deserialize(sample).map_err(|error| in_words(error, &sources))?;
        let fault = sample.label_error().or_else(|| sample.spans_error().map(|fault| format!("`spans`: {fault}")));
        match (&sample.neighbors, fault) {
            (Some(neighbors), _) if neighbors.is_empty() => {
                Err("`neighbors`: the list is empty; it takes at least one text".to_owned())
            }
            (_, Some(fault)) => Err(fault),
            _ => Ok((text, sample)),
        }
    }

    /// The fields of a sample, each with the field of the file that it is read from.
    fn sources<'a>(&'a self, text: &'a str) -> Vec<(&'static str, &'a str)> {
        let id = self.id.as_deref().unwrap_or("id");
        let mut sources =
            vec![("text", text), ("id", id), ("context", "context"), ("spans", "spans"), ("neighbors", "neighbors")];
        if self.labelled {
            let label = self.label.as_deref().unwrap_or("label");
            sources.extend([("label", label), ("group", "group"), ("document", "document")]);
        }
        sources
    }

    /// All fields but the text; the id under that name.
    fn others(&self, mut fields: Fields, text: &str) -> Fields {
        fields.shift_remove(text);
        if self.labelled && self.label.as_ref().is_some_and(|name| name != "label") {
            put_aside(&mut fields, "label");
        }
        let Some(id) = self.id.as_ref().filter(|name| *name != "id").and_then(|name| fields.get(name)).cloned() else {
            return fields;
        };
        put_aside(&mut fields, "id");
        fields.insert("id".to_owned(), id);
        fields
    }

    /// Returns the fields that come along with a sample: `others` without those that it was read from.
    pub fn extra(&self, mut others: Fields) -> Fields {
        let named = [&self.id, &self.label].into_iter().flatten().map(String::as_str);
        for name in ["id", "label", "group", "document", "context", "spans", "neighbors"].into_iter().chain(named) {
            others.shift_remove(name);
        }
        others
    }

    /// Returns true if the texts are in a column of members and one of non-members; see `paired.rs`.
    pub fn are_paired(&self, known: impl Fn(&str) -> bool) -> bool {
        self.text.is_none()
            && [MEMBER, NON_MEMBER].into_iter().all(&known)
            && !["text", "input", "label"].into_iter().any(known)
    }

    pub fn have_texts(&self, known: impl Fn(&str) -> bool) -> bool {
        self.are_paired(&known) || self.have_conversations(&known) || self.text_among(known, std::iter::empty).is_ok()
    }

    fn have_conversations(&self, known: impl Fn(&str) -> bool) -> bool {
        self.text.is_none() && known(MESSAGES)
    }

    /// Checks that the columns of a table are those of samples; `found` lists them.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn check<'a, I: Iterator<Item = &'a str>>(
        &self,
        known: impl Fn(&str) -> bool,
        found: impl Fn() -> I,
    ) -> Result<(), String> {
        if self.are_paired(&known) {
            return Ok(());
        }
        if !self.have_conversations(&known) {
            self.text_among(&known, &found)?;
        }
        self.check_others(known, found)
    }

    /// The field of the text, among those that there are; `found` lists them.
    ///
    /// # Errors
    /// Where there is none or more than one, with what to do.
    pub fn text_among<'a, I: Iterator<Item = &'a str>>(
        &self,
        known: impl Fn(&str) -> bool,
        found: impl Fn() -> I,
    ) -> Result<&str, String> {
        if let Some(name) = &self.text {
            return if known(name) { Ok(name) } else { Err(absent(name, "text", found())) };
        }
        match (known("text"), known("input")) {
            (true, true) => Err("both `text` and `input`; choose one with --text-column".to_owned()),
            (true, false) => Ok("text"),
            (false, true) => Ok("input"),
            (false, false) => {
                let similar =
                    || found().find(|name| ["text", "input"].iter().any(|usual| usual.eq_ignore_ascii_case(name)));
                let usual = similar().or_else(|| USUAL.into_iter().find(|name| known(name))).unwrap_or("NAME");
                Err(format!("no column `text` or `input`; columns found: {}; use --text-column {usual}", list(found())))
            }
        }
    }

    /// Checks that the fields of the id and the label exist, if they are named, and that no label is missed by its case.
    ///
    /// # Errors
    /// Names the one that is not there.
    fn check_others<'a, I: Iterator<Item = &'a str>>(
        &self,
        known: impl Fn(&str) -> bool,
        found: impl Fn() -> I,
    ) -> Result<(), String> {
        let label = self.label.as_deref().filter(|_| self.labelled).map(|name| (name, "label"));
        let id = self.id.as_deref().map(|name| (name, "id"));
        match id.into_iter().chain(label).find(|(name, _)| !known(name)) {
            Some((name, what)) => Err(absent(name, what, found())),
            None if self.labelled && self.label.is_none() && !known("label") => misspelt_label(found()),
            None => Ok(()),
        }
    }
}

/// Gives a field another name, since another one is read as what it is called.
fn put_aside(fields: &mut Fields, name: &str) {
    if let Some(value) = fields.shift_remove(name) {
        fields.insert(format!("{name} (input)"), value);
    }
}

fn absent<'a>(name: &str, what: &str, found: impl Iterator<Item = &'a str>) -> String {
    format!("no column `{name}` (--{what}-column); columns found: {}", list(found))
}

/// Refuses a column that is called `label` but for the case of its letters: without it the texts would have no labels.
fn misspelt_label<'a>(mut found: impl Iterator<Item = &'a str>) -> Result<(), String> {
    match found.find(|name| name.eq_ignore_ascii_case("label")) {
        Some(name) => Err(format!("no column `label`, but `{name}`; use --label-column {name}, or rename the column")),
        None => Ok(()),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A cell of a table can hold a list as JSON.
fn parsed_list(name: &str, value: Value) -> Value {
    match &value {
        Value::String(text) if matches!(name, "neighbors" | "spans") => serde_json::from_str(text).unwrap_or(value),
        _ => value,
    }
}

/// The fault with the field that has it, by its name in the file.
fn in_words(error: serde_path_to_error::Error<serde_json::Error>, sources: &[(&str, &str)]) -> String {
    let path = error.path().to_string();
    if path == "." {
        return error.into_inner().to_string();
    }
    let source = sources.iter().find(|(name, _)| path.strip_prefix(name).is_some_and(|rest| !rest.starts_with('_')));
    let path = source.map_or(path.clone(), |(name, source)| path.replacen(name, source, 1));
    format!("`{path}`: {}", error.inner())
}

/// A program that reads Parquet for a client, and its share of the processes that may do so at once.
#[derive(Clone, Debug)]
pub struct ParquetProcess {
    pub program: PathBuf,
    pub slots: Slots<Arc<str>>,
    /// Name of the client; `None` if there are no names.
    pub client: Option<Arc<str>>,
}

/// Options for reading a file.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Kind of the file; `None` to detect it.
    pub kind: Option<FileKind>,
    /// Delimiter of CSV; `None` to detect it.
    pub delimiter: Option<u8>,
    /// Which fields are what.
    pub columns: ColumnNames,
    /// Maximum size of a record of NDJSON, of a JSON array, of CSV, or of Parquet where `parquet` reads it, in bytes; `None` for no
    /// limit.
    pub limit: Option<u64>,
    /// Processes that read Parquet; `None` to read it in this process, where the file is trusted.
    pub parquet: Option<ParquetProcess>,
    /// The way texts are cut into passages; `None` to leave the texts of records whole, and to cut documents by default.
    pub cut: Option<Cut>,
    /// Name of the document that a file is; `None` for the name of the file.
    pub document_name: Option<String>,
    /// Bounds on compressed files and archives of documents.
    pub documents: ReadLimits,
    /// Is told what was read of documents.
    pub report: PassageReport,
}

/// A kind of file that holds samples or documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum FileKind {
    /// A JSON object a line.
    Ndjson,
    /// A JSON array of objects.
    Json,
    /// A table with a header, its columns separated by commas or something else.
    Csv,
    Parquet,
    /// Plain text: one document.
    Text,
    Markdown,
    Html,
    Epub,
    /// An archive of documents.
    Zip,
}

impl FileKind {
    /// The kind of document; `None` for a file of samples.
    #[must_use]
    pub fn document(self) -> Option<DocumentKind> {
        match self {
            Self::Ndjson | Self::Json | Self::Csv | Self::Parquet => None,
            Self::Text => Some(DocumentKind::Text),
            Self::Markdown => Some(DocumentKind::Markdown),
            Self::Html => Some(DocumentKind::Html),
            Self::Epub => Some(DocumentKind::Epub),
            Self::Zip => Some(DocumentKind::Zip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::{Label, SampleId};
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_record_is_a_sample_with_what_comes_along() {
        let columns = ColumnNames::default();
        let read = columns.sample(fields(json!({"input": "a", "id": 7, "label": "any", "more": [1]}))).unwrap();
        assert_eq!(read.sample, Sample { id: Some(SampleId::Integer(7)), text: "a".into(), ..Sample::default() });
        assert_eq!(Value::Object(read.others), json!({"id": 7, "label": "any", "more": [1]}));
        let columns = ColumnNames { labelled: true, ..ColumnNames::default() };
        let read = columns
            .sample(fields(json!({"text": "a", "label": 1, "group": "g", "document": 7, "neighbors": "[\"b\"]"})))
            .unwrap();
        let expected = Sample {
            text: "a".into(),
            label: Some(Label::MEMBER),
            group: Some("g".into()),
            document: Some(SampleId::Integer(7)),
            neighbors: Some(vec!["b".into()]),
            ..Sample::default()
        };
        assert_eq!(read.sample, expected);
    }

    #[test]
    fn fields_can_have_other_names() {
        let named = |name: &str| Some(name.to_owned());
        let columns = ColumnNames {
            text: named("body"),
            label: named("seen"),
            id: named("doc"),
            labelled: true,
            ..ColumnNames::default()
        };
        let read =
            columns.sample(fields(json!({"body": "b", "text": "t", "seen": "member", "doc": "d", "id": 3}))).unwrap();
        let expected = Sample {
            id: Some(SampleId::Text("d".into())),
            text: "b".into(),
            label: Some(Label::MEMBER),
            ..Sample::default()
        };
        assert_eq!(read.sample, expected);
        assert_eq!(
            Value::Object(read.others),
            json!({"text": "t", "seen": "member", "doc": "d", "id (input)": 3, "id": "d"})
        );
        let fault = |value| columns.sample(fields(value)).unwrap_err().fault;
        assert_eq!(fault(json!({"text": "t"})), "no column `body` (--text-column); columns found: text");
        assert_eq!(
            fault(json!({"body": "t", "doc": 1})),
            "no column `seen` (--label-column); columns found: body, doc"
        );
        assert!(fault(json!({"body": 1, "doc": 1, "seen": 0})).starts_with("`body`: invalid type"));
    }

    #[test]
    fn a_record_that_is_no_sample_says_why() {
        let columns = ColumnNames { labelled: true, ..ColumnNames::default() };
        for (record, words) in [
            (json!({}), "no column `text` or `input`; columns found: none"),
            (json!({"content": "a", "is_member": 1}), "columns found: content, is_member; use --text-column content"),
            (json!({"text": 1}), "`text`: invalid type: integer `1`, expected a string"),
            (json!({"text": "a", "input": "b"}), "both `text` and `input`"),
            (json!({"text": "a", "id": []}), "`id`: invalid type: sequence, expected a string or an integer"),
            (json!({"text": "a", "neighbors": []}), "`neighbors`: the list is empty"),
            (json!({"text": "a", "neighbors": ["b", 1]}), "`neighbors[1]`"),
            (json!({"text": "a", "label": "perhaps"}), "`label`: the label is \"perhaps\"; it must be 0 or 1"),
            (json!({"text": "a", "label": 2}), "the label is 2; it must be 0 or 1"),
        ] {
            let fault = columns.sample(fields(record)).unwrap_err().fault;
            assert!(fault.contains(words), "{fault}");
        }
        assert_eq!(columns.sample(fields(json!({"text": 5, "id": "e"}))).unwrap_err().others["id"], "e");
    }
}
