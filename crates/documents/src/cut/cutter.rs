//! Lines to passages, in bounded memory.

use super::options::Cut;
use super::units::{TextUnit, units};
use super::words::words;
use crate::clean::{DropKind, TextLine};
use std::collections::VecDeque;

/// Bytes of a paragraph that are held; a longer one is cut as it comes.
const PARAGRAPH: usize = 1 << 20;

/// Bytes of white space within a passage; more of it ends the passage.
const WHITE_SPACE: usize = 64 << 10;

/// A passage of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutPassage {
    /// Place of its first character in the text of the document, and number of characters up to the end of its last.
    pub offset: u64,
    pub length: u64,
    pub text: String,
    /// Number of its words that are not repeated from the passage before it.
    pub new_words: usize,
}

/// Collects lines, and gives passages as soon as they are complete.
pub struct Cutter {
    cut: Cut,
    paragraph: OpenParagraph,
    passage: OpenPassage,
    complete: VecDeque<CutPassage>,
}

/// The text of a paragraph, with the place of each of its lines.
#[derive(Default)]
struct OpenParagraph {
    text: String,
    /// Bytes of `text` before a line, and the place of the line in the document.
    lines: Vec<(usize, u64)>,
    is_ended: bool,
}

/// The passage that the next units are added to.
#[derive(Default)]
struct OpenPassage {
    text: String,
    offset: u64,
    words: usize,
    repeated_words: usize,
    /// Bytes of `text`, and the place in the document, where the last word ends.
    end: (usize, u64),
    /// The same where its last words begin, as many as the next passage repeats.
    last_words: VecDeque<(usize, u64)>,
}

impl Cutter {
    /// `cut` must have been checked.
    pub fn new(cut: Cut) -> Self {
        let (paragraph, passage) = (OpenParagraph::default(), OpenPassage::default());
        Self { cut, paragraph, passage, complete: VecDeque::new() }
    }

    /// Returns the next passage that is complete.
    pub fn take(&mut self) -> Option<CutPassage> {
        self.complete.pop_front()
    }

    /// Adds the next line. A line that was dropped ends the passage, unless it is one of the edges of a page.
    pub fn add(&mut self, line: &TextLine) {
        match line.dropped {
            Some(DropKind::PageLine) => return,
            Some(_) => return self.end(),
            None => {}
        }
        let is_blank = line.is_blank();
        if self.paragraph.is_ended && !is_blank {
            self.cut_paragraph(true);
        }
        self.paragraph.add(line);
        self.paragraph.is_ended |= is_blank;
        if self.paragraph.text.len() >= PARAGRAPH {
            self.cut_paragraph(self.paragraph.is_ended);
        }
    }

    /// Completes the last passage; nothing of it is repeated.
    pub fn end(&mut self) {
        self.cut_paragraph(true);
        let passage = std::mem::take(&mut self.passage);
        self.complete.extend(passage.complete());
    }

    /// Adds the units of the paragraph to passages: all of them, or all but the last if it goes on.
    fn cut_paragraph(&mut self, is_end: bool) {
        let limit = self.cut.words - self.cut.overlap;
        let paragraph = std::mem::take(&mut self.paragraph);
        let text = paragraph.text.as_str();
        if text.trim().is_empty() {
            return self.add_white_space(text);
        }
        let mut places = TextPlaces::new(text, &paragraph.lines);
        let mut used = 0;
        for unit in units(text, self.cut.at, limit, is_end) {
            used = unit.range.end;
            self.add_unit(text, &unit, &mut places);
        }
        if used - text[..used].trim_end().len() > WHITE_SPACE {
            self.complete.extend(std::mem::take(&mut self.passage).complete());
        }
        if !is_end {
            self.paragraph = paragraph.rest(used);
        }
    }

    /// Adds white space without a paragraph: the rest of a run that was too long to be held.
    fn add_white_space(&mut self, text: &str) {
        if text.len() > WHITE_SPACE {
            self.complete.extend(std::mem::take(&mut self.passage).complete());
        } else if !self.passage.text.is_empty() {
            self.passage.text.push_str(text);
        }
    }

