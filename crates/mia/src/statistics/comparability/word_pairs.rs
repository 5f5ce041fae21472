//! Pairs of words that follow each other.

use crate::texts::{hash_bytes, words};

/// Places for the pairs of a text: about a hundred for each of its words where texts are short.
const SLOTS_PER_TEXT: usize = 4096;

const MIN_SLOTS: usize = 1 << 16;
const MAX_SLOTS: usize = 1 << 28;

/// The maximum number of pairs that count of all texts together, as many of each text.
const MAX_PAIRS: usize = 16_000_000;

/// The number of pairs that count of a text in any case, and at most.
const MIN_TEXT_PAIRS: usize = 16;
const MAX_TEXT_PAIRS: usize = 1000;

/// Which pairs of adjacent words (lower case, `\w+`) occur in one text alone, of texts that are added one by one.
///
/// Words in another order have few pairs that other texts have as well. Of each text the first distinct pairs count, as
/// many as 16 million divided by the number of texts, at most 1,000 and at least 16. A pair is known by its place among up
/// to 2^28, so that of 10 million pairs one in 27 is taken for another one. Takes 4 bytes for each pair of each text, and up
/// to 64 MiB.
#[derive(Clone, Debug)]
pub struct WordPairTable {
    max_text_pairs: usize,
    mask: u64,
    /// A bit for each place: whether a text has it, and whether two have.
    seen: Vec<u64>,
    shared: Vec<u64>,
    /// The places of all texts, one text after the other.
    places: Vec<u32>,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl WordPairTable {
    /// An empty table for so many texts.
    #[must_use]
    pub fn new(texts: usize) -> Self {
        let slots = texts.saturating_mul(SLOTS_PER_TEXT).clamp(MIN_SLOTS, MAX_SLOTS).next_power_of_two();
        Self {
            max_text_pairs: (MAX_PAIRS / texts.max(1)).clamp(MIN_TEXT_PAIRS, MAX_TEXT_PAIRS),
            mask: slots as u64 - 1,
            seen: vec![0; slots / 64],
            shared: vec![0; slots / 64],
            places: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds the next text. O(n log n) in its length.
    pub fn add(&mut self, text: &str) {
        let start = self.places.len();
        let mut previous: Option<String> = None;
        // Repeated pairs are counted once, so a text may have more of them than count.
        for word in words(text).take(2 * self.max_text_pairs) {
            let word = word.to_lowercase();
            if let Some(previous) = previous {
                // No word has a blank.
                let hash = hash_bytes(format!("{previous} {word}").as_bytes());
                self.places.push((hash & self.mask) as u32);
            }
            previous = Some(word);
        }
        self.places[start..].sort_unstable();
        let mut kept = start;
        for place in start..self.places.len() {
            if kept == start || self.places[kept - 1] != self.places[place] {
                self.places[kept] = self.places[place];
                kept += 1;
            }
        }
        self.places.truncate(kept.min(start + self.max_text_pairs));
        for &place in &self.places[start..] {
            let (word, bit) = (place as usize / 64, 1 << (place % 64));
            self.shared[word] |= self.seen[word] & bit;
            self.seen[word] |= bit;
        }
        self.ends.push(self.places.len());
    }

    /// The number of texts.
    #[must_use]
    pub fn texts(&self) -> usize {
        self.ends.len()
    }

    /// The share of each text's distinct pairs that no other text has; `None` for a text without pairs.
    pub(super) fn unique_shares(&self) -> impl Iterator<Item = Option<f64>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let is_unique = |place: &&u32| self.shared[**place as usize / 64] >> (**place % 64) & 1 == 0;
        let share = move |(start, &end): (usize, &usize)| {
            let places = &self.places[start..end];
            (!places.is_empty()).then(|| places.iter().filter(is_unique).count() as f64 / places.len() as f64)
        };
        starts.zip(&self.ends).map(share)
    }
}

#[cfg(test)]
mod tests {
    use super::WordPairTable;

    #[test]
    fn the_share_of_pairs_that_no_other_text_has() {
        let mut table = WordPairTable::new(4);
        for text in ["The end of the world", "the END, of it the end", "word", "of world the end"] {
            table.add(text);
        }
        // "the end" and "end of" are shared; "the end" counts once in the second text.
        let expected = [Some(2.0 / 4.0), Some(2.0 / 4.0), None, Some(2.0 / 3.0)];
        assert_eq!(table.unique_shares().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn of_a_long_text_a_part_counts() {
        let mut table = WordPairTable::new(1_000_000);
        table.add(&(0..500).map(|word| format!("w{word} ")).collect::<String>());
        assert_eq!(table.places.len(), 16);
    }
}
