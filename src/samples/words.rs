//! Texts of a given number of words.

/// The text up to the end of its word `count`; the whole text where it has no more words than that. Words are separated by white
/// space, as in the lengths 32, 64, 128 and 256 of WikiMIA.
#[must_use]
pub fn first_words(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1).and_then(|last| text.split_whitespace().nth(last)) else {
        return if count == 0 { "" } else { text };
    };
    // `last` is a part of `text`, so its address says where it ends.
    let end = last.as_ptr() as usize - text.as_ptr() as usize + last.len();
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::first_words;

    #[test]
    fn a_text_is_cut_after_a_word() {
        for (count, expected) in
            [(0, ""), (1, " one"), (2, " one\n two"), (3, " one\n two  drei"), (4, " one\n two  drei ")]
        {
            assert_eq!(first_words(" one\n two  drei ", count), expected, "{count}");
        }
        assert_eq!(first_words("", 3), "");
        assert_eq!(first_words("語 語", 1), "語");
    }
}
