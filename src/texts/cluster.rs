//! Which texts are one for statistics. Texts are one cluster where they are equal after NFKC, in lower case, and with every run of
//! white space made one space (`methods.md`, "cluster"). Near-duplicates are not recognized.

use super::digest::TextDigest;
use unicode_normalization::UnicodeNormalization;

/// The digest that all texts of a cluster share.
#[must_use]
pub fn cluster_digest(text: &str) -> TextDigest {
    let folded = text.nfkc().collect::<String>().to_lowercase();
    TextDigest::new(&folded.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::cluster_digest;

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
}
