//! Paired differences, tested by flipping their signs.

use super::HypothesisError;
use super::student::{TTest, one_sample_t};
use crate::random::stream;
use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Up to this many documents, all combinations of signs are enumerated.
const MOST_ENUMERATED: usize = 16;
/// Combinations of signs that are drawn at random for more documents.
const PERMUTATIONS: usize = 9_999;
/// The sign of an `f64`.
const SIGN: u64 = 1 << 63;

/// Whether paired differences tend to be positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SignFlip {
    /// The number of differences, one for each document.
    pub documents: usize,
    /// The mean difference.
    pub mean: f64,
    /// One-sided: the share of the combinations of signs whose mean is at least the observed one.
    pub p_value: f64,
    /// Whether all combinations of signs were enumerated; otherwise a sample of them was drawn.
    pub exact: bool,
    /// The number of combinations, without the observed one if they were drawn.
    pub permutations: usize,
    /// Student's test that the mean is greater than 0; absent for one document or constant differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<TTest>,
}

/// Tests whether `differences`, one for each document, tend to be positive (Fisher 1935): under the null hypothesis,
/// each is as likely to have the opposite sign.
///
/// Exact over all 2^n combinations of signs for up to 16 documents. For more, 9,999 combinations are drawn from `seed`,
/// and the p-value is `(1 + reached) / (1 + 9999)`; O(9999 n), about two seconds for 100,000 documents. Combinations
/// whose sum is within 1e-12 of the observed one, relative to the sum of the magnitudes, count as equal to it. Once
/// `keep_going` returns false, stops with fewer permutations.
///
/// # Errors
///
/// If there are no differences, or one of them or the sum of their magnitudes is not finite.
pub fn sign_flip(differences: &[f64], seed: u64, keep_going: &dyn Fn() -> bool) -> Result<SignFlip, HypothesisError> {
    let magnitude: f64 = differences.iter().map(|difference| difference.abs()).sum();
    if differences.is_empty() {
        return Err(HypothesisError::NoValues);
    }
    if !magnitude.is_finite() {
        return Err(HypothesisError::NonFinite);
    }
    let documents = differences.len();
    let sum: f64 = differences.iter().sum();
    let threshold = reached_from(sum, magnitude);
    let exact = documents <= MOST_ENUMERATED;
    let (reached, permutations) =
        if exact { enumerate(differences, threshold) } else { draw(differences, threshold, seed, keep_going) };
    let p_value = if exact { reached as f64 / permutations as f64 } else { permutation_p_value(reached, permutations) };
    let mean = sum / documents as f64;
    Ok(SignFlip { documents, mean, p_value, exact, permutations, t: one_sample_t(differences) })
}

/// Of all combinations of signs, how many have a sum of at least `threshold`, and how many there are.
fn enumerate(differences: &[f64], threshold: f64) -> (usize, usize) {
    let mut sums = vec![0.0];
    for difference in differences {
        sums = sums.iter().flat_map(|sum| [sum + difference, sum - difference]).collect();
    }
    (sums.iter().filter(|sum| **sum >= threshold).count(), sums.len())
}

/// Of the combinations of signs drawn from `seed`, how many have a sum of at least `threshold`, and how many there are.
fn draw(differences: &[f64], threshold: f64, seed: u64, keep_going: &dyn Fn() -> bool) -> (usize, usize) {
    let mut random = stream(seed, "sign flip");
    // One random bit for each difference, 64 at a time.
    let mut flipped_sum = || -> f64 {
        let flipped = |(chunk, mut bits): (&[f64], u64)| -> f64 {
            let flip = |sum, difference: &f64| {
                let sign = bits & SIGN;
                bits <<= 1;
                sum + f64::from_bits(difference.to_bits() ^ sign)
            };
            chunk.iter().fold(0.0, flip)
        };
        differences.chunks(64).map(|chunk| flipped((chunk, random.next_u64()))).sum()
    };
    let (mut reached, mut permutations) = (0, 0);
    while permutations < PERMUTATIONS && keep_going() {
        reached += usize::from(flipped_sum() >= threshold);
        permutations += 1;
    }
    (reached, permutations)
}

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

