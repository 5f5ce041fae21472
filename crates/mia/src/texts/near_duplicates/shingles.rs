//! The runs of words by which two texts are compared.

use crate::texts::cluster::normalized;
use crate::texts::hash::{hash_bytes, hash_numbers};

/// The number of words in a shingle.
const WORDS: usize = 5;

/// The set of the shingles of a text: the hashes of every five successive words of its normalised form. A text of one
/// to four words has a single shingle, all of them; a text without words has none.
///
/// Words are what white space separates, so punctuation counts, and a text in a script without spaces has few. Takes 8
/// bytes a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shingles {
    /// In ascending order, each once.
    hashes: Box<[u64]>,
}

impl Shingles {
    /// The shingles of a text. O(n log n).
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut hashes = shingle_hashes(&normalized(text));
        hashes.sort_unstable();
        hashes.dedup();
        Self { hashes: hashes.into() }
    }

    /// Returns true if the Jaccard similarity of two texts, the share of their shingles that both have, is at least 0.8;
    /// false if neither has any. Exact, in integers, but for shingles that share a hash of 64 bits. O(n).
    #[must_use]
    pub fn similar(&self, other: &Self) -> bool {
        let (one, other) = (&self.hashes, &other.hashes);
        let enough = |both: usize| 5 * both >= 4 * (one.len() + other.len() - both);
        // The smaller set may be in the other one at best.
        let possible = enough(one.len().min(other.len()));
        possible && !one.is_empty() && enough(common(one, other))
    }
}

/// The hashes of the shingles of a normalised text, in order and with repetitions.
pub(super) fn shingle_hashes(normalized: &str) -> Vec<u64> {
    let words: Vec<u64> = normalized.split_ascii_whitespace().map(|word| hash_bytes(word.as_bytes())).collect();
    words.windows(words.len().clamp(1, WORDS)).map(hash_numbers).collect()
}

/// The number of items that two ascending lists share.
fn common(one: &[u64], other: &[u64]) -> usize {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        both += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_short_text_is_one_shingle() {
        let number = |text| Shingles::new(text).hashes.len();
        assert_eq!(
            [number(""), number("a"), number("a b c d"), number("a b c d e"), number("a b c d e f")],
            [0, 1, 1, 1, 2]
        );
        let similar = |one, other| Shingles::new(one).similar(&Shingles::new(other));
        assert!(similar("One  two", "one TWO") && !similar("one two", "two one") && !similar("one", "one two"));
        assert!(!similar("", "") && !similar("", "a"));
        // A set: the repetition adds nothing.
        assert!(similar("a a a a a", "a a a a a a a a"));
    }

    /// Nine shingles against eight of them is 8 / 9; ten with eight in common is 8 / 10, and with seven 7 / 11.
    #[test]
    fn the_threshold_is_included() {
        let text = |words: &[u32]| words.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let similar = |one: &[u32], other: &[u32]| Shingles::new(&text(one)).similar(&Shingles::new(&text(other)));
        let words: Vec<u32> = (0..14).collect();
        assert!(similar(&words, &words[2..]));
        assert!(!similar(&words, &words[3..]));
        assert!(similar(&words[2..], &words));
    }

    proptest! {
        #[test]
        fn the_similarity_is_that_of_sets(
            one in prop::collection::vec(0_u8..4, 0..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 0..3)
        ) {
            let mut other = one.clone();
            for (place, word) in changes {
                if !other.is_empty() {
                    let place = place.index(other.len());
                    other[place] = word;
                }
            }
            let text = |words: &[u8]| words.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
            let set = |words: &[u8]| -> HashSet<Vec<u8>> {
                words.windows(words.len().clamp(1, 5)).map(<[u8]>::to_vec).collect()
            };
            let (a, b) = (set(&one), set(&other));
            let union = a.union(&b).count();
            let expected = union > 0 && a.intersection(&b).count() * 10 >= union * 8;
            prop_assert_eq!(Shingles::new(&text(&one)).similar(&Shingles::new(&text(&other))), expected);
        }
    }
}
