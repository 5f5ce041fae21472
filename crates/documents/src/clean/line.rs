//! Chunks of text to lines.

use crate::error::DocumentError;

/// Bytes of a line; a longer one comes in parts.
const LONGEST: usize = 64 << 10;

/// A kind of text that is left out of passages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropKind {
    /// The header and the licence of Project Gutenberg.
    Gutenberg,
    /// The fields before the text of a Markdown file.
    FrontMatter,
    /// A table of contents.
    Contents,
    /// The first or last line of a page, which has its number or a title that is on other pages, too.
    PageLine,
    /// A passage where under half of the characters are letters.
    Symbols,
    /// A passage with the words of an earlier one.
    Repeated,
}

/// A line with its end, or a part of a long one. A form feed begins a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLine {
    /// Place of its first character in the text.
    pub offset: u64,
    pub text: String,
    /// It is no part of a longer line.
    pub is_whole: bool,
    pub dropped: Option<DropKind>,
}

impl TextLine {
    pub fn is_blank(&self) -> bool {
        self.is_whole && self.text.trim().is_empty()
    }

    pub fn begins_page(&self) -> bool {
        self.text.starts_with('\x0c')
    }

    /// The line without white space around it, if it is a short one that no filter has dropped.
    pub fn short(&self, longest: usize) -> Option<&str> {
        let is_short = self.is_whole && self.dropped.is_none() && self.text.len() <= longest;
        is_short.then(|| self.text.trim()).filter(|text| !text.is_empty())
    }
}

/// The lines of a text. They depend on the text alone, not on its chunks.
pub struct TextLines<I> {
    chunks: I,
    text: String,
    /// Bytes of `text` that were given as lines.
    given: usize,
    offset: u64,
    is_continued: bool,
    is_ended: bool,
}

impl<I> TextLines<I> {
    pub fn new(chunks: I) -> Self {
        Self { chunks, text: String::new(), given: 0, offset: 0, is_continued: false, is_ended: false }
    }

    fn take_line(&mut self) -> Option<TextLine> {
        let rest = &self.text[self.given..];
        let end = line_end(rest, self.is_ended)?;
        let (text, is_whole) = match end {
            LineEnd::Whole(length) => (rest[..length].to_owned(), !self.is_continued),
            LineEnd::Part(length) => (rest[..length].to_owned(), false),
        };
        self.is_continued = matches!(end, LineEnd::Part(_));
        self.given += text.len();
        let offset = self.offset;
        self.offset += text.chars().count() as u64;
        Some(TextLine { offset, text, is_whole, dropped: None })
    }
}

impl<I: Iterator<Item = Result<String, DocumentError>>> Iterator for TextLines<I> {
    type Item = Result<TextLine, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(line) = self.take_line() {
                return Some(Ok(line));
            }
            if self.is_ended {
                return None;
            }
            self.text.drain(..std::mem::take(&mut self.given));
            match self.chunks.next() {
                Some(Ok(chunk)) => self.text.push_str(&chunk),
                Some(Err(error)) => {
                    (self.is_ended, self.text) = (true, String::new());
                    return Some(Err(error));
                }
                None => self.is_ended = true,
            }
        }
    }
}

/// Bytes up to the end of a line, or of a part of a long line.
enum LineEnd {
    Whole(usize),
    Part(usize),
}

/// Finds the end of the first line: after `\n`, `\r\n` or `\r`, before a form feed. `None` if more text is needed.
fn line_end(text: &str, is_last: bool) -> Option<LineEnd> {
    let bytes = text.as_bytes();
    let first = usize::from(bytes.first() == Some(&b'\x0c'));
    let place = memchr::memchr3(b'\n', b'\r', b'\x0c', &bytes[first..bytes.len().min(LONGEST).max(first)]);
    match place.map(|place| place + first) {
        Some(place) if bytes[place] == b'\n' => Some(LineEnd::Whole(place + 1)),
        Some(place) if bytes[place] == b'\x0c' => Some(LineEnd::Whole(place)),
        Some(place) => match bytes.get(place + 1) {
            Some(b'\n') => Some(LineEnd::Whole(place + 2)),
            None if !is_last => None,
            _ => Some(LineEnd::Whole(place + 1)),
        },
        None if bytes.len() >= LONGEST => Some(LineEnd::Part(text.floor_char_boundary(LONGEST))),
        None => (is_last && !text.is_empty()).then_some(LineEnd::Whole(text.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, size: usize) -> Vec<TextLine> {
        let characters: Vec<char> = text.chars().collect();
        let chunks: Vec<_> = characters.chunks(size).map(|chunk| Ok(chunk.iter().collect())).collect();
        TextLines::new(chunks.into_iter()).map(|line| line.unwrap()).collect()
    }

    #[test]
    fn lines_have_their_ends_and_form_feeds_begin_one() {
        let cases = [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\nb\r\nc\rd\n", &["a\n", "b\r\n", "c\r", "d\n"]),
            ("\r\r\n\n\r", &["\r", "\r\n", "\n", "\r"]),
            ("a\x0cb\n\x0c\x0c\nc", &["a", "\x0cb\n", "\x0c", "\x0c\n", "c"]),
        ];
        for (text, expected) in cases {
            for size in [1, 2, 100] {
                let lines = lines(text, size);
                assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), expected, "{text:?}");
                assert!(lines.iter().all(|line| line.is_whole));
            }
        }
    }

    #[test]
    fn long_lines_come_in_parts_that_do_not_depend_on_chunks() {
        for length in [LONGEST / 3, LONGEST / 3 + 1, LONGEST] {
            let text = format!("a\n{}\nb", "語".repeat(length));
            let expected = lines(&text, text.len());
            assert_eq!(expected.iter().map(|line| line.text.as_str()).collect::<String>(), text);
            assert_eq!(expected.iter().filter(|line| line.is_whole).count(), 2 + usize::from(length == LONGEST / 3));
            assert!(
                expected.windows(2).all(|pair| pair[1].offset == pair[0].offset + pair[0].text.chars().count() as u64)
            );
            for size in [1_000, LONGEST / 3, LONGEST] {
                assert_eq!(lines(&text, size), expected, "{length} {size}");
            }
        }
    }
}
