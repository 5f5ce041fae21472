//! Reading of values from clients beside [`mia::json`], and writing of values that other programs might take for more
//! than they are.

mod compact_json;
mod shaped;

pub use compact_json::CompactObject;
pub use shaped::{ShapeFault, Shaped, in_words, pointer, without_place};

use std::borrow::Cow;
use std::fmt::Display;

/// Returns the text, cut after `most` characters.
#[must_use]
pub fn quoted(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

/// A number of things in words: `1 text`, `2 texts`.
#[must_use]
pub fn number_of<N: Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {one}{ending}")
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
    fn numbers_agree_with_what_they_count() {
        let all = [number_of(0u16, "text"), number_of(1u64, "non-member"), number_of(2usize, "text")];
        assert_eq!(all, ["0 texts", "1 non-member", "2 texts"]);
    }

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
