//! Summary of one method over several seeds.

use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// Methods that differ by their seeds alone.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeedSummary {
    /// Their labels, in the order of the request.
    #[schema(value_type = Vec<String>)]
    pub labels: Vec<Arc<str>>,
    pub seeds: Vec<u64>,
    pub auroc: SeedSpread,
    /// AUROC minus that of the score before tuning, on the same samples; absent where one has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<SeedSpread>,
}

/// A number for each seed.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeedSpread {
    pub mean: f64,
    /// With n - 1 in the denominator.
    pub standard_deviation: f64,
    /// In the order of the seeds.
    pub each: Vec<f64>,
}

impl SeedSpread {
    pub(super) fn new(each: Vec<f64>) -> Self {
        let count = each.len() as f64;
        let mean = each.iter().sum::<f64>() / count;
        let squares: f64 = each.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self { mean, standard_deviation: (squares / (count - 1.0)).sqrt(), each }
    }
}

#[cfg(test)]
mod tests {
    use super::SeedSpread;

    #[test]
    fn mean_and_deviation_are_those_of_a_sample() {
        let spread = SeedSpread::new(vec![0.5, 0.7, 0.9]);
        assert!((spread.mean - 0.7).abs() < 1e-12 && (spread.standard_deviation - 0.2).abs() < 1e-12, "{spread:?}");
    }
}
