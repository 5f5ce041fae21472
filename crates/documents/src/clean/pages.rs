//! The headers and footers of pages, which form feeds divide, as `pdftotext` writes them.

use super::line::{DropKind, TextLine};
use crate::error::DocumentError;
use std::collections::VecDeque;

/// Bytes of a page; of more text without a form feed no line is taken for a header.
const PAGE: usize = 64 << 10;

/// Pages before and after a page that its lines are compared with: odd and even pages may have headers of their own.
const NEAR: usize = 2;

/// Longest header or footer, in bytes.
const LONGEST: usize = 200;

/// Letters of a line that counts as repeated; shorter ones may be ornaments.
const LETTERS: usize = 3;

pub struct PageFilter<I> {
    lines: I,
    /// The first line of the page after those that were read.
    next: Option<TextLine>,
    error: Option<DocumentError>,
    is_ended: bool,
    /// The edges of the pages before the current one, and the current one with those after it.
    before: VecDeque<PageEdges>,
    pages: VecDeque<PageText>,
    marked: VecDeque<TextLine>,
}

/// The first and the last line of a page, as they are compared.
#[derive(Clone, Default)]
struct PageEdges([Option<EdgeLine>; 2]);

#[derive(Clone, PartialEq, Eq)]
enum EdgeLine {
    Number,
    /// The letters of the line, and whether it ends as a sentence does.
    Title(String, bool),
}

