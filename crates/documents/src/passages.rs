//! Documents to passages: cut, checked for letters, each given once, and counted.

use crate::clean::{CleanLines, DropKind, TextLine, clean};
use crate::cut::{Cut, CutFault, CutPassage, Cutter, count_words};
use crate::error::DocumentError;
use crate::read::Document;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ops::AddAssign;
use utoipa::ToSchema;

/// A passage of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Passage {
    /// The id of the document.
    pub document: String,
    /// Place of the first character in the text of the document, in Unicode scalar values.
    pub offset: u64,
    /// Number of characters up to its end in the document; those of headers of pages within it count, too.
    pub length: u64,
    /// The text of the document from `offset` on, without headers and footers of pages.
    pub text: String,
}

/// Number of pieces that were left out for one reason, and of their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct DropCount {
    pub pieces: u64,
    pub words: u64,
}

/// Counts of everything that was left out, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct DroppedCounts {
    /// Headers and licences of Project Gutenberg.
    pub gutenberg: DropCount,
    /// Front matter of Markdown.
    pub front_matter: DropCount,
    /// Tables of contents.
    pub contents: DropCount,
    /// Headers and footers of pages.
    pub page_lines: DropCount,
    /// Passages where under half of the characters are letters.
    pub symbols: DropCount,
    /// Passages with the words of an earlier one.
    pub repeated: DropCount,
}

impl DroppedCounts {
    fn count(&mut self, kind: DropKind) -> &mut DropCount {
        match kind {
            DropKind::Gutenberg => &mut self.gutenberg,
            DropKind::FrontMatter => &mut self.front_matter,
            DropKind::Contents => &mut self.contents,
            DropKind::PageLine => &mut self.page_lines,
            DropKind::Symbols => &mut self.symbols,
            DropKind::Repeated => &mut self.repeated,
        }
    }
}

/// Counts of what was read until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PassageTally {
    pub documents: u64,
    /// Documents that gave no passage.
    pub documents_without_passages: u64,
    /// Words of the passages; those that overlaps repeat count once.
    pub words: u64,
    pub passages: u64,
    pub dropped: DroppedCounts,
}

impl AddAssign for DropCount {
    fn add_assign(&mut self, Self { pieces, words }: Self) {
        self.pieces += pieces;
        self.words += words;
    }
}

impl AddAssign for PassageTally {
    fn add_assign(&mut self, other: Self) {
        self.documents += other.documents;
        self.documents_without_passages += other.documents_without_passages;
        self.words += other.words;
        self.passages += other.passages;
        let DroppedCounts { gutenberg, front_matter, contents, page_lines, symbols, repeated } = other.dropped;
        self.dropped.gutenberg += gutenberg;
        self.dropped.front_matter += front_matter;
        self.dropped.contents += contents;
        self.dropped.page_lines += page_lines;
        self.dropped.symbols += symbols;
        self.dropped.repeated += repeated;
    }
}

/// The passages of documents. After an error there are no more.
pub struct Passages<D> {
    documents: D,
    cut: Cut,
    current: Option<CurrentDocument>,
    tally: PassageTally,
    /// Digests of the words of the passages that were given.
    given: HashSet<[u8; 16]>,
    is_failed: bool,
}

/// The document that is being cut.
struct CurrentDocument {
    id: String,
    lines: CleanLines,
    cutter: Cutter,
    is_read: bool,
    has_passage: bool,
    last_dropped: Option<DropKind>,
}

/// Cuts documents into passages.
///
/// # Errors
/// If passages of this size cannot be cut.
pub fn passages<D>(documents: D, cut: Cut) -> Result<Passages<D>, CutFault>
where
    D: Iterator<Item = Result<Document, DocumentError>>,
{
    cut.check()?;
    Ok(Passages {
        documents,
        cut,
        current: None,
        tally: PassageTally::default(),
        given: HashSet::new(),
        is_failed: false,
    })
}

impl<D> Passages<D> {
    #[must_use]
    pub fn tally(&self) -> &PassageTally {
        &self.tally
    }

