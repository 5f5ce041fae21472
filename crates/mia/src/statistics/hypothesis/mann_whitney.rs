//! The rank-sum test of two samples.

use super::HypothesisError;
use crate::statistics::roc::{LabelledScore, Roc, StatisticsError};
use serde::{Deserialize, Serialize};
use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::SQRT_2;
use utoipa::ToSchema;

/// The exact distribution serves where both samples are smaller than this: its counts then fit 64 bits.
const EXACT_BELOW: usize = 25;

/// Test whether one sample has higher scores than another (Mann and Whitney 1947).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MannWhitney {
    /// The number of pairs in which the first sample has the higher score, where a tie counts one half.
    pub u: f64,
    /// `u` divided by the number of pairs: the area under the ROC, in [0, 1].
    pub auroc: f64,
    /// One-sided, that scores of the first sample are stochastically larger.
    pub p_value: f64,
    /// True if the p-value is exact; otherwise it is that of the normal approximation.
    pub exact: bool,
}

/// Tests whether scores of `first` are stochastically larger than scores of `second`; each needs at least one.
///
/// With fewer than 25 scores on each side and no ties, the p-value is exact. Otherwise it is of the normal
/// approximation, with the variance corrected for ties and with a continuity correction of one half. If all scores are
/// equal, the p-value is 1. O(n log n).
///
/// # Errors
///
/// If a side has no scores, or a score is not finite.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Result<MannWhitney, HypothesisError> {
    let labelled = |member: bool| move |&score: &f64| LabelledScore { score, member };
    let samples: Vec<LabelledScore> =
        first.iter().map(labelled(true)).chain(second.iter().map(labelled(false))).collect();
    let roc = Roc::new(&samples).map_err(|error| match error {
        StatisticsError::NoMembers | StatisticsError::NoNonMembers => HypothesisError::NoValues,
        StatisticsError::NonFinite => HypothesisError::NonFinite,
    })?;
    let pairs = first.len() as f64 * second.len() as f64;
    let auroc = roc.auroc();
    // A multiple of one half: rounding it removes the rounding of the division, up to 2^50 pairs.
    let u = (2.0 * auroc * pairs).round() / 2.0;
    let tied = roc.ties.iter().map(|tie| tie.members + tie.non_members);
    let exact = first.len() < EXACT_BELOW && second.len() < EXACT_BELOW && roc.ties.len() == samples.len();
    let p_value = if exact {
        exact_p_value(first.len(), second.len(), u as usize)
    } else {
        normal_p_value(pairs, samples.len() as f64, tied, u)
    };
    Ok(MannWhitney { u, auroc, p_value, exact })
}

/// The share of the arrangements of `m` and `n` distinct scores, each below 25, whose U is at least `u`.
///
/// The number of arrangements by U is the Gaussian binomial coefficient of `m + n` over `m`, the product over i of
/// `(1 - q^(n + i)) / (1 - q^i)`. The counts are exact. O(m^2 n).
fn exact_p_value(m: usize, n: usize, u: usize) -> f64 {
    let mut counts = vec![0_i64; m * n + 1];
    counts[0] = 1;
    for i in 1..=m {
        for power in (n + i..counts.len()).rev() {
            counts[power] -= counts[power - n - i];
        }
        for power in i..counts.len() {
            counts[power] += counts[power - i];
        }
    }
    let total: i64 = counts.iter().sum();
    let reached: i64 = counts.iter().skip(u).sum();
    reached as f64 / total as f64
}

