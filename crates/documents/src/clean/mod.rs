//! The lines of a document, with marks on those that are not the text of its author.
//!
//! Each filter is an iterator over lines that looks ahead within a bound, and marks lines. No filter takes a line away, since the
//! places of passages are places of the whole text. In doubt a line stays.

mod contents;
mod front_matter;
mod gutenberg;
mod line;
mod lookahead;
mod pages;

pub use line::{DropKind, TextLine};

use crate::error::DocumentError;
use contents::ContentsFilter;
use front_matter::FrontMatterFilter;
use gutenberg::GutenbergFilter;
use line::TextLines;
use pages::PageFilter;

pub type CleanLines = Box<dyn Iterator<Item = Result<TextLine, DocumentError>> + Send>;

/// The lines of a text that comes in chunks, marked by all filters.
pub fn clean(
    chunks: impl Iterator<Item = Result<String, DocumentError>> + Send + 'static,
    is_markdown: bool,
) -> CleanLines {
    let lines = FrontMatterFilter::new(TextLines::new(chunks), is_markdown);
    Box::new(ContentsFilter::new(PageFilter::new(GutenbergFilter::new(lines))))
}

/// Marks the lines of a text, for tests of filters: the dropped lines of each kind, joined.
#[cfg(test)]
fn dropped(text: &str, is_markdown: bool, kind: DropKind) -> String {
    let mut results = Vec::new();
    for size in [1, 7, text.len().max(1)] {
        let characters: Vec<char> = text.chars().collect();
        let chunks: Vec<_> = characters.chunks(size).map(|chunk| Ok(chunk.iter().collect())).collect();
        let lines = clean(chunks.into_iter(), is_markdown).map(|line| line.unwrap());
        let (mut all, mut dropped) = (String::new(), String::new());
        for line in lines {
            all.push_str(&line.text);
            if line.dropped == Some(kind) {
                dropped.push_str(&line.text);
            }
        }
        assert_eq!(all, text);
        results.push(dropped);
    }
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    results.swap_remove(0)
}
