//! The texts of a test as files hold them.

use super::input::{InputArgs, ReaderArgs};
use crate::audits::{Canary, NamedTestText, OrderTexts, PairedDocument, TestKind, TestText, TestTexts};
use crate::datasets::Sample;
use crate::samples::{InputFile, RecordPlace};
use crate::wire::without_place;
use anyhow::{Context, Result, anyhow, bail};
use mia::json::Object;
use mia::methods::Fault;
use serde::de::DeserializeOwned;
use std::io::read_to_string;
use std::path::{Path, PathBuf};

/// Texts, with where each document, canary or shard is in the file; of suspects and held-out texts nothing is, as no fault names one.
pub struct TestInput {
    pub texts: TestTexts,
    file: PathBuf,
    places: Vec<RecordPlace>,
}

impl TestInput {
    /// Suspects and held-out texts, each a file of texts.
    ///
    /// # Errors
    /// Where a file cannot be read, a record is no text, or its label says otherwise.
    pub fn lists(kind: TestKind, [suspects, held_out]: [&Path; 2], reader: &ReaderArgs, seed: u64) -> Result<Self> {
        let texts = |file: &Path, members: bool| -> Result<Vec<TestText>> {
            let input = InputArgs { file: file.to_owned(), more: Vec::new(), reader: reader.clone() };
            let read = input.samples(&reader.options(None, true, None))?;
            if let Some((place, _)) = read.iter().find(|(_, read)| read.sample.is_member() == Some(!members)) {
                let (label, role) = if members { ("non-member", "suspect") } else { ("member", "held-out text") };
                bail!("{}: {place}: labelled a {label}, and given as a {role}", file.display());
            }
            Ok(read.into_iter().map(|(_, read)| read.sample).map(test_text).collect())
        };
        let texts = TestTexts::lists(kind, texts(suspects, true)?, texts(held_out, false)?, seed);
        Ok(Self { texts, file: suspects.to_owned(), places: Vec::new() })
    }

    /// Documents, one a line.
    ///
    /// # Errors
    /// Where the file cannot be read, or a line is no document.
    pub fn paired(file: &Path) -> Result<Self> {
        let (places, documents) = lines::<Object<PairedDocument>>(file)?;
        let texts = TestTexts::Paired(documents.into_iter().map(|Object(document)| document).collect());
        Ok(Self { texts, file: file.to_owned(), places })
    }

    /// Canaries, one a line.
    ///
    /// # Errors
    /// Where the file cannot be read, or a line is no canary.
    pub fn rank(file: &Path) -> Result<Self> {
        let (places, canaries) = lines::<Object<Canary>>(file)?;
        let texts = TestTexts::Rank(canaries.into_iter().map(|Object(canary)| canary).collect());
        Ok(Self { texts, file: file.to_owned(), places })
    }

    /// Canaries that were read from a file.
    pub fn canaries(file: &Path, canaries: Vec<Canary>) -> Self {
        let places = (1..=canaries.len() as u64).map(RecordPlace::Element).collect();
        Self { texts: TestTexts::Rank(canaries), file: file.to_owned(), places }
    }

    /// Shards, one a line: an array of its items.
    ///
    /// # Errors
    /// Where the file cannot be read, or a line is no shard.
    pub fn order(file: &Path, change: impl FnOnce(OrderTexts) -> OrderTexts) -> Result<Self> {
        let (places, shards) = lines::<Vec<String>>(file)?;
        let texts = TestTexts::Order(change(OrderTexts::new(shards)));
        Ok(Self { texts, file: file.to_owned(), places })
    }

    /// A fault of the texts with its place in the file.
    pub fn fault(&self, fault: &Fault) -> anyhow::Error {
        let mut parts = fault.pointer.split('/').skip(1);
        let (field, element, rest) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let place = element.and_then(|element| self.places.get(element.parse::<usize>().ok()?));
        let (file, detail) = (self.file.display(), &fault.detail);
        match (place, rest) {
            (Some(place), Some(name)) => anyhow!("{file}: {place}: `{name}`: {detail}"),
            (Some(place), None) => anyhow!("{file}: {place}: {detail}"),
            (None, _) if field == "shuffles" => anyhow!("--shuffles: {detail}"),
            (None, _) => anyhow!("{file}: `{field}`: {detail}"),
        }
    }
}

fn test_text(sample: Sample) -> TestText {
    let Sample { id, text, document, .. } = sample;
    TestText::Named(NamedTestText { id, text, document })
}

/// The lines of a file that are not blank, each a JSON value, with their places. The file may be compressed.
fn lines<T: DeserializeOwned>(file: &Path) -> Result<(Vec<RecordPlace>, Vec<T>)> {
    let unreadable = || format!("cannot read {}", file.display());
    let content = read_to_string(InputFile::open(file).with_context(unreadable)?).with_context(unreadable)?;
    let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
    let numbered = (1..).map(RecordPlace::Line).zip(content.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = |(place, line): (RecordPlace, &str)| {
        let value = serde_json::from_str(line);
        let value = value.map_err(|error| anyhow!("{}: {place}: {}", file.display(), without_place(&error)))?;
        Ok((place, value))
    };
    let all: Vec<(RecordPlace, T)> = numbered.map(read).collect::<Result<_>>()?;
    Ok(all.into_iter().unzip())
}