#[cfg(test)]
mod tests {
    use super::super::null_draws::{assert_exact_level, assert_level_is_kept, normals};
    use super::*;
    use proptest::prelude::*;

    const DIFFERENCES: [f64; 8] = [0.12, -0.03, 0.20, 0.05, 0.11, -0.01, 0.07, 0.16];

    fn test(differences: &[f64], seed: u64) -> SignFlip {
        sign_flip(differences, seed, &|| true).expect("differences")
    }

    #[test]
    fn the_worked_example() {
        let SignFlip { documents, mean, p_value, exact, permutations, t } = test(&DIFFERENCES, 0);
        assert_eq!((documents, exact, permutations, p_value), (8, true, 256, 0.015625));
        assert!((mean - 0.08375).abs() < 1e-15);
        assert!((t.expect("variance").p_value - 0.0103342384687311).abs() < 1e-12);
    }

    #[test]
    fn few_or_constant_differences() {
        let p_values = |differences: &[f64]| test(differences, 0).p_value;
        assert_eq!([p_values(&[0.3]), p_values(&[-0.3]), p_values(&[0.0])], [0.5, 1.0, 1.0]);
        assert_eq!([p_values(&[0.0; 5]), p_values(&[0.1; 5]), p_values(&[0.0; 40])], [1.0, 1.0 / 32.0, 1.0]);
        // Exactly the observed combination of 2^16.
        assert_eq!(p_values(&[0.1; 16]), 1.0 / 65_536.0);
        assert_eq!(p_values(&[0.1; 50]), 1.0 / 10_000.0);
        assert_eq!(test(&[0.1; 5], 0).t, None);
        // As a decimal number, 0.1 + 0.2 - 0.3 is 0, and half of the sums tie with it or exceed it: 5 of 8.
        assert_eq!(p_values(&[0.1, 0.2, -0.3]), 0.625);
    }

    /// The expected p-value is exact: NumPy, over all 2^20 combinations of signs.
    #[test]
    fn drawn_permutations_approach_the_exact_p_value() {
        let differences: Vec<f64> = (0..20).map(|i| f64::from((i * 37 + 5) % 41 - 16) / 10.0).collect();
        let drawn = test(&differences, 1);
        assert_eq!((drawn.exact, drawn.permutations), (false, 9_999));
        // Four standard errors.
        assert!((drawn.p_value - 0.06605339050292969).abs() < 0.01, "{}", drawn.p_value);
        assert_eq!(drawn, test(&differences, 1));
        assert_ne!(drawn.p_value, test(&differences, 2).p_value);
    }

    #[test]
    fn what_cannot_be_tested() {
        let error = |differences: &[f64]| sign_flip(differences, 0, &|| true).unwrap_err();
        assert_eq!(error(&[]), HypothesisError::NoValues);
        assert_eq!(error(&[1.0, f64::NAN]), HypothesisError::NonFinite);
        assert_eq!(error(&[f64::MAX, f64::MIN]), HypothesisError::NonFinite);
        let stopped = sign_flip(&[1.0; 20], 0, &|| false).expect("differences");
        assert_eq!((stopped.p_value, stopped.permutations), (1.0, 0));
    }

    #[test]
    fn type_one_error() {
        assert_level_is_kept("enumerated", |random| test(&normals(random, 8), 0).p_value);
        let mut seed = 0;
        assert_exact_level("drawn", |random| {
            seed += 1;
            test(&normals(random, 20), seed).p_value
        });
        assert_exact_level("t", |random| one_sample_t(&normals(random, 8)).expect("variance").p_value);
    }

    proptest! {
        #[test]
        fn sides_and_scales(differences in proptest::collection::vec(-9.0..9.0_f64, 1..12), scale in 1e-6..1e6_f64) {
            let one = test(&differences, 0);
            let scaled: Vec<f64> = differences.iter().map(|difference| scale * difference).collect();
            prop_assert_eq!(test(&scaled, 0).p_value, one.p_value);
            let opposite: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            // At least and at most the observed sum: the observed combination is in both.
            prop_assert!(one.p_value + test(&opposite, 0).p_value > 1.0);
            prop_assert!(one.p_value >= 0.5_f64.powi(differences.len() as i32));
        }
    }
}