struct PageText {
    lines: Vec<TextLine>,
    /// Places of the first and the last line that is not blank.
    places: [Option<usize>; 2],
    edges: PageEdges,
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> PageFilter<I> {
    pub fn new(lines: I) -> Self {
        Self {
            lines,
            next: None,
            error: None,
            is_ended: false,
            before: VecDeque::new(),
            pages: VecDeque::new(),
            marked: VecDeque::new(),
        }
    }

    /// Reads up to a form feed, or as much as a page may have.
    fn read_page(&mut self) -> Option<PageText> {
        let mut lines: Vec<TextLine> = self.next.take().into_iter().collect();
        let mut bytes = lines.first().map_or(0, |line| line.text.len());
        let is_page = loop {
            if bytes > PAGE {
                break false;
            }
            if self.is_ended {
                break true;
            }
            match self.lines.next() {
                Some(Ok(line)) if line.begins_page() && !lines.is_empty() => {
                    self.next = Some(line);
                    break true;
                }
                Some(Ok(line)) => {
                    bytes += line.text.len();
                    lines.push(line);
                }
                Some(Err(error)) => (self.error, self.is_ended) = (Some(error), true),
                None => self.is_ended = true,
            }
        };
        (!lines.is_empty()).then(|| PageText::new(lines, is_page))
    }

    /// Marks the lines of the first page that is held, by those near it.
    fn mark_page(&mut self) {
        let Some(mut page) = self.pages.pop_front() else { return };
        for edge in [0, 1] {
            let (Some(line), Some(place)) = (&page.edges.0[edge], page.places[edge]) else { continue };
            let near = self.before.iter().chain(self.pages.iter().take(NEAR).map(|page| &page.edges));
            let repeats = near.filter(|edges| edges.0[edge].as_ref() == Some(line)).count();
            // A sentence may be the first of two pages by chance.
            let needed = if matches!(line, EdgeLine::Title(_, true)) { 2 } else { 1 };
            if repeats >= needed {
                page.lines[place].dropped = Some(DropKind::PageLine);
            }
        }
        self.before.push_back(page.edges);
        if self.before.len() > NEAR {
            self.before.pop_front();
        }
        self.marked.extend(page.lines);
    }
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> Iterator for PageFilter<I> {
    type Item = Result<TextLine, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.marked.is_empty() {
            while self.pages.len() <= NEAR
                && let Some(page) = self.read_page()
            {
                self.pages.push_back(page);
            }
            if self.pages.is_empty() {
                return self.error.take().map(Err);
            }
            self.mark_page();
        }
        self.marked.pop_front().map(Ok)
    }
}

impl PageText {
    fn new(lines: Vec<TextLine>, is_page: bool) -> Self {
        let has_text = |line: &TextLine| line.dropped.is_none() && !line.text.trim().is_empty();
        let first = lines.iter().position(has_text).filter(|_| is_page);
        let last = lines.iter().rposition(has_text).filter(|last| is_page && Some(*last) != first);
        let edge = |place: usize| EdgeLine::from_line(lines[place].short(LONGEST)?);
        let edges = PageEdges([first.and_then(edge), last.and_then(edge)]);
        Self { lines, places: [first, last], edges }
    }
}

impl EdgeLine {
    fn from_line(line: &str) -> Option<Self> {
        if is_page_number(line) {
            return Some(Self::Number);
        }
        let text: String = line.chars().filter(|character| !character.is_numeric()).collect();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_title = text.chars().filter(|character| character.is_alphabetic()).count() >= LETTERS;
        let is_sentence = line.ends_with(['.', '!', '?', ',', ';', ':', '"', '”', '’', '»', '。']);
        is_title.then_some(Self::Title(text, is_sentence))
    }
}

/// Returns true for a number as pages have it: `12`, `xii`, `- 12 -`, `[12]`, `Page 12`, `12 / 300`, `Page 12 of 300`.
fn is_page_number(line: &str) -> bool {
    let line = line.to_lowercase();
    let is_ornament = |character: char| character.is_whitespace() || "-–—_|~*·•[](){}<>.".contains(character);
    let number = line.trim_matches(is_ornament);
    let number = ["page", "seite", "página", "pagina", "p.", "s."]
        .iter()
        .find_map(|word| number.strip_prefix(word))
        .unwrap_or(number);
    let mut parts =
        number.split(['/', ' ']).filter(|part| !part.is_empty() && !["of", "von", "de", "sur"].contains(part));
    let is_number = |part: &str| {
        let is_arabic = part.chars().all(|character| character.is_ascii_digit()) && part.len() <= 4;
        let is_roman = part.chars().all(|character| "ivxlc".contains(character)) && part.len() <= 8;
        is_arabic || is_roman
    };
    parts.next().is_some_and(is_number) && parts.next().is_none_or(is_number) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::super::dropped;
    use super::*;

    fn page_lines(text: &str) -> String {
        dropped(text, false, DropKind::PageLine)
    }

    #[test]
    fn page_numbers_and_titles_go() {
        let cases = [
            ("One.\n\n1\n\x0cTwo.\n\n2\n\x0cThree.\n\n3\n", "1\n2\n3\n"),
            ("A BOOK\nOne.\n\x0cA BOOK\nTwo.\n", "A BOOK\n\x0cA BOOK\n"),
            ("12   A BOOK\nOne.\nx\n\x0cA BOOK   13\nTwo.\ny\n", "12   A BOOK\n\x0cA BOOK   13\n"),
            // Odd and even pages have titles of their own, and the first page has none.
            (
                "Start.\na\n\x0cCHAPTER\nb\nb\n\x0cBOOK\nc\nc\n\x0cCHAPTER\nd\nd\n\x0cBOOK\ne\n",
                "\x0cCHAPTER\n\x0cBOOK\n\x0cCHAPTER\n\x0cBOOK\n",
            ),
            ("a\na\n- i -\n\x0cb\nb\n- ii -\n", "- i -\n- ii -\n"),
            (
                "a\na\nActs Inc. 4.\n\x0cb\nb\nActs Inc. 5.\n\x0cc\nc\nActs Inc. 6.\n",
                "Acts Inc. 4.\nActs Inc. 5.\nActs Inc. 6.\n",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(page_lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn text_at_the_edges_of_pages_stays() {
        for text in [
            // No pages.
            "1\nOne.\n2\nTwo.\n1\n",
            "A BOOK\nOne.\nA BOOK\nTwo.\n",
            // A number that no other page has.
            "One.\nx\n\x0c1984\nTwo.\ny\n\x0cThree.\nz\n",
            // Different lines, ornaments, and a sentence that is repeated by chance.
            "One.\nx\n\x0cTwo.\ny\n",
            "One.\n* * *\n\x0cTwo.\n* * *\n",
            "He came.\nOne.\n\x0cHe came.\nTwo.\n",
            // Too far apart.
            "THE END\na\nb\n\x0cc\nd\n\x0ce\nf\n\x0cg\nh\n\x0cTHE END\ni\nj\n",
            // Inside of the page.
            "a\n12\nb\n\x0cc\n13\nd\n",
        ] {
            assert_eq!(page_lines(text), "", "{text:?}");
        }
        let long = format!("12\n{}\x0c13\n{}", "A line.\n".repeat(PAGE / 8 + 9), "A line.\n".repeat(PAGE / 8 + 9));
        assert_eq!(page_lines(&long), "");
    }

    #[test]
    fn numbers_of_pages() {
        for line in [
            "1",
            "9999",
            "xii",
            "XII",
            "- 12 -",
            "[12]",
            "Page 12",
            "12 / 300",
            "12/300",
            "Page 12 of 300",
            "Seite 4 von 5",
            "— 7 —",
        ] {
            assert!(is_page_number(line), "{line}");
        }
        for line in ["", "12 men", "I am", "12345", "1 2 3", "mix", "Page", "12a", "* * *"] {
            assert!(!is_page_number(line), "{line}");
        }
    }
}
