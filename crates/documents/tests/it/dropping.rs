//! Text that is left out of passages, and places that stay those of the whole text.

use crate::common::{cut, cut_text, read_bytes};
use documents::{Cut, CutAt, DropCount};

#[test]
fn pages_leave_no_header_in_a_passage() {
    let text = "A BOOK\n\nThe clock struck, and nobody\n\n1\n\u{c}A BOOK\n\nin the house was awake.\n\n2\n";
    let (passages, tally) = cut_text(text, cut(128), 3);
    assert_eq!(passages.len(), 1);
    assert_eq!(passages[0].text, "The clock struck, and nobody\n\n\nin the house was awake.");
    // The slice has the lines that the text has not.
    let slice: String = text.chars().skip(passages[0].offset as usize).take(passages[0].length as usize).collect();
    assert_eq!(slice, "The clock struck, and nobody\n\n1\n\u{c}A BOOK\n\nin the house was awake.");
    assert_eq!(tally.dropped.page_lines, DropCount { pieces: 4, words: 6 });
    // With an overlap across the page.
    let (passages, _) = cut_text(text, Cut { words: 6, overlap: 2, at: CutAt::Word }, 3);
    let texts: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
    assert_eq!(texts, ["The clock struck, and nobody\n\n\nin", "nobody\n\n\nin the house was awake."]);
    assert_eq!((passages[1].offset, passages[1].length), (30, 42));
}

#[test]
fn a_book_is_counted_by_kind() {
    let book = "The Project Gutenberg EBook of A Book\n\n*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n\nCONTENTS\n\n\
        I. The Clock ..... 1\nII. The House ..... 9\n\n\nI. The Clock\n\nThe clock struck.\n\n1 2 3 4 5 | 6\n\n\
        *** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n\nThe licence.\n";
    let outcome = read_bytes("book.txt", book).unwrap();
    assert_eq!(outcome.texts(), ["I. The Clock\n\nThe clock struck.\n\n1 2 3 4 5 | 6"]);
    let dropped = outcome.tally.dropped;
    assert_eq!(dropped.gutenberg, DropCount { pieces: 2, words: 29 });
    assert_eq!(dropped.contents, DropCount { pieces: 1, words: 11 });
    assert_eq!(outcome.tally.words, 6 + 7);
    // No passage reaches over a table of contents.
    let (passages, _) =
        cut_text("Preface.\n\nContents\n\n1. One ..... 1\n2. Two ..... 2\n\n\n1. One\n\nText.\n", cut(128), 9);
    assert_eq!(
        passages.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>(),
        ["Preface.", "1. One\n\nText."]
    );
}

#[test]
fn front_matter_is_that_of_markdown() {
    let text = "---\ntitle: A book\n---\n\n# Heading\n\nText.\n";
    let outcome = read_bytes("book.md", text).unwrap();
    assert_eq!(outcome.texts(), ["# Heading\n\nText."]);
    assert_eq!((outcome.passages[0].offset, outcome.tally.dropped.front_matter.pieces), (23, 1));
    assert_eq!(read_bytes("book.txt", text).unwrap().tally.dropped.front_matter.pieces, 0);
}