    /// The documents, to see which files were skipped.
    #[must_use]
    pub fn documents(&self) -> &D {
        &self.documents
    }
}

impl<D: Iterator<Item = Result<Document, DocumentError>>> Passages<D> {
    fn next_passage(&mut self) -> Result<Option<Passage>, DocumentError> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(document) = self.documents.next().transpose()? else { return Ok(None) };
                self.tally.documents += 1;
                self.current = Some(CurrentDocument::new(document, self.cut));
                continue;
            };
            if let Some(passage) = current.cutter.take() {
                if let Some(kind) = kind_of_drop(&passage.text, &mut self.given) {
                    let count = self.tally.dropped.count(kind);
                    count.pieces += 1;
                    count.words += passage.new_words as u64;
                    continue;
                }
                current.has_passage = true;
                self.tally.passages += 1;
                self.tally.words += passage.new_words as u64;
                let CutPassage { offset, length, text, .. } = passage;
                return Ok(Some(Passage { document: current.id.clone(), offset, length, text }));
            }
            if current.is_read {
                self.tally.documents_without_passages += u64::from(!current.has_passage);
                self.current = None;
                continue;
            }
            match current.lines.next().transpose()? {
                Some(line) => current.add(&line, &mut self.tally.dropped),
                None => {
                    current.cutter.end();
                    current.is_read = true;
                }
            }
        }
    }
}

impl<D: Iterator<Item = Result<Document, DocumentError>>> Iterator for Passages<D> {
    type Item = Result<Passage, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_failed {
            return None;
        }
        let passage = self.next_passage().transpose();
        self.is_failed = matches!(passage, Some(Err(_)));
        passage
    }
}

impl CurrentDocument {
    fn new(document: Document, cut: Cut) -> Self {
        let (id, is_markdown) = (document.id.clone(), document.is_markdown());
        let (lines, cutter) = (clean(document, is_markdown), Cutter::new(cut));
        Self { id, lines, cutter, is_read: false, has_passage: false, last_dropped: None }
    }

    /// Lines of one kind that follow each other are one piece, but for the edges of pages.
    fn add(&mut self, line: &TextLine, dropped: &mut DroppedCounts) {
        if let Some(kind) = line.dropped {
            let count = dropped.count(kind);
            count.pieces += u64::from(self.last_dropped != Some(kind) || kind == DropKind::PageLine);
            count.words += count_words(&line.text) as u64;
        }
        self.last_dropped = line.dropped;
        self.cutter.add(line);
    }
}

/// The reason to leave a passage out, if there is one.
fn kind_of_drop(text: &str, given: &mut HashSet<[u8; 16]>) -> Option<DropKind> {
    let NormalText { words, letters, others } = NormalText::new(text);
    if letters < others {
        return Some(DropKind::Symbols);
    }
    // The first half of the digest.
    let digest = Sha256::digest(&words).first_chunk().copied().unwrap_or_default();
    (!given.insert(digest)).then_some(DropKind::Repeated)
}

/// A text as it is compared with others.
#[derive(Default)]
struct NormalText {
    /// The words in lower case, with a space after each but the last.
    words: Vec<u8>,
    letters: usize,
    /// Number of the characters that are neither letters nor white space.
    others: usize,
}

impl NormalText {
    fn new(text: &str) -> Self {
        let mut normal = Self { words: Vec::with_capacity(text.len() + 16), ..Self::default() };
        let mut is_between = false;
        for character in text.chars() {
            if character.is_whitespace() {
                is_between = true;
                continue;
            }
            if std::mem::take(&mut is_between) && !normal.words.is_empty() {
                normal.words.push(b' ');
            }
            let is_letter = character.is_alphabetic();
            normal.letters += usize::from(is_letter);
            normal.others += usize::from(!is_letter);
            normal.add_in_lower_case(character);
        }
        normal
    }

    fn add_in_lower_case(&mut self, character: char) {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() => self.words.push(byte.to_ascii_lowercase()),
            _ => {
                let mut buffer = [0; 4];
                for lower in character.to_lowercase() {
                    self.words.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
                }
            }
        }
    }
}
