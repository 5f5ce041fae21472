//! Tests of hypotheses: how improbable a result would be if the text were not in the training data.
//!
//! Every p-value here is the probability, under the null hypothesis, of a result at least as extreme as the one
//! observed; a test is one-sided unless it says otherwise. A p-value is never NaN, and only one of a continuous
//! distribution can be 0, by underflow.

mod canary_rank;
mod kolmogorov_smirnov;
mod mann_whitney;
mod order;
mod prior_test;
mod publication;
mod student;

pub use canary_rank::{CanaryRank, CanaryRankTest, canary_rank, detectable_share};
pub use kolmogorov_smirnov::{KolmogorovSmirnov, kolmogorov_smirnov};
pub use mann_whitney::{MannWhitney, detectable_auroc, mann_whitney};
pub use order::{OrderTest, ShardOrder, order};
pub use prior_test::{PriorTest, PriorTestSums};
pub use publication::{DocumentScores, PublicationTest, publication_test};
pub use student::{MeanEstimate, TTest, mean_estimate, welch};

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
    /// A list is too short to be halved.
    #[error(
        "a list has fewer than 4 clusters with scores of all methods, too few to learn on one half and test on the other"
    )]
    TooFewForHalves,
    /// A rank is not among those possible.
    #[error("rank {rank} of a canary with {twins} twins: must be from 1 to the number of twins plus 1")]
    Rank { rank: usize, twins: usize },
    /// The exact distribution would take too long.
    #[error("{canaries} canaries with a sum of ranks of {rank_sum}: the product must be at most {limit}")]
    TooManyRanks { canaries: usize, rank_sum: u64, limit: u64 },
}
