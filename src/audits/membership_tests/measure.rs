//! The measurements of one method in a test.

use mia::statistics::{CanaryRankTest, MannWhitney, OrderTest, PublicationTest, TTest, mean_estimate};
use serde::Serialize;
use utoipa::ToSchema;

/// The smallest p-value of a test that draws 9,999 permutations.
pub const LEAST_P_VALUE_DRAWN: f64 = 1e-4;

/// The confidence of the interval of an effect.
pub const EFFECT_CONFIDENCE: f64 = 0.99;

/// The measurements of one method in a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub statistics: TestStatistics,
    /// Clusters, documents, canaries or shards that are compared.
    pub tested: usize,
    /// Documents, canaries or shards without a score of one of their texts; of `dataset`, texts without one.
    pub left_out: usize,
    pub p_value: Option<f64>,
    /// The smallest p-value that this many can give; `None` if there is no bound.
    pub smallest_p_value: Option<f64>,
    /// Effect size of the published texts over the others; `None` for `dataset`.
    pub effect: Option<UnitEffect>,
    /// The smallest effect that this many show at level 0.01 with a power of 0.8; `None` for `dataset`, and if no effect
    /// could be shown.
    pub could_have_found: Option<f64>,
}

/// The statistics of the kind of test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = TestStatistics)]
pub struct TestStatistics {
    /// Of `dataset`: clusters of suspects that are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspects: Option<usize>,
    /// Of `dataset`: clusters of held-out texts that are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<usize>,
    /// Of `dataset`: whether suspects score higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mann_whitney: Option<MannWhitney>,
    /// Of `dataset`: the same by the means; absent where a side has fewer than two clusters, or nothing varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub welch: Option<TTest>,
    /// Of `paired`: whether the public texts score higher than the mean of their private ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permutation: Option<PublicationTest>,
    /// Of `rank`: whether canaries rank higher among their twins than by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_rank: Option<CanaryRankTest>,
    /// Of `order`: whether published orders score higher than random ones, in the unit of the method's score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderTest>,
}

/// The effect that a test estimates: how far published texts score above the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestEffect)]
pub struct UnitEffect {
    pub measure: EffectMeasure,
    pub value: f64,
    /// The expected value under the null hypothesis.
    pub null_value: f64,
    /// Absent where documents, canaries or shards do not vary, or there is one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// By Student's distribution, two-sided, at a confidence of 0.99; absent without a standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Of an effect that is no larger than under the null hypothesis, one-sided.
    pub p_value: f64,
}

/// The measure of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TestEffectMeasure)]
pub enum EffectMeasure {
    /// The mean over documents or shards of the published text's score less the mean score of the others.
    MeanDifference,
    /// The mean over canaries of the share of their twins that they score above.
    ShareOfTwins,
}

impl UnitEffect {
    /// The mean of `values`, one for each document, canary or shard.
    pub fn new(measure: EffectMeasure, values: &[f64], p_value: f64) -> Self {
        let (null_value, bounds) = match measure {
            EffectMeasure::MeanDifference => (0.0, [f64::NEG_INFINITY, f64::INFINITY]),
            EffectMeasure::ShareOfTwins => (0.5, [0.0, 1.0]),
        };
        let estimate = mean_estimate(values, EFFECT_CONFIDENCE);
        let clamped = |bound: f64| bound.clamp(bounds[0], bounds[1]);
        Self {
            measure,
            value: values.iter().sum::<f64>() / values.len() as f64,
            null_value,
            standard_error: estimate.map(|estimate| estimate.standard_error),
            interval: estimate.map(|estimate| estimate.interval.map(clamped)),
            p_value,
        }
    }
}
