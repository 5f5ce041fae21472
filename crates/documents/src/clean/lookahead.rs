//! Lines that are looked at before they are given.

use super::line::TextLine;
use crate::error::DocumentError;
use std::collections::VecDeque;

/// An iterator over lines whose next ones can be seen and marked.
pub struct Lookahead<I> {
    lines: I,
    seen: VecDeque<TextLine>,
    error: Option<DocumentError>,
    is_ended: bool,
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> Lookahead<I> {
    pub fn new(lines: I) -> Self {
        Self { lines, seen: VecDeque::new(), error: None, is_ended: false }
    }

    /// The line after as many others, unless the text ends before, or cannot be read.
    pub fn peek(&mut self, index: usize) -> Option<&mut TextLine> {
        while self.seen.len() <= index && !self.is_ended {
            match self.lines.next() {
                Some(Ok(line)) => self.seen.push_back(line),
                Some(Err(error)) => (self.error, self.is_ended) = (Some(error), true),
                None => self.is_ended = true,
            }
        }
        self.seen.get_mut(index)
    }
}

impl<I: Iterator<Item = Result<TextLine, DocumentError>>> Iterator for Lookahead<I> {
    type Item = Result<TextLine, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.seen.pop_front() {
            Some(line) => Some(Ok(line)),
            None if self.is_ended => self.error.take().map(Err),
            None => self.lines.next(),
        }
    }
}
