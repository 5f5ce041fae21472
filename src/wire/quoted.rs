//! Quotation of input from clients, in part if it is long.

use std::borrow::Cow;

/// Returns the text, cut after `most` characters.
#[must_use]
pub fn quoted(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!((quoted("abc", 3).as_ref(), quoted("abcd", 3).as_ref()), ("abc", "abc..."));
        assert_eq!((quoted("äöü", 2).as_ref(), quoted("", 0).as_ref()), ("äö...", ""));
    }
}
