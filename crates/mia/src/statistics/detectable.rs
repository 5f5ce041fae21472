//! Smallest difference that a comparison of given numbers of clusters can detect.

use statrs::function::erf::erfc_inv;
use std::f64::consts::SQRT_2;

/// Computes the smallest AUROC that a one-sided rank-sum test at `level` detects with probability `power`, with m and n
/// clusters on the two sides: `1/2 + (z_(1 - level) + z_power) sqrt((m + n + 1) / (12 m n))`, by the variance under the null
/// hypothesis. At most 1; `None` if a side is empty.
#[must_use]
pub fn detectable_auroc(members: usize, non_members: usize, level: f64, power: f64) -> Option<f64> {
    let (m, n) = (members as f64, non_members as f64);
    let deviation = ((m + n + 1.0) / (12.0 * m * n)).sqrt();
    let auroc = 0.5 + (upper_quantile(level) + upper_quantile(1.0 - power)) * deviation;
    (members > 0 && non_members > 0).then_some(auroc.min(1.0))
}

/// The value that a standard normal variable exceeds with `probability`.
fn upper_quantile(probability: f64) -> f64 {
    SQRT_2 * erfc_inv(2.0 * probability)
}

#[cfg(test)]
mod tests {
    use super::detectable_auroc;

    /// Example 16 of the worked examples. Quantiles are accurate to about 1e-14.
    #[test]
    fn what_could_have_been_found() {
        for (m, n, expected) in
            [(20, 20, 0.7927873086597301), (100, 100, 0.6296547235810628), (40, 500, 0.6504090435603322)]
        {
            assert!((detectable_auroc(m, n, 0.01, 0.8).unwrap() - expected).abs() < 1e-9);
        }
        assert_eq!((detectable_auroc(1, 1, 0.01, 0.8), detectable_auroc(0, 5, 0.01, 0.8)), (Some(1.0), None));
    }
}
