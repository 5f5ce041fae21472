//! Building blocks of the formulas of the methods.
//!
//! Every method is made of means over tokens, each one weighted sum divided by one number ([`weighted_sum`]): most methods
//! are one such mean, some a difference or a ratio of means over several texts. So one path serves them all with and
//! without weights, and an alpha of 0 gives the base score bit for bit: it multiplies the same terms by exactly 1 and
//! adds them in the same order.

mod error;
mod input;
mod values;
mod weighted_sum;

pub use error::ScoreError;
pub use input::{FormulaInput, Outcome, TextStats};
pub use values::{finite, finite_variance, log_probabilities, lowest};
pub use weighted_sum::Explanation;
