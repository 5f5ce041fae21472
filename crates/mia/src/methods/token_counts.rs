//! Token counts of a reference corpus.

use std::sync::Arc;

/// Token counts under the id that the settings give them.
#[derive(Clone, Debug)]
pub struct NamedCounts {
    pub id: Arc<str>,
    pub table: Arc<TokenCounts>,
}

/// Counts of the tokens of a corpus, and the token frequencies that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenCounts {
    /// By token id; as many as the tokenizer has ids.
    counts: Vec<u64>,
    /// Their sum.
    tokens: u64,
}

/// Why counts give no frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenCountsError {
    /// No token was seen.
    #[error("no token was counted")]
    Empty,
    /// Their sum is no `u64`.
    #[error("the counts add up to more than can be counted")]
    Overflow,
}

impl TokenCounts {
    /// Takes the counts by token id.
    pub fn new(counts: Vec<u64>) -> Result<Self, TokenCountsError> {
        let sum = counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        match sum.ok_or(TokenCountsError::Overflow)? {
            0 => Err(TokenCountsError::Empty),
            tokens => Ok(Self { counts, tokens }),
        }
    }

    /// Number of tokens in the corpus.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The frequency of a token, smoothed as by DC-PDD (Zhang et al. 2024): `(count + 1) / (N + V)` with N tokens in the
    /// corpus and V entries in the table. It is above 0 and at most 1; an id beyond the table was never seen.
    pub fn frequency(&self, id: u32) -> f64 {
        let count = usize::try_from(id).ok().and_then(|index| self.counts.get(index)).copied().unwrap_or(0);
        (count as f64 + 1.0) / (self.tokens as f64 + self.counts.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_those_of_the_worked_example() {
        let table = TokenCounts::new(vec![50, 30, 15, 5]).unwrap();
        assert_eq!(table.tokens(), 100);
        let expected = [0.490384615384615, 0.298076923076923, 0.153846153846154, 0.0576923076923077];
        for (id, expected) in (0..).zip(expected) {
            // The example is given to 15 digits.
            assert!((table.frequency(id) - expected).abs() < 1e-15, "{id}: {}", table.frequency(id));
        }
    }

    #[test]
    fn what_was_never_seen_has_the_least_frequency() {
        let table = TokenCounts::new(vec![0, 3]).unwrap();
        assert_eq!(table.frequency(0), 0.2);
        assert_eq!(table.frequency(2), 0.2);
        assert_eq!(table.frequency(u32::MAX), 0.2);
        assert_eq!(TokenCounts::new(vec![7]).unwrap().frequency(0), 1.0);
    }

    #[test]
    fn counts_without_a_sum_are_refused() {
        assert_eq!(TokenCounts::new(vec![]), Err(TokenCountsError::Empty));
        assert_eq!(TokenCounts::new(vec![0, 0]), Err(TokenCountsError::Empty));
        assert_eq!(TokenCounts::new(vec![u64::MAX, 1]), Err(TokenCountsError::Overflow));
        let most = TokenCounts::new(vec![u64::MAX, 0]).unwrap();
        assert!(most.frequency(0) <= 1.0 && most.frequency(1) > 0.0);
    }
}
