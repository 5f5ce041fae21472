//! Tests of hypotheses: how improbable a result would be if the text were not in the training data.
//!
//! Every p-value here is the probability, under the null hypothesis, of a result at least as extreme as the one
//! observed; a test is one-sided unless it says otherwise. A p-value is never NaN, and only one of a continuous
//! distribution can be 0, by underflow.

mod canary_rank;
mod error;
mod kolmogorov_smirnov;
mod mann_whitney;
#[cfg(test)]
mod null_draws;
mod order;
mod permutation;
mod prior_test;
mod sign_flip;
mod student;
mod welch;

pub use canary_rank::{CanaryRank, CanaryRankTest, canary_rank};
pub use error::HypothesisError;
pub use kolmogorov_smirnov::{KolmogorovSmirnov, kolmogorov_smirnov};
pub use mann_whitney::{MannWhitney, mann_whitney};
pub use order::{OrderTest, ShardOrder, order};
pub use prior_test::{PriorTest, PriorTestSums};
pub use sign_flip::{SignFlip, sign_flip};
pub use student::{TTest, one_sample_t};
pub use welch::welch;
