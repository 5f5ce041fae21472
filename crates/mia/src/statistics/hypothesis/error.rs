//! Why a test has no result.

use thiserror::Error;

/// Why a test has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HypothesisError {
    /// There is nothing to test, or nothing to compare with.
    #[error("there are no values; a test requires at least one on each side")]
    NoValues,
    /// A value is NaN or infinite, or a sum of values is.
    #[error("a value is not a finite number, or the sum of the values is not")]
    NonFinite,
    /// A rank is not among those possible.
    #[error("rank {rank} of a canary with {twins} twins: must be from 1 to the number of twins plus 1")]
    Rank { rank: usize, twins: usize },
    /// The exact distribution would take too long.
    #[error("{canaries} canaries with a sum of ranks of {rank_sum}: the product must be at most {limit}")]
    TooManyRanks { canaries: usize, rank_sum: u64, limit: u64 },
}