    fn add_unit(&mut self, text: &str, unit: &TextUnit, places: &mut TextPlaces<'_>) {
        if self.passage.words + unit.words > self.cut.words {
            let next = self.passage.next();
            self.complete.extend(std::mem::replace(&mut self.passage, next).complete());
        }
        self.passage.add(text, unit, places, self.cut.overlap);
    }
}

impl OpenParagraph {
    fn add(&mut self, line: &TextLine) {
        self.lines.push((self.text.len(), line.offset));
        self.text.push_str(&line.text);
    }

    /// The paragraph after its first bytes.
    fn rest(&self, used: usize) -> Self {
        let offset = TextPlaces::new(&self.text, &self.lines).offset(used);
        let lines = self.lines.iter().filter(|(start, _)| *start > used).map(|(start, offset)| (start - used, *offset));
        let lines = [(0, offset)].into_iter().chain(lines).collect();
        Self { text: self.text[used..].to_owned(), lines, is_ended: self.is_ended }
    }
}

impl OpenPassage {
    /// Appends a unit. White space before the first word is left out.
    fn add(&mut self, text: &str, unit: &TextUnit, places: &mut TextPlaces<'_>, overlap: usize) {
        let mut range = unit.range.clone();
        let content = &text[range.clone()];
        if self.text.is_empty() {
            range.start += content.len() - content.trim_start().len();
            self.offset = places.offset(range.start);
        }
        let before = self.text.len();
        if overlap > 0 {
            for word in words(&text[range.clone()]) {
                self.last_words.push_back((before + word.start, places.offset(range.start + word.start)));
            }
            self.last_words.drain(..self.last_words.len().saturating_sub(overlap));
        }
        self.text.push_str(&text[range.clone()]);
        self.words += unit.words;
        let end = range.start + text[range.clone()].trim_end().len();
        self.end = (before + end - range.start, places.end_offset(end));
    }

    /// The passage after this one, with the words that it repeats.
    fn next(&self) -> Self {
        let Some(&(start, offset)) = self.last_words.front() else { return Self::default() };
        let last_words = self.last_words.iter().map(|(place, offset)| (place - start, *offset)).collect();
        let words = self.last_words.len();
        let (text, end) = (self.text[start..].to_owned(), (self.end.0 - start, self.end.1));
        Self { text, offset, words, repeated_words: words, end, last_words }
    }

    /// The complete passage; none if it has no word of its own.
    fn complete(mut self) -> Option<CutPassage> {
        let new_words = self.words - self.repeated_words;
        self.text.truncate(self.end.0);
        let (offset, length) = (self.offset, self.end.1 - self.offset);
        (new_words > 0).then_some(CutPassage { offset, length, text: self.text, new_words })
    }
}

/// Places in a document of bytes of a paragraph that are asked for in order.
struct TextPlaces<'a> {
    text: &'a str,
    lines: &'a [(usize, u64)],
    /// The last byte that was asked for, and its place.
    last: (usize, u64),
}

impl<'a> TextPlaces<'a> {
    fn new(text: &'a str, lines: &'a [(usize, u64)]) -> Self {
        Self { text, lines, last: (0, 0) }
    }

    /// The place of the character that begins at this byte.
    fn offset(&mut self, byte: usize) -> u64 {
        while let Some((&(start, offset), rest)) = self.lines.split_first()
            && start <= byte
        {
            (self.last, self.lines) = ((start, offset), rest);
        }
        let (start, offset) = self.last;
        self.last = (byte, offset + self.text[start..byte].chars().count() as u64);
        self.last.1
    }

    /// The place after the character that ends at this byte.
    fn end_offset(&mut self, byte: usize) -> u64 {
        match self.text[..byte].char_indices().next_back() {
            Some((start, _)) => self.offset(start) + 1,
            None => self.offset(byte),
        }
    }
}
