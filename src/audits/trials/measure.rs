//! What one method measures in a test.

use super::document::TrialStatistics;

/// The smallest p-value of a test that draws 9,999 permutations.
pub const LEAST_P_VALUE_DRAWN: f64 = 1e-4;

/// What one method measures in a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub statistics: TrialStatistics,
    /// Clusters, documents, canaries or shards that are compared.
    pub tested: usize,
    /// Documents, canaries or shards without a score of one of their texts; of `dataset`, texts without one.
    pub left_out: usize,
    pub p_value: Option<f64>,
    /// The smallest p-value that so many can give; none where there is no bound.
    pub smallest_p_value: Option<f64>,
}