/// The upper tail of the normal distribution at U, for `all` scores with the given numbers of `tied` scores.
fn normal_p_value(pairs: f64, all: f64, tied: impl Iterator<Item = usize>, u: f64) -> f64 {
    let cubes: u128 = tied.map(|count| count as u128).map(|count| count * (count * count - 1)).sum();
    // Not negative: one tie of all scores has all^3 - all. Two scores at least, so that `all - 1` is positive.
    let variance = pairs / 12.0 * (all + 1.0 - cubes as f64 / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (u - pairs / 2.0 - 0.5) / variance.sqrt();
    0.5 * erfc(z / SQRT_2)
}

/// The smallest AUROC that a one-sided rank-sum test at `level` detects with probability `power`, with m and n
/// clusters on the two sides: `1/2 + (z_(1 - level) + z_power) sqrt((m + n + 1) / (12 m n))`, by the variance under the null
/// hypothesis. At most 1; `None` if a side is empty.
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
    use super::*;
    use crate::statistics::fixtures::{
        HELD_OUT, SUSPECTS, assert_close, assert_exact_level, assert_level_is_kept, normals,
    };
    use proptest::prelude::*;

    /// Distinct numbers, raised by `shift`.
    fn first(count: u32, shift: f64) -> Vec<f64> {
        (0..count).map(|i| f64::from((i * 379 + 11) % 1009) + shift).collect()
    }

    /// Distinct numbers, none of them among those of `first` with a whole shift.
    fn second(count: u32) -> Vec<f64> {
        (0..count).map(|i| f64::from((i * 263 + 500) % 1013) + 0.5).collect()
    }

    #[track_caller]
    fn assert_test(first: &[f64], second: &[f64], u: f64, p_value: f64, exact: bool) {
        let test = mann_whitney(first, second).expect("scores");
        assert_eq!((test.u, test.exact), (u, exact));
        assert!((test.auroc - u / (first.len() * second.len()) as f64).abs() < 1e-15);
        // statrs' complementary error function is exact to some 1e-10.
        let error = (test.p_value - p_value).abs();
        assert!(error < 1e-10 && error < 1e-8 * p_value, "{} is not {p_value}", test.p_value);
    }

    /// Of the worked example, the scores -1.9 and -2.0 are on both sides.
    #[test]
    fn the_worked_example_has_ties() {
        assert_test(&SUSPECTS, &HELD_OUT, 59.0, 0.00265862366864981, false);
        // Its exact p-value is for U = 59 as if there were no ties.
        assert!((exact_p_value(8, 8, 59) - 0.00147630147630148).abs() < 1e-15);
    }

    /// Expected: `scipy.stats.mannwhitneyu(first, second, alternative="greater")`, with `method="exact"` below 25 a
    /// side and `method="asymptotic"` from there on.
    #[test]
    fn sizes_and_ties_as_scipy() {
        assert_test(&first(24, 0.0), &second(24), 272.0, 0.6319882551573468, true);
        assert_test(&first(24, 150.0), &second(24), 355.0, 0.08592938489312328, true);
        assert_test(&first(24, 2000.0), &second(24), 576.0, 3.101005612159858e-14, true);
        assert_test(&first(24, -2000.0), &second(24), 0.0, 1.0, true);
        assert_test(&first(25, 150.0), &second(24), 360.0, 0.11702319602310873, false);
        assert_test(&first(1, 0.0), &second(1), 0.0, 1.0, true);
        assert_test(&first(1, 900.0), &second(24), 22.0, 0.12, true);
        assert_test(&first(24, 900.0), &second(1), 24.0, 0.04, true);
        assert_test(&first(3, 200.0), &second(5), 10.0, 0.2857142857142857, true);
        let a: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 10)).collect();
        let b: Vec<f64> = (0..45).map(|i| f64::from(i * 3 % 8)).collect();
        assert_test(&a, &b, 1641.0, 0.02926703475753073, false);
        assert_test(&b, &a, 1059.0, 0.9711643721855784, false);
        assert_test(&[1.0; 3], &[1.0; 2], 3.0, 1.0, false);
        assert_test(&[1.0], &[1.0], 0.5, 1.0, false);
        assert_test(&[0.0], &[-0.0], 0.5, 1.0, false);
    }

    #[test]
    fn what_cannot_be_tested() {
        assert_eq!(mann_whitney(&[], &[1.0]), Err(HypothesisError::NoValues));
        assert_eq!(mann_whitney(&[1.0], &[]), Err(HypothesisError::NoValues));
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), Err(HypothesisError::NonFinite));
        assert_eq!(mann_whitney(&[1.0], &[f64::INFINITY]), Err(HypothesisError::NonFinite));
    }

    #[test]
    fn type_one_error() {
        let p_value = |first: &[f64], second: &[f64]| mann_whitney(first, second).expect("scores").p_value;
        assert_level_is_kept("exact", |random| p_value(&normals(random, 9), &normals(random, 12)));
        assert_exact_level("normal", |random| p_value(&normals(random, 40), &normals(random, 60)));
        // Few distinct scores.
        let rounded = |values: Vec<f64>| -> Vec<f64> { values.iter().map(|value| value.round()).collect() };
        assert_exact_level("ties", |random| p_value(&rounded(normals(random, 50)), &rounded(normals(random, 40))));
    }

    /// Example 16 of the worked examples. Quantiles are accurate to about 1e-14.
    #[test]
    fn what_could_have_been_found() {
        for (m, n, expected) in
            [(20, 20, 0.7927873086597301), (100, 100, 0.6296547235810628), (40, 500, 0.6504090435603322)]
        {
            assert_close(detectable_auroc(m, n, 0.01, 0.8).unwrap(), expected);
        }
        assert_eq!((detectable_auroc(1, 1, 0.01, 0.8), detectable_auroc(0, 5, 0.01, 0.8)), (Some(1.0), None));
    }

    proptest! {
        #[test]
        fn u_counts_pairs(
            first in proptest::collection::vec(-9_i8..9, 1..40),
            second in proptest::collection::vec(-9_i8..9, 1..40),
        ) {
            let [first, second] = [first, second].map(|side| side.into_iter().map(f64::from).collect::<Vec<_>>());
            let won = |a: f64, b: f64| if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 };
            let expected: f64 = first.iter().map(|a| second.iter().map(|b| won(*a, *b)).sum::<f64>()).sum();
            let test = mann_whitney(&first, &second).expect("scores");
            prop_assert_eq!(test.u, expected);
            prop_assert!((0.0..=1.0).contains(&test.p_value));
            // Only the order of scores matters.
            let cubed = [first, second].map(|side| side.into_iter().map(|score| score.powi(3)).collect::<Vec<_>>());
            prop_assert_eq!(mann_whitney(&cubed[0], &cubed[1]).expect("scores"), test);
        }

        #[test]
        fn exact_p_values_by_enumeration(m in 1..6_usize, n in 1..6_usize, u in 0..25_usize) {
            let u = u.min(m * n);
            // A set of m ranks has U = the sum of its ranks from 0, less that of the lowest m.
            let sets: Vec<u32> = (0_u32..1 << (m + n)).filter(|set| set.count_ones() as usize == m).collect();
            let u_of_set = |set: &u32| (0..m + n).filter(|rank| set >> rank & 1 == 1).sum::<usize>() - m * (m - 1) / 2;
            let reached = sets.iter().filter(|set| u_of_set(set) >= u).count();
            prop_assert_eq!(exact_p_value(m, n, u), reached as f64 / sets.len() as f64);
        }
    }
}
