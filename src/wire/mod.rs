//! Reading of values from clients beside [`mia::json`], and writing of values that other programs might take for more
//! than they are.

mod compact_json;
mod shaped;

pub use compact_json::CompactObject;
pub use shaped::{ShapeFault, Shaped, in_words, pointer, without_place};

use std::borrow::Cow;

/// Returns the text, cut after `most` characters.
#[must_use]
pub fn quoted(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

/// A text that no spreadsheet evaluates: an apostrophe comes before one that begins as a formula does, with `=`, `+`, `-`, `@`, a
/// tab or a carriage return, as OWASP advises ("CSV injection"). Numbers of our own are to be written as they are.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!((quoted("abc", 3).as_ref(), quoted("abcd", 3).as_ref()), ("abc", "abc..."));
        assert_eq!((quoted("äöü", 2).as_ref(), quoted("", 0).as_ref()), ("äö...", ""));
    }

    #[test]
    fn what_begins_a_formula_is_text() {
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(inert(text), format!("'{text}"));
        }
        for text in ["", "a=b", "1-1", "'=1", " =1"] {
            assert_eq!(inert(text), text);
        }
    }
}
