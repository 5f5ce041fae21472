//! P-values adjusted for several comparisons.

/// The p-values adjusted by Holm 1979, in the order given: comparing each with a level keeps the probability of any
/// false rejection within that level, however the p-values depend on each other.
///
/// The i-th smallest of n becomes the largest of `(n - j + 1) p_(j)` over j <= i, at most 1. A value outside [0, 1]
/// counts as the nearest bound, and NaN as 1. O(n log n).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (smaller, (index, p)) in ascending(p_values).into_iter().enumerate() {
        let remaining = p_values.len() - smaller;
        largest = largest.max(remaining as f64 * p).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// The index and the value of each p-value, in ascending order of the values; equal ones keep their order. O(n log n).
///
/// A value outside [0, 1] counts as the nearest bound, and NaN as 1, which is no evidence.
pub(super) fn ascending(p_values: &[f64]) -> Vec<(usize, f64)> {
    let valid = |p: f64| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let mut indexed: Vec<(usize, f64)> = p_values.iter().map(|&p| valid(p)).enumerate().collect();
    indexed.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    indexed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn assert_close(actual: &[f64], expected: &[f64]) {
        assert_eq!(actual.len(), expected.len());
        for (actual, expected) in actual.iter().zip(expected) {
            assert!((actual - expected).abs() <= 1e-12, "{actual} is not {expected}");
        }
    }

    /// Against `statsmodels.stats.multitest.multipletests(p, method="holm")[1]`.
    #[test]
    fn as_statsmodels_adjusts() {
        assert_close(&holm(&HOLM_P), &HOLM_ADJUSTED);
    }

    const HOLM_P: [f64; 8] = [0.04, 0.001, 0.6, 0.012, 0.012, 0.9, 0.0, 0.031];
    const HOLM_ADJUSTED: [f64; 8] = [0.124, 0.007, 1.0, 0.072, 0.072, 1.0, 0.0, 0.124];

    #[test]
    fn corners() {
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.3]), [0.3]);
        assert_eq!(holm(&[1.0, 1.0]), [1.0, 1.0]);
        assert_eq!(holm(&[f64::NAN, -1.0, 7.0]), [1.0, 0.0, 1.0]);
    }

    proptest! {
        #[test]
        fn a_level_rejects_what_stepping_down_rejects(
            p_values in prop::collection::vec(0.0..=1.0, 1..30),
            level in 0.01..0.99,
        ) {
            let mut sorted = p_values.clone();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len();
            let rejected = (0..n).take_while(|&smaller| (n - smaller) as f64 * sorted[smaller] <= level).count();
            prop_assert_eq!(holm(&p_values).iter().filter(|&&adjusted| adjusted <= level).count(), rejected);
        }
    }
}
