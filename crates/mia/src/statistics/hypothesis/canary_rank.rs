//! The ranks of canaries among their twins.

use super::HypothesisError;
use serde::{Deserialize, Serialize};
use statrs::function::beta::checked_beta_reg;
use utoipa::ToSchema;

/// Maximum number of steps of a convolution, canaries times sum of ranks: some 0.3 s. A thousand canaries with 99 twins
/// each need 50 million on average if no canary was seen.
const MOST_STEPS: u64 = 100_000_000;

/// The 99 % and 80 % quantiles of the normal distribution.
const Z_LEVEL: f64 = 2.326_347_874_040_841;
const Z_POWER: f64 = 0.841_621_233_572_914_3;

/// The rank of a canary, a text that was published, among its twins, texts of the same generator that were not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanaryRank {
    /// From 1, the highest score, to the number of twins plus 1. A twin with the same score as the canary ranks above
    /// it.
    pub rank: usize,
    /// The number of twins; a canary without twins says nothing, and changes nothing.
    pub twins: usize,
}

/// Test whether canaries rank higher than their twins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CanaryRankTest {
    /// The number of canaries.
    pub canaries: usize,
    /// The sum over the canaries of rank minus 1: 0 if each has a higher score than all its twins.
    pub rank_sum: u64,
    /// Expected sum if no canary had been seen: half the number of twins.
    pub expected_rank_sum: f64,
    /// One-sided and exact: the probability of a sum that is at most the observed one, if no canary had been seen.
    pub p_value: f64,
    /// The number of canaries with rank 1.
    pub first: usize,
    /// The probability of at least `first` canaries with rank 1, if none had been seen; absent if the canaries have
    /// different numbers of twins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_p_value: Option<f64>,
    /// About how many canaries that rank as these do give a p-value of at most 0.01 with a power of 80 %, by the normal
    /// approximation of the mean of (rank - 1) / twins; absent if these rank no higher than by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_suffice: Option<u64>,
}

impl CanaryRank {
    /// The rank of a canary's score among those of its twins: 1 plus the number of twins whose score is at least as
    /// high. Counting ties against the canary makes ranks larger at most, so that p-values stay valid. O(n).
    ///
    /// # Errors
    ///
    /// If a score is not finite.
    pub fn new(canary: f64, twins: &[f64]) -> Result<CanaryRank, HypothesisError> {
        if !canary.is_finite() || twins.iter().any(|twin| !twin.is_finite()) {
            return Err(HypothesisError::NonFinite);
        }
        let above = twins.iter().filter(|twin| **twin >= canary).count();
        Ok(CanaryRank { rank: 1 + above, twins: twins.len() })
    }

    /// The share of its twins that the canary scores above, in [0, 1]; 1/2 on average by chance. `None` without twins.
    pub fn share_above(&self) -> Option<f64> {
        (self.twins > 0).then(|| 1.0 - (self.rank as f64 - 1.0) / self.twins as f64)
    }
}

/// The smallest mean of [`CanaryRank::share_above`] that a test of `canaries` detects at level 0.01 with a power of 80 %, by
/// the normal approximation with the variance of chance, (twins + 2) / (12 twins). `None` where that would be above 1.
pub fn detectable_share(canaries: &[CanaryRank]) -> Option<f64> {
    let twins = || canaries.iter().filter(|canary| canary.twins > 0).map(|canary| canary.twins as f64);
    let number = twins().count() as f64;
    let deviation = twins().map(|twins| (twins + 2.0) / (12.0 * twins)).sum::<f64>().sqrt() / number;
    Some(0.5 + (Z_LEVEL + Z_POWER) * deviation).filter(|share| *share <= 1.0)
}

/// The number n with (1/2 - mean) sqrt(n) = z_.99 deviation under the null hypothesis + z_.80 deviation as observed, at least 1.
/// Of a uniform rank among `twins` + 1 texts, (rank - 1) / twins has the variance (twins + 2) / (12 twins).
fn would_suffice(canaries: &[CanaryRank]) -> Option<u64> {
    let shares: Vec<(f64, f64)> = (canaries.iter().filter(|canary| canary.twins > 0))
        .map(|canary| ((canary.rank as f64 - 1.0) / canary.twins as f64, canary.twins as f64))
        .collect();
    let number = shares.len() as f64;
    let mean = shares.iter().map(|(share, _)| share).sum::<f64>() / number;
    let of_chance = shares.iter().map(|(_, twins)| (twins + 2.0) / (12.0 * twins)).sum::<f64>() / number;
    let observed = shares.iter().map(|(share, _)| (share - mean).powi(2)).sum::<f64>() / number;
    let root = (Z_LEVEL * of_chance.sqrt() + Z_POWER * observed.sqrt()) / (0.5 - mean);
    // Not for a mean of no shares either.
    (mean < 0.5).then(|| (root.powi(2).ceil() as u64).max(1))
}

