//! Tables of contents: a heading, and the run of short or dotted lines after it.
//!
//! The run ends before a line that is no entry, and before one that repeats the first entry: it is the heading of the first chapter.
//! Where the run ends at prose, its last block stays, since that may be the heading of the prose.

use super::line::{DropKind, TextLine};
use super::lookahead::Lookahead;
use crate::error::DocumentError;

/// Longest table, in lines and in bytes; longer ones stay.
const LINES: usize = 3_000;
const BYTES: usize = 256 << 10;

/// Longest title and longest entry that has a number or dots, in characters.
const TITLE: usize = 60;
const ENTRY: usize = 160;

/// Longest heading, in bytes.
const HEADING: usize = 80;

/// Fewest entries of a table, with numbers or dots, and without.
const NUMBERED: usize = 2;
const UNNUMBERED: usize = 3;

const HEADINGS: [&str; 25] = [
    "contents",
    "table of contents",
    "list of contents",
    "contents of this volume",
    "inhalt",
    "inhaltsverzeichnis",
    "inhaltsübersicht",
    "inhaltsangabe",
    "table des matières",
    "table des matieres",
    "table des chapitres",
    "sommaire",
    "índice",
    "indice",
    "indice general",
    "contenido",
    "tabla de contenido",
    "sommario",
    "sumário",
    "inhoud",
    "inhoudsopgave",
    "содержание",
    "оглавление",
    "目录",
    "目次",
];

/// Words that number a part of a book.
const LABELS: [&str; 22] = [
    "chapter",
    "chap.",
    "part",
    "book",
    "volume",
    "section",
    "act",
    "scene",
    "canto",
    "letter",
    "appendix",
    "kapitel",
    "teil",
    "buch",
    "abschnitt",
    "anhang",
    "chapitre",
    "partie",
    "livre",
    "capítulo",
    "capitolo",
    "глава",
];

pub struct ContentsFilter<I> {
    lines: Lookahead<I>,
    /// Lines of a table that are still to be marked.
    left: usize,
    /// Lines that were searched for a table, in which no other one begins.
    searched: usize,
    is_after_blank: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    /// With dots, the number of a page, the number of a chapter or a link.
    Numbered,
    Title,
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> ContentsFilter<I> {
    pub fn new(lines: I) -> Self {
        Self { lines: Lookahead::new(lines), left: 0, searched: 0, is_after_blank: true }
    }

    /// The number of lines of the table whose heading is the next line; none if there are too few entries.
    fn table(&mut self) -> usize {
        let mut table = TableOfContents::default();
        let mut bytes = 0;
        for index in 1..LINES {
            self.searched = index;
            let Some(line) = self.lines.peek(index) else { return table.end(TableEnd::Text) };
            bytes += line.text.len();
            if bytes > BYTES {
                return 0;
            }
            if line.dropped == Some(DropKind::PageLine) || line.is_blank() {
                table.add_blank();
                continue;
            }
            let text = line.short(BYTES);
            let Some((text, kind)) = text.and_then(|text| Some((text, entry_kind(text)?))) else {
                return table.end(TableEnd::Prose);
            };
            if table.repeats_first(text) {
                return table.end(TableEnd::Chapter);
            }
            table.add(index, text, kind);
        }
        0
    }
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> Iterator for ContentsFilter<I> {
    type Item = Result<TextLine, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.searched == 0 && self.is_after_blank && self.lines.peek(0).is_some_and(|line| is_heading(line)) {
            self.left = self.table();
        }
        let mut line = self.lines.next()?;
        if let Ok(line) = &mut line {
            self.is_after_blank = line.is_blank() || line.dropped.is_some();
            if self.left > 0 {
                line.dropped = line.dropped.or(Some(DropKind::Contents));
            }
        }
        self.left = self.left.saturating_sub(1);
        self.searched = self.searched.saturating_sub(1);
        Some(line)
    }
}

/// The end of a run of entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableEnd {
    Prose,
    Chapter,
    /// The end of the text, where only numbers tell a table from verse.
    Text,
}

