//! The header and the licence of Project Gutenberg, by the lines that mark them.
//!
//! Marks have changed since 1991: `*** START OF THE PROJECT GUTENBERG EBOOK TITLE ***`, `***START OF THIS PROJECT GUTENBERG ETEXT`,
//! `*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*`, and after the text `End of the Project Gutenberg EBook of
//! TITLE` before `*** END OF THIS PROJECT GUTENBERG EBOOK TITLE ***`.

use super::line::{DropKind, TextLine};
use super::lookahead::Lookahead;
use crate::error::DocumentError;

/// Bytes of a header, at most; a mark after them is a part of the text.
const HEADER: usize = 64 << 10;

/// Longest line that is a mark, in bytes.
const LONGEST: usize = 400;

/// Lines that a mark may go on for, until `***`.
const MARK_LINES: usize = 4;

pub struct GutenbergFilter<I> {
    lines: Lookahead<I>,
    /// Lines of the header that are still to be marked; `None` before the header was looked for.
    left: Option<usize>,
    has_header: bool,
    is_after_end: bool,
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> GutenbergFilter<I> {
    pub fn new(lines: I) -> Self {
        Self { lines: Lookahead::new(lines), left: None, has_header: false, is_after_end: false }
    }

    /// The number of lines up to the mark of the start, which may be followed by another one in a newer or older form, but not by one
    /// of the end.
    fn header(&mut self) -> usize {
        let (mut bytes, mut length, mut index) = (0, 0, 0);
        while bytes <= HEADER {
            let Some(line) = self.lines.peek(index) else { break };
            bytes += line.text.len();
            let short = line.short(LONGEST);
            if short.is_some_and(|line| is_end(line, length > 0)) {
                break;
            }
            if short.is_some_and(is_start) {
                index += self.mark_end(index);
                length = index + 1;
            }
            index += 1;
        }
        length
    }

    /// The number of lines that a mark goes on for after the line at `index`.
    fn mark_end(&mut self, index: usize) -> usize {
        let is_end = |line: &TextLine| line.text.trim_end().ends_with('*');
        let ends = (0..MARK_LINES).find(|more| self.lines.peek(index + more).is_some_and(|line| is_end(line)));
        ends.unwrap_or(0)
    }
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> Iterator for GutenbergFilter<I> {
    type Item = Result<TextLine, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let header = self.header();
                self.has_header = header > 0;
                header
            }
        };
        if left == 0 {
            let line = self.lines.peek(0).and_then(|line| line.short(LONGEST));
            let (starts, ends) = (line.is_some_and(is_start), line.is_some_and(|line| is_end(line, self.has_header)));
            if self.is_after_end && starts {
                // Another book in the same file.
                left = self.mark_end(0) + 1;
                (self.has_header, self.is_after_end) = (true, false);
            }
            self.is_after_end |= ends;
        }
        self.left = Some(left.saturating_sub(1));
        let mut line = self.lines.next()?;
        if let Ok(line) = &mut line
            && (left > 0 || self.is_after_end)
        {
            line.dropped = line.dropped.or(Some(DropKind::Gutenberg));
        }
        Some(line)
    }
}

/// The words of a mark in lower case, without asterisks.
fn words(line: &str) -> String {
    let line = line.to_lowercase().replace('*', " ");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if the words begin with `verb [the|this] [copyrighted] project gutenberg`.
fn names_project(words: &str, verb: &str) -> bool {
    let Some(rest) = words.strip_prefix(verb) else { return false };
    let rest =
        ["the ", "this ", "copyrighted "].iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    rest.starts_with("project gutenberg")
}

fn is_start(line: &str) -> bool {
    if !line.starts_with('*') {
        return false;
    }
    let words = words(line);
    names_project(&words, "start of ") || words.starts_with("end the small print")
}

/// A line with asterisks ends a text in any case, one without only where there was a header: an author may write that.
fn is_end(line: &str, has_header: bool) -> bool {
    if !line.starts_with(['*', 'E', 'e', 'F', 'f']) {
        return false;
    }
    let words = words(line);
    let is_named = names_project(&words, "end of ")
        || words.starts_with("ende dieses projekt gutenberg")
        || words.starts_with("ende dieses project gutenberg")
        || words.starts_with("fin de project gutenberg");
    is_named && (line.starts_with('*') || has_header)
}

#[cfg(test)]
mod tests {
    use super::super::dropped;
    use super::*;

    const BODY: &str = "\nChapter one.\n\nThe end of the story.\n";

    #[test]
    fn header_and_licence_go_in_all_spellings() {
        let starts = [
            "*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***",
            "*** START OF THIS PROJECT GUTENBERG EBOOK A BOOK ***",
            "***START OF THE PROJECT GUTENBERG EBOOK A BOOK***",
            "*** START OF PROJECT GUTENBERG EBOOK A BOOK ***",
            "*** START OF THE COPYRIGHTED PROJECT GUTENBERG EBOOK A BOOK ***",
            "*** Start of the Project Gutenberg etext of A Book ***",
            "*** START OF THE PROJECT GUTENBERG EBOOK A BOOK WITH\nA LONG TITLE ***",
            "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*",
            "*END THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.07.02.92*END*",
        ];
        let ends = [
            "*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***",
            "***END OF THE PROJECT GUTENBERG EBOOK A BOOK***",
            "*** END OF THIS PROJECT GUTENBERG EBOOK A BOOK ***",
            "*** END OF THE COPYRIGHTED PROJECT GUTENBERG EBOOK A BOOK ***",
            "End of the Project Gutenberg EBook of A Book, by B\n\n*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***",
            "End of Project Gutenberg's A Book, by B",
            "End of this Project Gutenberg Etext of A Book",
            "Ende dieses Projekt Gutenberg Etextes",
            "Fin de Project Gutenberg Etext",
        ];
        for start in starts {
            for end in ends {
                let (header, licence) = (format!("The Book\n\nTitle: A\n\n{start}\n"), format!("{end}\n\nLicence.\n"));
                let text = format!("{header}{BODY}{licence}");
                assert_eq!(dropped(&text, false, DropKind::Gutenberg), format!("{header}{licence}"));
            }
        }
    }

    #[test]
    fn a_second_book_of_a_file_stays() {
        let mark = |verb: &str| format!("*** {verb} OF THE PROJECT GUTENBERG EBOOK A ***\n");
        let text = format!(
            "header\n{}one\n{}licence\n{}two\n{}licence\n",
            mark("START"),
            mark("END"),
            mark("START"),
            mark("END")
        );
        let kept = text.replace("one\n", "").replace("two\n", "");
        assert_eq!(dropped(&text, false, DropKind::Gutenberg), kept);
    }

    #[test]
    fn text_about_the_project_stays() {
        let far = format!("{}*** START OF THE PROJECT GUTENBERG EBOOK A ***\n", "A line.\n".repeat(HEADER / 8 + 1));
        for text in [
            "Start of the Project Gutenberg was in 1971.\nMore.\n",
            "End of the Project Gutenberg story.\nMore.\n",
            "He wrote: *** START OF THE PROJECT GUTENBERG EBOOK ***\nMore.\n",
            "The end of Project Gutenberg is not near.\n",
            "*** START OF CHAPTER TWO ***\nMore.\n",
            &far,
        ] {
            assert_eq!(dropped(text, false, DropKind::Gutenberg), "");
        }
    }
}
