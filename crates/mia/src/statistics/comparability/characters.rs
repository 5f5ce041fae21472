//! The character n-grams of texts.

use crate::statistics::ngrams::{NgramSets, SeparatingNgram};

/// The maximum number of characters that are read of a text.
const MAX_TEXT_CHARACTERS: usize = 4000;

/// The maximum number of characters that are read of all texts together.
const MAX_CHARACTERS: usize = 40_000_000;

/// The number of characters that are read of a text in any case.
const MIN_TEXT_CHARACTERS: usize = 100;

/// Characters of the longest n-gram.
const LONGEST: usize = 3;

/// Bits of a character in a packed n-gram.
const CHARACTER_BITS: u32 = 21;

/// The maximum number of distinct n-grams of all texts; those that appear later are ignored.
const MAX_NGRAMS: u32 = 1 << 20;

/// The sets of character 1- to 3-grams of texts, which are added one by one.
///
/// Characters count as they are: upper and lower case, punctuation and every white space character differ. Of each text
/// the first 4,000 characters count, or as many as 40 million divided by the number of texts, at least 100. The first 2^20
/// distinct n-grams count. Takes 4 bytes for each n-gram of each text, and about 30 for each distinct one of all texts.
#[derive(Clone, Debug)]
pub struct CharacterTable {
    max_characters: usize,
    /// By n-gram, as [`packed`] has it.
    ngrams: Vec<u64>,
    pub(super) sets: NgramSets,
}

/// The distinct n-grams of a text in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterNgrams(Vec<u64>);

impl CharacterTable {
    /// An empty table for `texts` texts; the more there are, the fewer characters of each are read.
    pub fn new(texts: usize) -> Self {
        Self {
            max_characters: (MAX_CHARACTERS / texts.max(1)).clamp(MIN_TEXT_CHARACTERS, MAX_TEXT_CHARACTERS),
            ngrams: Vec::new(),
            sets: NgramSets::new(MAX_NGRAMS),
        }
    }

    /// The n-grams of a text. O(n log n) in its length.
    pub fn ngrams(&self, text: &str) -> CharacterNgrams {
        let characters: Vec<char> = text.chars().take(self.max_characters).collect();
        let mut ngrams: Vec<u64> = (1..=LONGEST).flat_map(|length| characters.windows(length).map(packed)).collect();
        ngrams.sort_unstable();
        ngrams.dedup();
        CharacterNgrams(ngrams)
    }

    /// Adds the n-grams of the next text.
    pub fn add(&mut self, ngrams: &CharacterNgrams) {
        let mut ids = Vec::with_capacity(ngrams.0.len());
        for &ngram in &ngrams.0 {
            let Some(id) = self.sets.id(ngram) else { continue };
            if id as usize == self.ngrams.len() {
                self.ngrams.push(ngram);
            }
            ids.push(id);
        }
        self.sets.add(ids);
    }

    /// The share of each text's distinct 3-grams that no other text has, which is higher where characters were misread or
    /// mistyped. `None` for a text without 3-grams, and for all texts where there are more distinct n-grams than are
    /// kept: the shares would then depend on the order of the texts.
    pub(super) fn unique_shares(&self) -> impl Iterator<Item = Option<f64>> {
        let is_longest = |id: u32| self.ngrams[id as usize] >> (CHARACTER_BITS * (LONGEST as u32 - 1)) > 0;
        let shares = self.sets.unique_shares(is_longest);
        shares.map(|share| share.filter(|_| self.ngrams.len() < MAX_NGRAMS as usize))
    }

    /// The n-grams whose frequencies differ most between the two lists.
    pub(super) fn separating(&self, labels: &[bool]) -> Vec<SeparatingNgram> {
        self.sets.separating(labels, |id| Some(unpacked(self.ngrams[id as usize])))
    }
}

/// One to three characters as a number, the first one in the highest bits.
fn packed(characters: &[char]) -> u64 {
    characters.iter().fold(0, |packed, &character| packed << CHARACTER_BITS | (u64::from(u32::from(character)) + 1))
}

fn unpacked(ngram: u64) -> String {
    let character = |place: usize| {
        let bits = ngram >> (CHARACTER_BITS * place as u32) & ((1 << CHARACTER_BITS) - 1);
        char::from_u32((bits as u32).checked_sub(1)?)
    };
    (0..LONGEST).rev().filter_map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(texts: &[&str]) -> CharacterTable {
        let mut table = CharacterTable::new(texts.len());
        for text in texts {
            let ngrams = table.ngrams(text);
            table.add(&ngrams);
        }
        table
    }

    #[test]
    fn ngrams_are_packed_in_their_order_and_unpacked() {
        for ngram in ["a", "ab", "aba", "\u{0}", "\u{0}\u{0}", "\u{10ffff}\n ", "  "] {
            let characters: Vec<char> = ngram.chars().collect();
            assert_eq!(unpacked(packed(&characters)), ngram);
        }
        assert_ne!(packed(&['\0']), packed(&['\0', '\0']));
    }

    #[test]
    fn a_text_is_a_set_of_ngrams() {
        let ngrams = CharacterTable::new(1).ngrams("aab");
        assert_eq!(ngrams.0.iter().map(|&ngram| unpacked(ngram)).collect::<Vec<_>>(), ["a", "b", "aa", "ab", "aab"]);
    }

    #[test]
    fn what_separates_is_listed_with_its_shares() {
        let texts = ["one  two", "the  end", "a  b", "one two", "the end", "a b"];
        let labels = [true, true, true, false, false, false];
        let listed = table(&texts).separating(&labels);
        assert_eq!(listed[0], SeparatingNgram { ngram: "  ".to_owned(), members: 1.0, non_members: 0.0 });
        assert_eq!(listed.len(), 1);
    }

    #[test]
    fn a_3_gram_of_one_text_is_unique() {
        let shares: Vec<Option<f64>> = table(&["abcd", "bcde", "ab", "bcdbcd"]).unique_shares().collect();
        // abc of abc and bcd; cde of bcd and cde; cdb and dbc of bcd, cdb and dbc.
        assert_eq!(shares, [Some(0.5), Some(0.5), None, Some(2.0 / 3.0)]);
    }

    #[test]
    fn shares_that_depend_on_the_order_of_texts_are_not_given() {
        let mut full = table(&["abcd", "bcde"]);
        full.ngrams.resize(MAX_NGRAMS as usize, packed(&['x']));
        assert_eq!(full.unique_shares().collect::<Vec<_>>(), [None, None]);
    }

    #[test]
    fn long_texts_are_read_in_part() {
        let text: String = ('a'..).take(5000).collect();
        for (texts, characters) in [(1_000_000, 100), (2, 4000)] {
            assert_eq!(CharacterTable::new(texts).ngrams(&text).0.len(), 3 * characters - 3);
        }
    }
}
