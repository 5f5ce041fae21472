//! Pairs of words that follow each other, and the order that they are in.

use crate::statistics::lists::Lists;
use crate::texts::{hash_bytes, words};

/// Places for the pairs of a text: about thirty for each of its words where texts are short.
const SLOTS_PER_TEXT: usize = 4096;

const MIN_SLOTS: usize = 1 << 16;
const MAX_SLOTS: usize = 1 << 27;

/// The maximum number of pairs that count of all texts together, as many of each text.
const MAX_PAIRS: usize = 16_000_000;

/// The number of pairs that count of a text in any case, and at most.
const MIN_TEXT_PAIRS: usize = 16;
const MAX_TEXT_PAIRS: usize = 1000;

/// In how many texts each pair of adjacent words (lower case, `\w+`) occurs, of texts that are added one by one.
///
/// The number of pairs that are kept of a text is 16 million divided by the number of texts, at least 16 and at most
/// 1,000. A pair is identified by one of up to 2^27 hash slots: of 10 million pairs, one in 14 collides with another.
/// Counts saturate at 255 texts. Takes 4 bytes for each pair of each text, and up to 128 MiB.
#[derive(Clone, Debug)]
pub struct WordPairTable {
    max_text_pairs: usize,
    mask: u32,
    /// The number of texts that have each place.
    texts: Vec<u8>,
    /// The places of each text in ascending order. Places of a pair and of the same words the other way round differ in
    /// their lowest bit.
    places: Lists<u32>,
}

impl WordPairTable {
    /// An empty table for `texts` texts.
    #[must_use]
    pub fn new(texts: usize) -> Self {
        let slots = texts.saturating_mul(SLOTS_PER_TEXT).clamp(MIN_SLOTS, MAX_SLOTS).next_power_of_two();
        Self {
            max_text_pairs: (MAX_PAIRS / texts.max(1)).clamp(MIN_TEXT_PAIRS, MAX_TEXT_PAIRS),
            mask: slots as u32 - 1,
            texts: vec![0; slots],
            places: Lists::default(),
        }
    }

    /// Adds the next text. O(n log n) in its length.
    pub fn add(&mut self, text: &str) {
        let mut places = Vec::new();
        let mut previous: Option<String> = None;
        // Repeated pairs are counted once, so a text may have more of them than count.
        for word in words(text).take(2 * self.max_text_pairs) {
            let word = word.to_lowercase();
            if let Some(previous) = previous.filter(|previous| *previous != word) {
                places.push(self.place(&previous, &word));
            }
            previous = Some(word);
        }
        places.sort_unstable();
        places.dedup();
        places.truncate(self.max_text_pairs);
        for &place in &places {
            let texts = &mut self.texts[place as usize];
            *texts = texts.saturating_add(1);
        }
        self.places.add(places);
    }

    /// The place of a pair of different words.
    fn place(&self, first: &str, second: &str) -> u32 {
        let (low, high) = if first < second { (first, second) } else { (second, first) };
        // No word has a blank.
        let hash = hash_bytes(format!("{low} {high}").as_bytes()) as u32;
        (hash & self.mask & !1) | u32::from(first > second)
    }

    /// The number of texts.
    pub(super) fn texts(&self) -> usize {
        self.places.len()
    }

    /// The agreement of each text's word order with that of the other texts, in [-1, 1]. A pair's log-ratio is the
    /// logarithm of (1 + the number of other texts with the pair) / (1 + the number of other texts with the two words
    /// reversed); the agreement is the sum of these over the text's distinct pairs, divided by the sum of their absolute
    /// values. It is about 0 for words in random order, and `None` where all log-ratios are 0.
    pub(super) fn orders(&self) -> impl Iterator<Item = Option<f64>> {
        self.places.iter().map(|places| self.order(places))
    }

    fn order(&self, places: &[u32]) -> Option<f64> {
        let texts = |place: u32| f64::from(self.texts[place as usize]);
        let log_ratio = |&place: &u32| {
            let reversed = place ^ 1;
            let in_this = f64::from(u8::from(places.binary_search(&reversed).is_ok()));
            (texts(place) / (texts(reversed) - in_this + 1.0)).ln()
        };
        let (sum, absolute) = (places.iter().map(log_ratio))
            .fold((0.0, 0.0), |(sum, absolute), ratio: f64| (sum + ratio, absolute + ratio.abs()));
        (absolute > 0.0).then_some(sum / absolute)
    }
}

#[cfg(test)]
mod tests {
    use super::WordPairTable;

    #[test]
    fn the_usual_order_is_that_of_the_other_texts() {
        let mut table = WordPairTable::new(4);
        for text in ["The end of the world", "the END, of it the end", "word word", "of world the end"] {
            table.add(text);
        }
        let orders: Vec<Option<f64>> = table.orders().collect();
        // By hand: "the end" is in two other texts, "end of" in one, "of the" in none, "the world" in none and reversed in
        // one.
        let (two, one, reversed) = (3.0_f64.ln(), 2.0_f64.ln(), 0.5_f64.ln());
        let expected = [
            Some((two + one + reversed) / (two + one - reversed)),
            // "the end", "end of"; "of it" and "it the" are in no other text in either order.
            Some(1.0),
            None,
            // "the end"; "world the", which one has reversed; "of world".
            Some((two + reversed) / (two - reversed)),
        ];
        for (order, expected) in orders.iter().zip(expected) {
            assert_eq!(order.is_some(), expected.is_some());
            assert!((order.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 1e-15, "{order:?} {expected:?}");
        }
    }

    #[test]
    fn a_text_with_both_orders_counts_neither_for_itself() {
        let mut table = WordPairTable::new(1);
        table.add("to be to");
        assert_eq!(table.orders().collect::<Vec<_>>(), [None]);
    }

    #[test]
    fn of_a_long_text_a_part_counts() {
        let mut table = WordPairTable::new(1_000_000);
        table.add(&(0..500).map(|word| format!("w{word} ")).collect::<String>());
        assert_eq!(table.places.items.len(), 16);
    }
}
