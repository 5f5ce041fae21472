//! When two texts are equal for statistics: after NFKC, in lower case, and with every run of white space made one space
//! (`methods.md`, "cluster").

use super::digest::TextDigest;
use unicode_normalization::UnicodeNormalization;

/// The digest that all texts of a cluster share which differ in nothing but case, width and white space.
#[must_use]
pub fn cluster_digest(text: &str) -> TextDigest {
    TextDigest::new(&normalized(text))
}

/// The text after NFKC, in lower case, its words separated by one space each.
pub(super) fn normalized(text: &str) -> String {
    // NFKC changes no ASCII text.
    let folded =
        if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfkc().collect::<String>().to_lowercase() };
    let mut normalized = String::with_capacity(folded.len());
    for word in folded.split_whitespace() {
        if !normalized.is_empty() {
            normalized.push(' ');
        }
        normalized.push_str(word);
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn case_width_and_white_space_make_no_difference() {
        let one = cluster_digest("The caf\u{e9}  on\nthe hill");
        for same in
            ["the cafe\u{301} on the hill", " THE CAF\u{c9} on the\u{a0}hill ", "\u{ff34}he caf\u{e9} on the hill"]
        {
            assert_eq!(cluster_digest(same), one, "{same}");
        }
        assert_ne!(cluster_digest("the cafe on the hill"), one);
    }

    proptest! {
        #[test]
        fn the_short_way_for_ascii_is_the_long_way(text in "[ -~\t\n\u{b}\u{c}\r\u{1c}-\u{1f}]{0,40}") {
            let folded = text.nfkc().collect::<String>().to_lowercase();
            prop_assert_eq!(normalized(&text), folded.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}