/// The entries of a table that is being read.
#[derive(Default)]
struct TableOfContents {
    first: Vec<String>,
    entries: usize,
    numbered: usize,
    /// Lines up to the end of the last entry, and the same numbers before the last block.
    end: usize,
    before_block: (usize, usize, usize),
    block_is_numbered: bool,
    is_after_blank: bool,
    blocks: usize,
}

impl TableOfContents {
    fn add_blank(&mut self) {
        self.is_after_blank = true;
    }

    fn add(&mut self, index: usize, text: &str, kind: EntryKind) {
        if self.is_after_blank || self.entries == 0 {
            self.before_block = (self.entries, self.numbered, self.end);
            (self.block_is_numbered, self.is_after_blank) = (false, false);
            self.blocks += 1;
        }
        if self.entries == 0 {
            self.first = title_words(text);
        }
        self.entries += 1;
        self.numbered += usize::from(kind == EntryKind::Numbered);
        self.block_is_numbered |= has_page(text);
        self.end = index + 1;
    }

    /// Returns true for the title of the first entry, as the heading of its chapter has it: the whole, or the first words.
    fn repeats_first(&self, text: &str) -> bool {
        let words = title_words(text);
        !words.is_empty() && self.first.starts_with(&words)
    }

    /// The number of lines of the table with its heading.
    fn end(mut self, end: TableEnd) -> usize {
        if end == TableEnd::Prose && self.blocks > 1 && !self.block_is_numbered {
            (self.entries, self.numbered, self.end) = self.before_block;
        }
        let is_numbered = self.entries >= NUMBERED && self.numbered * 2 >= self.entries;
        let is_table = is_numbered || (self.entries >= UNNUMBERED && end != TableEnd::Text);
        if is_table { self.end } else { 0 }
    }
}

fn is_heading(line: &TextLine) -> bool {
    let Some(text) = line.short(HEADING) else { return false };
    let is_ornament = |character: char| character.is_whitespace() || "#*_=:.-–—[]".contains(character);
    HEADINGS.contains(&text.trim_matches(is_ornament).to_lowercase().as_str())
}

