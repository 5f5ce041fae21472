//! A packed batch: the ids of all sequences concatenated, so that padding is never multiplied.

use mia::TokenStats;
use std::collections::BTreeMap;
use std::ops::Range;

/// Groups sequences whose lengths lie between the same powers of two, as indices into `lengths`: padded to the longest
/// of its group, no sequence grows to more than twice its length. Empty sequences are in no group.
pub fn similar_lengths(lengths: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
    let mut by_size: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, length) in lengths.enumerate().filter(|(_, length)| *length > 0) {
        by_size.entry(length.next_power_of_two()).or_default().push(place);
    }
    by_size.into_values().collect()
}

/// The statistics of a batch, by sequence.
pub type BatchStats = Vec<Vec<TokenStats>>;

/// Sequences laid end to end.
pub struct PackedBatch {
    pub ids: Vec<u32>,
    /// The rows of each sequence in `ids`.
    pub sequences: Vec<Range<usize>>,
}

impl PackedBatch {
    pub fn new(sequences: &[&[u32]]) -> Self {
        let ids = Vec::with_capacity(sequences.iter().map(|s| s.len()).sum());
        let mut batch = Self { ids, sequences: Vec::with_capacity(sequences.len()) };
        sequences.iter().for_each(|sequence| batch.push(sequence));
        batch
    }

    /// The same sequences in batches of at most `tokens` tokens each; a longer sequence has a batch of its own.
    pub fn split(&self, tokens: usize) -> Vec<Self> {
        let mut batches: Vec<Self> = Vec::new();
        for sequence in &self.sequences {
            let ids = &self.ids[sequence.clone()];
            match batches.last_mut().filter(|batch| batch.ids.len() + ids.len() <= tokens) {
                Some(batch) => batch.push(ids),
                None => batches.push(Self::new(&[ids])),
            }
        }
        batches
    }

    fn push(&mut self, sequence: &[u32]) {
        let start = self.ids.len();
        self.ids.extend_from_slice(sequence);
        self.sequences.push(start..self.ids.len());
    }

    /// The position of every token in its sequence.
    pub fn positions(&self) -> Vec<usize> {
        self.sequences.iter().flat_map(|s| 0..s.len()).collect()
    }

    /// The rows whose next token is scored, all but the last one of each sequence, and the ids of those next tokens.
    pub fn scored(&self) -> (Vec<u32>, Vec<u32>) {
        let rows = self.sequences.iter().flat_map(|s| s.start..s.end.saturating_sub(1).max(s.start));
        rows.map(|row| (row as u32, self.ids[row + 1])).unzip()
    }

    pub fn longest(&self) -> usize {
        self.sequences.iter().map(Range::len).max().unwrap_or(0)
    }
}
