//! The texts of each word.

use super::table::WordTable;

/// The table by word instead of by text, so that all counts of a word are done at once.
pub(super) struct WordColumns {
    /// The words in two texts or more. The others say nothing about a text: where one is scored, its word is in no text
    /// that the model is fitted on.
    words: Vec<u32>,
    /// Where each word ends in `texts`.
    ends: Vec<usize>,
    /// The texts of each word in ascending order, one word after the other.
    texts: Vec<u32>,
    /// The number of words of each text, of whatever frequency.
    pub lengths: Vec<u32>,
    /// The number of distinct words.
    pub vocabulary: usize,
    /// The natural logarithm of 1 more than each number of texts.
    pub logarithms: Vec<f64>,
}

impl WordColumns {
    pub fn new(table: &WordTable) -> Self {
        let mut words = Vec::new();
        let mut ends = Vec::new();
        // Where the next text of each word goes.
        let mut places = vec![None; table.vocabulary()];
        let mut end = 0;
        for ((word, count), place) in (0..).zip(table.text_counts()).zip(&mut places) {
            if count >= 2 {
                *place = Some(end);
                end += count as usize;
                words.push(word);
                ends.push(end);
            }
        }
        let mut texts = vec![0; end];
        let mut lengths = Vec::with_capacity(table.texts());
        for (text, row) in (0..).zip(table.rows()) {
            for &word in row {
                if let Some(place) = &mut places[word as usize] {
                    texts[*place] = text;
                    *place += 1;
                }
            }
            lengths.push(row.len() as u32);
        }
        let logarithms = (0..=table.texts()).map(|count| (count as f64 + 1.0).ln()).collect();
        Self { words, ends, texts, lengths, vocabulary: table.vocabulary(), logarithms }
    }

    /// Each word with its texts.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let texts = starts.zip(&self.ends).map(|(start, &end)| &self.texts[start..end]);
        self.words.iter().copied().zip(texts)
    }
}