/// The words of an entry in lower case, without dots and what follows them.
fn title_words(text: &str) -> Vec<String> {
    let text = leader(text).map_or(text, |place| &text[..place]);
    let words = text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The place of the dots between a title and the number of its page: `.....`, `. . . .` or `……`.
fn leader(text: &str) -> Option<usize> {
    ["....", ". . .", "……", "·····", "____"].iter().filter_map(|dots| text.find(dots)).min()
}

/// Returns true if an entry ends with the number of a page, after dots or a wide space.
fn has_page(text: &str) -> bool {
    let before = text.trim_end_matches(|character: char| character.is_ascii_digit() || "ivxlc".contains(character));
    let is_wide = before.ends_with("  ") || before.ends_with('\t');
    leader(text).is_some() || (before.len() < text.len() && is_wide)
}

/// The kind of entry that a line is; `None` for a line that is no entry.
fn entry_kind(text: &str) -> Option<EntryKind> {
    let length = text.chars().count();
    let first = text.split_whitespace().next().unwrap_or_default().to_lowercase();
    let number = first.trim_end_matches(['.', ')', ':']);
    let is_roman = !number.is_empty() && number.chars().all(|character| "ivxlcdm".contains(character));
    let is_arabic = number.starts_with(|character: char| character.is_ascii_digit());
    // `I` begins many a sentence, and `I.` none.
    let is_labelled = LABELS.contains(&first.as_str())
        || is_arabic
        || (is_roman && (number.len() < first.len() || text.len() == number.len()));
    let is_link = (text.starts_with(['-', '*', '+']) || is_arabic) && text.contains("](");
    let has_number = text.ends_with(|character: char| character.is_ascii_digit());
    let ends_open = text.ends_with([',', ';']);
    let is_sentence = text.ends_with(['.', '!', '?', ':', '"', '”', '’', '»', '…', '。']);
    let begins_high =
        text.chars().find(|character| character.is_alphabetic()).is_some_and(|character| !character.is_lowercase());
    if length <= ENTRY && (has_page(text) || is_link || (is_labelled && !ends_open))
        || length <= TITLE && has_number && begins_high
    {
        return Some(EntryKind::Numbered);
    }
    (length <= TITLE && !ends_open && !is_sentence && begins_high).then_some(EntryKind::Title)
}

#[cfg(test)]
mod tests {
    use super::super::dropped;
    use super::*;

    #[test]
    fn tables_go_up_to_the_first_chapter() {
        let prose = "It was a long day, and nobody in the house had thought of the clock until it struck.\n";
        let cases = [
            ("CONTENTS\n\n I. The Clock ..... 1\n II. The House ..... 9\n", "\n\nI. The Clock\n\n"),
            ("Table of Contents\n\nChapter 1. The Clock\nChapter 2. The House\n", "\nChapter 1\n\nThe Clock\n\n"),
            ("# Contents\n\n- [The Clock](#clock)\n- [The House](#house)\n", "\n# The Clock\n\n"),
            ("Inhalt\n\nErstes Kapitel\t7\nZweites Kapitel\t19\n", "\nErstes Kapitel\n\n"),
            ("TABLE DES MATIÈRES.\n\nL'horloge . . . . 5\n\nLa maison . . . . 12\n", "\n\n"),
            ("Contents\n\nThe Clock\nThe House\nThe End\n", "\nThe Clock\n\n"),
            // As HTML gives it, with each entry a paragraph.
            ("Contents\n\nThe Clock\n\nThe House\n\nThe End\n", "\nThe Clock\n\n"),
            // The heading of the prose stays, even where no entry has it.
            ("Contents\n\nThe Clock\nThe House\nThe End\n", "\nProlog\n\n"),
            ("目次\n\n第一章　時計 …… 1\n第二章　家 …… 9\n", "\n第一章\n\n"),
        ];
        for (table, chapter) in cases {
            let text = format!("A Book\n\n{table}{chapter}{prose}");
            assert_eq!(dropped(&text, false, DropKind::Contents), table, "{text}");
        }
    }

    #[test]
    fn text_that_looks_like_a_table_stays() {
        for text in [
            // A chapter with this title.
            "Contents\n\nThe box held a clock, a letter and the key of a house that nobody had seen for years.\n",
            // Verse.
            "Contents\n\nThe clock has struck,\nThe house is still,\nA bird has luck\nUpon the hill.\n",
            "Contents\n\nThe clock\nThe house\nThe hill\nThe bird\n",
            // A word within a paragraph.
            "She emptied the bag and looked through its\ncontents\n1. a key\n2. a clock\n",
            "The contents\nof the box were 12\nand of the bag 13\n",
            // One entry.
            "Contents\n\nThe Clock ..... 1\n\nIt was a long day, and nobody in the house had thought of the clock until then.\n",
            "Contents",
        ] {
            assert_eq!(dropped(text, false, DropKind::Contents), "", "{text}");
        }
    }

    #[test]
    fn headings_over_and_over_take_no_quadratic_time() {
        let text = "Contents\n\nAn Entry\n\n".repeat(100_000);
        let chunks = std::iter::once(Ok(text));
        let start = std::time::Instant::now();
        assert_eq!(super::super::clean(chunks, false).count(), 400_000);
        assert!(start.elapsed().as_secs() < 60);
    }

    #[test]
    fn a_table_without_end_stays() {
        let text = format!("Contents\n\n{}", "12. An entry ..... 3\n".repeat(LINES + 10));
        assert_eq!(dropped(&text, false, DropKind::Contents), "");
    }
}