/// Tests whether `canaries` rank higher than their twins: a canary that was not seen is equally likely to have each
/// rank from 1 to the number of its twins plus 1.
///
/// The distribution of the sum is the convolution of discrete uniform distributions, computed only up to the observed
/// sum: O(canaries * sum) time and O(sum) memory, which is at most quadratic in the number of twins.
///
/// # Errors
///
/// If there are no canaries, a rank is impossible, or canaries times (sum + 1) exceeds 100 million.
pub fn canary_rank(canaries: &[CanaryRank]) -> Result<CanaryRankTest, HypothesisError> {
    let Some(CanaryRank { twins, .. }) = canaries.first().copied() else { return Err(HypothesisError::NoValues) };
    let mut rank_sum = 0_u64;
    for &CanaryRank { rank, twins } in canaries {
        let beaten_by = rank.checked_sub(1).filter(|beaten_by| *beaten_by <= twins);
        let beaten_by = beaten_by.ok_or(HypothesisError::Rank { rank, twins })?;
        rank_sum = rank_sum.saturating_add(beaten_by as u64);
    }
    let steps = rank_sum.saturating_add(1).saturating_mul(canaries.len() as u64);
    if steps > MOST_STEPS {
        let limit = MOST_STEPS;
        return Err(HypothesisError::TooManyRanks { canaries: canaries.len(), rank_sum, limit });
    }
    let first = canaries.iter().filter(|canary| canary.rank == 1).count();
    let same_twins = canaries.iter().all(|canary| canary.twins == twins);
    Ok(CanaryRankTest {
        canaries: canaries.len(),
        rank_sum,
        expected_rank_sum: canaries.iter().map(|canary| canary.twins as f64).sum::<f64>() / 2.0,
        p_value: probability_up_to(rank_sum as usize, canaries),
        first,
        would_suffice: would_suffice(canaries),
        first_p_value: if same_twins { first_p_value(first, canaries.len(), twins) } else { None },
    })
}

/// The probability that the sum of independent uniform numbers, from 0 to the number of twins of each canary, is at
/// most `sum`.
fn probability_up_to(sum: usize, canaries: &[CanaryRank]) -> f64 {
    let mut probabilities = vec![0.0; sum + 1];
    probabilities[0] = 1.0;
    let mut cumulative = vec![0.0; sum + 1];
    for &CanaryRank { twins, .. } in canaries {
        let mut total = 0.0;
        for (cumulative, probability) in cumulative.iter_mut().zip(&probabilities) {
            total += probability;
            *cumulative = total;
        }
        let share = 1.0 / (twins as f64 + 1.0);
        for (value, probability) in probabilities.iter_mut().enumerate() {
            // The sum was between `value - twins` and `value` before this canary.
            let below = value.checked_sub(twins).and_then(|low| low.checked_sub(1)).map_or(0.0, |low| cumulative[low]);
            *probability = (cumulative[value] - below) * share;
        }
    }
    probabilities.iter().sum::<f64>().min(1.0)
}

