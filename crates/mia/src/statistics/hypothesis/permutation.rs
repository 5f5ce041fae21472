//! What tests by permutation share.

/// Two sums count as equal if they differ by at most this share of the sum of the magnitudes of their terms.
///
/// Sums of n numbers that would be equal in exact arithmetic differ by less than n * 2.2e-16 of that sum (Higham 1993),
/// and typically by its square root, so this covers thousands of terms at worst and any number in practice. A
/// permutation that counts as equal counts against the hypothesis, so that the error of a p-value is on the safe side.
const EQUAL: f64 = 1e-12;

/// The least sum that counts as reaching `observed`, with `magnitude` the sum of the magnitudes of the terms.
pub(super) fn reached_from(observed: f64, magnitude: f64) -> f64 {
    observed - EQUAL * magnitude
}

/// The p-value where `reached` of `permutations` drawn at random are at least as extreme as the observed statistic:
/// `(1 + reached) / (1 + permutations)`, never 0 (Phipson and Smyth 2010).
pub(super) fn permutation_p_value(reached: usize, permutations: usize) -> f64 {
    (1 + reached) as f64 / (1 + permutations) as f64
}
