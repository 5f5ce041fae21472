//! A whole file of samples as the blocks of a dataset.

use super::columns::{BadRecord, FileSample, ReadOptions};
use super::input::InputFile;
use super::read::records;
use super::record::{Fields, ReadError, RecordPlace};
use crate::datasets::{ColumnText, DatasetEncoder, DatasetError, EncodedDataset, Sample};
use std::num::NonZeroUsize;

/// Why a file makes no dataset.
#[derive(Debug, thiserror::Error)]
pub enum DatasetFault {
    /// It cannot be read, or is no file of samples.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// One record is no sample.
    #[error("{place}: {fault}")]
    Record { place: RecordPlace, fault: String },
    /// The samples make no audit.
    #[error("{0}")]
    Samples(String),
    /// As lines of JSON the samples take more bytes than this.
    #[error("the samples take more than {0} bytes")]
    TooLarge(u64),
    /// Nobody takes the blocks any more.
    #[error("the blocks are not wanted any more")]
    Unwanted,
    #[error(transparent)]
    Internal(#[from] DatasetError),
}

/// Options for making a dataset of the samples of a file.
#[derive(Clone, Debug)]
pub struct DatasetOptions {
    /// Maximum number of words of a text; the rest is cut off.
    pub words: Option<NonZeroUsize>,
    /// True if columns that are not those of a sample come along with it.
    pub keep_columns: bool,
    /// Maximum size of all samples in bytes, as lines of JSON.
    pub limit: u64,
    /// Maximum size of a text in bytes, `limits.text`.
    pub text_limit: u64,
}

/// Reads all samples of a file and gives `emit` each block that is full; the rest is part of what is returned. `emit` returns
/// whether more blocks are wanted. Memory is bounded by the largest record and a block.
///
/// # Errors
/// [`DatasetFault`] for the first fault.
pub fn encode_dataset(
    input: InputFile,
    options: &ReadOptions,
    DatasetOptions { words, keep_columns, limit, text_limit }: DatasetOptions,
    mut emit: impl FnMut(String) -> bool,
) -> Result<EncodedDataset, DatasetFault> {
    let (mut encoder, mut first_unlabelled) = (DatasetEncoder::default(), None);
    for record in records(input, options)? {
        let record = record?;
        let place = record.place;
        let read = record.fields.map_err(BadRecord::from).and_then(|fields| options.columns.sample(fields));
        let FileSample { sample, others } =
            read.map_err(|BadRecord { fault, .. }| DatasetFault::Record { place, fault })?;
        let columns = if keep_columns { options.columns.extra(others) } else { Fields::new() };
        let columns = ColumnText::new(&columns)?;
        if let Some(fault) = columns.fault() {
            return Err(DatasetFault::Record { place, fault });
        }
        if sample.label.is_none() {
            first_unlabelled.get_or_insert(place);
        }
        let text = match words {
            Some(words) => first_words(&sample.text, words.get()).to_owned(),
            None => sample.text,
        };
        let sample = Sample { text, columns, ..sample };
        if let Some(fault) = oversized(&sample, text_limit) {
            return Err(DatasetFault::Record { place, fault });
        }
        let block = encoder.add(&sample)?;
        // A table may repeat a value of megabytes in a few bytes.
        if encoder.bytes() > limit {
            return Err(DatasetFault::TooLarge(limit));
        }
        if block.is_some_and(|block| !emit(block)) {
            return Err(DatasetFault::Unwanted);
        }
    }
    let encoded = encoder.finish();
    let place = |_| first_unlabelled.map_or_else(String::new, |place| place.to_string());
    let totals = &encoded.totals;
    let only_non_members = totals.members == 0 && totals.non_members > 0;
    match if only_non_members { totals.fault(place) } else { totals.audit_fault(place) } {
        Some(fault) => Err(DatasetFault::Samples(fault)),
        None => Ok(encoded),
    }
}

/// Names the first text of a sample that has more bytes than the limit, which scoring would refuse.
fn oversized(sample: &Sample, limit: u64) -> Option<String> {
    let neighbors = sample.neighbors.iter().flatten().map(|neighbor| ("neighbors", neighbor));
    let mut texts = [("text", &sample.text)]
        .into_iter()
        .chain(sample.context.iter().map(|text| ("context", text)))
        .chain(neighbors);
    let (field, text) = texts.find(|(_, text)| text.len() as u64 > limit)?;
    Some(format!("`{field}`: {} bytes; the limit `limits.text` is {limit}", text.len()))
}

/// The text up to the end of its word `count`; the whole text where it has no more words than that. Words are separated by white
/// space, as in the lengths 32, 64, 128 and 256 of WikiMIA.
#[must_use]
pub fn first_words(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1).and_then(|last| text.split_whitespace().nth(last)) else {
        return if count == 0 { "" } else { text };
    };
    // `last` is a part of `text`, so its address says where it ends.
    let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::ColumnNames;
    use std::io::Cursor;