/// The probability of at least `first` successes in `canaries` trials with probability `1 / (twins + 1)`.
fn first_p_value(first: usize, canaries: usize, twins: usize) -> Option<f64> {
    if first == 0 {
        return Some(1.0);
    }
    checked_beta_reg(first as f64, (canaries - first) as f64 + 1.0, 1.0 / (twins as f64 + 1.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{assert_level_is_kept, assert_relative, assert_within, normals};
    use proptest::prelude::*;

    /// Expected: `0.5 + (norm.ppf(0.99) + norm.ppf(0.8)) * sqrt(12 * 11 / 108 + 4 * 7 / 60) / 16` by SciPy.
    #[test]
    fn a_share_that_could_have_been_found() {
        let first = |twins: usize| CanaryRank { rank: 1, twins };
        let canaries = [vec![first(9); 12], vec![first(5); 4], vec![first(0); 3]].concat();
        assert_within(detectable_share(&canaries).unwrap(), 0.757_312_861_521_827_1, 1e-12);
        assert_eq!((detectable_share(&[first(0)]), detectable_share(&[first(9)])), (None, None));
        let shares = [CanaryRank { rank: 2, twins: 4 }, first(0)].map(|canary| canary.share_above());
        assert_eq!(shares, [Some(0.75), None]);
    }

    /// By hand: ranks 1, 2 and 4 among 9 twins are shares 0, 1/9 and 1/3, with the mean 4/27 and the variance 14/729; chance has
    /// 11/108. ((2.32635 * 0.319142 + 0.841621 * 0.138578) / 0.351852)^2 = 5.96.
    #[test]
    fn how_many_would_suffice() {
        let test = |ranks: &[usize]| {
            let ranks: Vec<CanaryRank> = ranks.iter().map(|&rank| CanaryRank { rank, twins: 9 }).collect();
            canary_rank(&ranks).unwrap().would_suffice
        };
        assert_eq!(test(&[1, 2, 4]), Some(6));
        assert_eq!(test(&[1]), Some(3));
        assert_eq!(test(&[5, 6]), None);
        assert_eq!(test(&[10]), None);
    }

    fn ranks(ranks: &[usize], twins: usize) -> Vec<CanaryRank> {
        ranks.iter().map(|&rank| CanaryRank { rank, twins }).collect()
    }

    #[test]
    fn the_worked_examples() {
        let test = canary_rank(&ranks(&[1, 1, 2, 1, 3, 5, 1, 2, 1, 4, 2, 1], 9)).expect("ranks");
        assert_eq!((test.canaries, test.rank_sum, test.expected_rank_sum, test.first), (12, 12, 54.0, 6));
        assert_relative(test.p_value, 2.703064e-6);
        assert_relative(test.first_p_value.expect("equal numbers of twins"), 5.41231822e-4);
        let one = canary_rank(&ranks(&[1], 99)).expect("a rank");
        assert_relative(one.p_value, 0.01);
        assert_relative(one.first_p_value.expect("equal numbers of twins"), 0.01);
    }

    /// Expected: the convolution in exact fractions of Python.
    #[test]
    fn numbers_of_twins_may_differ() {
        let canaries = [(3, 4), (1, 9), (2, 2), (7, 20), (1, 0)].map(|(rank, twins)| CanaryRank { rank, twins });
        let test = canary_rank(&canaries).expect("ranks");
        assert_eq!((test.rank_sum, test.first_p_value), (9, None));
        assert_relative(test.p_value, 0.13968253968253969);
        assert_relative(canary_rank(&ranks(&[5; 6], 4)).expect("ranks").p_value, 1.0);
        assert_relative(canary_rank(&ranks(&[1; 20], 99)).expect("ranks").p_value, 1e-40);
    }

    /// Expected: `scipy.stats.binom.sf(first - 1, canaries, 1 / (twins + 1))`.
    #[test]
    fn first_ranks_as_scipy() {
        for (first, canaries, twins, expected) in [
            (20, 20, 99, 1e-40),
            (540, 5000, 9, 0.03236235650922706),
            (50_300, 100_000, 1, 0.029098676555095182),
            (1000, 100_000, 99, 0.5042686879721106),
            (7, 7, 0, 1.0),
            (1, 7, 3, 0.86651611328125),
            (0, 7, 3, 1.0),
        ] {
            assert_relative(first_p_value(first, canaries, twins).expect("a p-value"), expected);
        }
    }

    #[test]
    fn ties_count_against_the_canary() {
        let rank = |canary, twins: &[f64]| CanaryRank::new(canary, twins).expect("finite").rank;
        assert_eq!(rank(1.0, &[0.5, 0.9, 1.1]), 2);
        assert_eq!(rank(1.0, &[1.0, 0.9, 1.0]), 3);
        assert_eq!(rank(1.0, &[]), 1);
        assert_eq!(CanaryRank::new(1.0, &[f64::NAN]), Err(HypothesisError::NonFinite));
        assert_eq!(CanaryRank::new(f64::INFINITY, &[1.0]), Err(HypothesisError::NonFinite));
    }

    #[test]
    fn what_cannot_be_tested() {
        assert_eq!(canary_rank(&[]), Err(HypothesisError::NoValues));
        assert_eq!(canary_rank(&ranks(&[1, 0], 3)), Err(HypothesisError::Rank { rank: 0, twins: 3 }));
        assert_eq!(canary_rank(&ranks(&[1, 5], 3)), Err(HypothesisError::Rank { rank: 5, twins: 3 }));
        let many = canary_rank(&ranks(&[usize::MAX; 3], usize::MAX));
        assert!(matches!(many, Err(HypothesisError::TooManyRanks { canaries: 3, .. })));
        // A long convolution is only needed for the observed sum.
        assert_relative(canary_rank(&ranks(&[1; 3], 999_999)).expect("ranks").p_value, 1e-18);
    }

    #[test]
    fn type_one_error() {
        assert_level_is_kept("canary rank", |random| {
            let mut rank = || CanaryRank::new(normals(random, 1)[0], &normals(random, 9)).expect("finite");
            canary_rank(&(0..12).map(|_| rank()).collect::<Vec<_>>()).expect("ranks").p_value
        });
        assert_level_is_kept("canary ties", |random| {
            let scores: Vec<f64> = normals(random, 60).iter().map(|score| score.round()).collect();
            let ranks = scores.chunks(5).map(|scores| CanaryRank::new(scores[0], &scores[1..]).expect("finite"));
            canary_rank(&ranks.collect::<Vec<_>>()).expect("ranks").p_value
        });
    }

    proptest! {
        #[test]
        fn the_sum_by_enumeration(canaries in proptest::collection::vec((0..5_usize, 0..5_usize), 1..6)) {
            let canary = |&(rank, twins): &(usize, usize)| CanaryRank { rank: 1 + rank.min(twins), twins };
            let canaries: Vec<CanaryRank> = canaries.iter().map(canary).collect();
            let mut sums = vec![0];
            for canary in &canaries {
                sums = sums.iter().flat_map(|sum| (0..=canary.twins).map(move |beaten_by| sum + beaten_by)).collect();
            }
            let test = canary_rank(&canaries).expect("ranks");
            let reached = sums.iter().filter(|sum| **sum <= test.rank_sum as usize).count();
            prop_assert!((test.p_value - reached as f64 / sums.len() as f64).abs() < 1e-12);
        }
    }
}
