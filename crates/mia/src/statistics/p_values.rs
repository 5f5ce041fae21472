//! P-values in ascending order, as step-up and step-down procedures go through them.

/// The index and the value of each p-value, in ascending order of the values; equal ones keep their order. O(n log n).
///
/// A value outside [0, 1] counts as the nearest bound, and NaN as 1, which is no evidence.
pub(super) fn ascending(p_values: &[f64]) -> Vec<(usize, f64)> {
    let valid = |p: f64| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let mut indexed: Vec<(usize, f64)> = p_values.iter().map(|&p| valid(p)).enumerate().collect();
    indexed.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    indexed
}