    fn encode(
        content: &str,
        words: Option<usize>,
        keep_columns: bool,
    ) -> Result<(EncodedDataset, Vec<String>), DatasetFault> {
        let input = InputFile::from_reader(Cursor::new(content.to_owned()), "").unwrap();
        let columns = ColumnNames { labelled: true, ..ColumnNames::default() };
        let options = ReadOptions { columns, ..ReadOptions::default() };
        let mut blocks = Vec::new();
        let dataset = DatasetOptions {
            words: words.and_then(NonZeroUsize::new),
            keep_columns,
            limit: 8 << 20,
            text_limit: 1 << 20,
        };
        let encoded = encode_dataset(input, &options, dataset, |block| {
            blocks.push(block);
            true
        })?;
        blocks.extend(encoded.rest.clone());
        Ok((encoded, blocks))
    }

    #[test]
    fn the_id_is_that_of_the_samples_whatever_the_file() {
        let lines = "{\"input\": \"a b\", \"label\": 1, \"more\": 7}\n\n{\"text\": \"c\", \"label\": \"non-member\"}\n";
        let (encoded, blocks) = encode(lines, None, false).unwrap();
        assert_eq!(blocks, ["{\"text\":\"a b\",\"label\":1}\n{\"text\":\"c\",\"label\":0}\n"]);
        // printf '%s\n' '{"text":"a b","label":1}' '{"text":"c","label":0}' | sha256sum
        assert_eq!(encoded.id, "sha256:8f811462fdfb987f627828a29ab0a80b99e16223239a17a961c8f210e7958040");
        assert_eq!((encoded.totals.members, encoded.totals.non_members, encoded.totals.text_bytes), (1, 1, 4));
        assert_eq!(encode("text,label\na b,1\nc,0\n", None, true).unwrap().0.id, encoded.id);
        let (cut, _) = encode(lines, Some(1), false).unwrap();
        assert!(cut.id != encoded.id && cut.totals.text_bytes == 2);
    }

    #[test]
    fn a_text_is_bounded_in_whatever_field() {
        let long = "x".repeat((1 << 20) + 1);
        for (field, value) in [
            ("text", format!("\"{long}\"")),
            ("context", format!("\"{long}\"")),
            ("neighbors", format!("[\"{long}\"]")),
        ] {
            let text = if field == "text" { String::new() } else { "\"text\": \"a\", ".to_owned() };
            let lines = format!("{{\"text\": \"a\"}}\n{{{text}\"{field}\": {value}}}\n");
            let fault = encode(&lines, None, true).unwrap_err().to_string();
            assert_eq!(fault, format!("line 2: `{field}`: 1048577 bytes; the limit `limits.text` is 1048576"));
        }
        let cut = encode(&format!("{{\"text\": \"a b {long}\"}}\n"), Some(2), true).unwrap();
        assert_eq!(cut.0.totals.text_bytes, 3);
    }

    #[test]
    fn other_columns_come_along_and_are_bounded() {
        let lines = "{\"input\": \"a\", \"label\": 1, \"page\": [7], \"id\": 3}\n{\"text\": \"c\", \"label\": \"non-member\"}\n";
        let (encoded, blocks) = encode(lines, None, true).unwrap();
        let samples =
            "{\"id\":3,\"text\":\"a\",\"label\":1,\"columns\":{\"page\":[7]}}\n{\"text\":\"c\",\"label\":0}\n";
        assert_eq!((blocks, encoded.totals.columns), (vec![samples.to_owned()], vec!["page".to_owned()]));
        let long = format!("{{\"text\": \"a\"}}\n{{\"text\": \"a\", \"page\": \"{}\"}}\n", "x".repeat(65 << 10));
        let fault = encode(&long, None, true).unwrap_err().to_string();
        assert_eq!(fault, "line 2: the other columns take 66571 bytes as JSON; the limit is 65536");
        assert!(encode(&long, None, false).is_ok());
    }

    #[test]
    fn faults_have_their_place() {
        let fault = |content: &str| encode(content, None, true).unwrap_err().to_string();
        let mut many = "{\"text\": \"a\"}\n".repeat(99_998);
        many.push_str("{\"text\": 1}\n");
        assert_eq!(fault(&many), "line 99999: `text`: invalid type: integer `1`, expected a string");
        assert!(fault("{\"text\": \"a\", \"label\": 1}\n").contains("1 member and 0 non-members"));
        let unlabelled = "{\"text\": \"a\", \"label\": 1}\n\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n";
        assert!(fault(unlabelled).contains("1 of 3 samples has a label, and line 3 has none"));
        assert!(fault("").contains("is empty"));
        let large = encode(&format!("{{\"text\": \"{}\"}}\n", "a".repeat(1 << 20)).repeat(9), None, true);
        assert!(matches!(large, Err(DatasetFault::TooLarge(_))));
    }

    #[test]
    fn a_text_is_cut_after_a_word() {
        for (count, expected) in
            [(0, ""), (1, " one"), (2, " one\n two"), (3, " one\n two  drei"), (4, " one\n two  drei ")]
        {
            assert_eq!(first_words(" one\n two  drei ", count), expected, "{count}");
        }
        assert_eq!(first_words("", 3), "");
        assert_eq!(first_words("語 語", 1), "語");
    }
}
