//! Counts of the character n-grams of texts.

use super::logistic::FeatureRows;
use crate::statistics::separating::{SeparatingNgram, separating};
use std::collections::HashMap;

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
const MAX_NGRAMS: usize = 1 << 20;

/// Counts of character 1- to 3-grams by text. Texts are added one by one.
///
/// Characters count as they are: upper and lower case, punctuation and every white space character differ. Of each text
/// the first 4,000 characters count, or as many as 40 million divided by the number of texts, at least 100. A text is
/// the vector of the square roots of its counts, scaled to length 1. The first 2^20 distinct n-grams count. Takes 5
/// bytes for each distinct n-gram of each text, and about 30 for each distinct one of all texts.
#[derive(Clone, Debug)]
pub struct CharacterTable {
    max_characters: usize,
    ids: HashMap<u64, u32>,
    /// By n-gram, as [`packed`] has it.
    ngrams: Vec<u64>,
    /// The n-grams of all texts, one text after the other.
    text_ngrams: Vec<u32>,
    /// The count of each n-gram in its text, at most 255.
    counts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
}

/// The n-grams of a text with their counts, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterCounts(Vec<(u64, u8)>);

impl CharacterTable {
    /// An empty table for `texts` texts; the more there are, the fewer characters of each are read.
    #[must_use]
    pub fn new(texts: usize) -> Self {
        Self {
            max_characters: (MAX_CHARACTERS / texts.max(1)).clamp(MIN_TEXT_CHARACTERS, MAX_TEXT_CHARACTERS),
            ids: HashMap::new(),
            ngrams: Vec::new(),
            text_ngrams: Vec::new(),
            counts: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Counts the n-grams of a text. O(n log n) in its length.
    #[must_use]
    pub fn count(&self, text: &str) -> CharacterCounts {
        let characters: Vec<char> = text.chars().take(self.max_characters).collect();
        let mut ngrams: Vec<u64> = (1..=LONGEST).flat_map(|length| characters.windows(length).map(packed)).collect();
        ngrams.sort_unstable();
        let count = |same: &[u64]| (same[0], u8::try_from(same.len()).unwrap_or(u8::MAX));
        CharacterCounts(ngrams.chunk_by(|a, b| a == b).map(count).collect())
    }

    /// Adds the counts of the next text.
    pub fn add(&mut self, counts: &CharacterCounts) {
        for &(ngram, count) in &counts.0 {
            let Some(id) = self.id(ngram) else { continue };
            self.text_ngrams.push(id);
            self.counts.push(count);
        }
        self.ends.push(self.text_ngrams.len());
    }

    fn id(&mut self, ngram: u64) -> Option<u32> {
        if self.ngrams.len() == MAX_NGRAMS {
            return self.ids.get(&ngram).copied();
        }
        let next = self.ngrams.len() as u32;
        let id = *self.ids.entry(ngram).or_insert(next);
        if id == next {
            self.ngrams.push(ngram);
        }
        Some(id)
    }

    /// The number of texts.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.ends.len()
    }

    fn row(&self, text: usize) -> impl Iterator<Item = (usize, u8)> {
        let start = if text == 0 { 0 } else { self.ends[text - 1] };
        let places = start..self.ends[text];
        self.text_ngrams[places.clone()].iter().zip(&self.counts[places]).map(|(&id, &count)| (id as usize, count))
    }

    /// The share of each text's distinct 3-grams that no other text has, which is higher where characters were misread or
    /// mistyped. `None` for a text without 3-grams, and for all texts where there are more distinct n-grams than are
    /// kept: the shares would then depend on the order of the texts.
    pub(super) fn unique_shares(&self) -> impl Iterator<Item = Option<f64>> {
        let mut texts = vec![0_u32; self.ngrams.len()];
        self.text_ngrams.iter().for_each(|&id| texts[id as usize] += 1);
        let is_longest = |id: usize| self.ngrams[id] >> (CHARACTER_BITS * (LONGEST as u32 - 1)) > 0;
        (0..self.texts()).map(move |text| {
            let counted = self.row(text).filter(|(id, _)| is_longest(*id));
            let (unique, all) =
                counted.fold((0, 0), |(unique, all), (id, _)| (unique + usize::from(texts[id] == 1), all + 1));
            (all > 0 && self.ngrams.len() < MAX_NGRAMS).then(|| unique as f64 / all as f64)
        })
    }

    /// The n-grams whose frequencies differ most between the two lists.
    pub(super) fn separating(&self, labels: &[bool]) -> Vec<SeparatingNgram> {
        let ids = |text: usize| self.row(text).map(|(id, _)| id);
        separating(labels, self.ngrams.len(), ids, |id| Some(unpacked(self.ngrams[id])))
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

/// The texts as rows of a regression.
pub(super) struct CharacterRows<'a> {
    table: &'a CharacterTable,
    /// The square root of each count.
    roots: Vec<f64>,
    /// The Euclidean length of each row, by which it is divided.
    lengths: Vec<f64>,
}

impl<'a> CharacterRows<'a> {
    pub fn new(table: &'a CharacterTable) -> Self {
        let length = |text: usize| table.row(text).map(|(_, count)| f64::from(count)).sum::<f64>().sqrt().max(1.0);
        Self {
            roots: (0..=u8::MAX).map(|count| f64::from(count).sqrt()).collect(),
            lengths: (0..table.texts()).map(length).collect(),
            table,
        }
    }
}

impl FeatureRows for CharacterRows<'_> {
    fn width(&self) -> usize {
        self.table.ngrams.len()
    }

    fn dot(&self, row: usize, weights: &[f64]) -> f64 {
        let sum: f64 = self.table.row(row).map(|(id, count)| self.roots[usize::from(count)] * weights[id]).sum();
        sum / self.lengths[row]
    }

    fn add_to(&self, row: usize, factor: f64, sums: &mut [f64]) {
        let factor = factor / self.lengths[row];
        self.table.row(row).for_each(|(id, count)| sums[id] += factor * self.roots[usize::from(count)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(texts: &[&str]) -> CharacterTable {
        let mut table = CharacterTable::new(texts.len());
        for text in texts {
            let counts = table.count(text);
            table.add(&counts);
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
    fn a_text_is_a_vector_of_length_one() {
        let table = table(&["aab", "", "A  b"]);
        let rows = CharacterRows::new(&table);
        for (row, expected) in [(0, 1.0), (1, 0.0), (2, 1.0)] {
            let mut sums = vec![0.0; rows.width()];
            rows.add_to(row, 1.0, &mut sums);
            assert!((rows.dot(row, &sums) - expected).abs() < 1e-12);
        }
        // a twice, b, aa, ab, aab.
        let counts = table.count("aab").0;
        assert_eq!(counts.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [2, 1, 1, 1, 1]);
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
        full.ngrams.resize(MAX_NGRAMS, packed(&['x']));
        assert_eq!(full.unique_shares().collect::<Vec<_>>(), [None, None]);
    }

    #[test]
    fn long_texts_are_read_in_part() {
        let table = CharacterTable::new(1_000_000);
        assert_eq!(
            table.count(&"x".repeat(500)),
            CharacterCounts(vec![(packed(&['x']), 100), (packed(&['x'; 2]), 99), (packed(&['x'; 3]), 98)])
        );
        assert_eq!(CharacterTable::new(2).count(&"x".repeat(5000)).0[0].1, 255);
    }
}
