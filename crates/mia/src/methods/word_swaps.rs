//! Copies of a text in which words have changed places, drawn from a seed and the text alone.

use super::range::Fraction;
use crate::random::{index_below, stream};

/// How the copies of a text are made. Of several texts, and in any batch, each has copies of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WordSwaps {
    /// Number of swaps as a share of the words, rounded down, at least one.
    pub share: Fraction,
    /// Number of copies.
    pub copies: usize,
    pub seed: u64,
}

impl WordSwaps {
    /// The copies of a text. Words are what single spaces separate, so two spaces have an empty word between them. Each swap
    /// exchanges two words at different places, which it draws uniformly. All copies are made of the text itself, from one
    /// stream. `None` if the text has fewer than two words, or 2^32 or more.
    pub fn apply(&self, text: &str) -> Option<Vec<String>> {
        let words: Vec<&str> = text.split(' ').collect();
        let count = u32::try_from(words.len()).ok().filter(|count| *count > 1)?;
        let mut random = stream(self.seed, &format!("swapped words {text}"));
        let copy = |_| {
            let mut words = words.clone();
            for _ in 0..self.share.count(words.len()) {
                let first = index_below(&mut random, count);
                let second = index_below(&mut random, count - 1);
                words.swap(first as usize, (second + u32::from(second >= first)) as usize);
            }
            words.join(" ")
        };
        Some((0..self.copies).map(copy).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swaps(share: f64, copies: usize, seed: u64) -> WordSwaps {
        WordSwaps { share: Fraction::new(share).expect("a share"), copies, seed }
    }

    fn sorted(text: &str) -> Vec<&str> {
        let mut words: Vec<&str> = text.split(' ').collect();
        words.sort_unstable();
        words
    }

    #[test]
    fn copies_have_the_words_of_the_text_in_another_order() {
        let text = "The brass clock struck nine  in Fallowfield.";
        let copies = swaps(0.3, 5, 0).apply(text).expect("two words");
        assert_eq!(copies.len(), 5);
        assert!(copies.iter().all(|copy| sorted(copy) == sorted(text)), "{copies:?}");
        // Two swaps of 8 words, one of them empty: at most four places change.
        let moved = |copy: &String| copy.split(' ').zip(text.split(' ')).filter(|(a, b)| a != b).count();
        assert!(copies.iter().all(|copy| moved(copy) <= 4), "{copies:?}");
        assert_eq!(swaps(0.3, 2, 0).apply(text).expect("two words"), copies[..2]);
        assert_ne!(swaps(0.3, 5, 1).apply(text).expect("two words"), copies);
    }

    /// The draws of docs/draws.md, made by its code in Python.
    #[test]
    fn draws_are_those_of_the_documentation() {
        assert_eq!(swaps(0.3, 2, 7).apply("a b c d e f g").expect("seven words"), ["a b f d g c e", "e b c d a g f"]);
    }

    #[test]
    fn the_only_swap_of_two_words_exchanges_them() {
        assert_eq!(swaps(0.1, 3, 4).apply("one two").expect("two words"), ["two one"; 3]);
        assert_eq!(swaps(1.0, 1, 4).apply("one two").expect("two words"), ["one two"]);
        assert_eq!(swaps(0.3, 5, 0).apply("one"), None);
        assert_eq!(swaps(0.3, 5, 0).apply(""), None);
    }
}
