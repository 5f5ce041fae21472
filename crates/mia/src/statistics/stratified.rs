//! The AUROC over pairs of the same stratum.

use super::delong::{PairedScore, delong};
use super::roc::{LabelledScore, Roc, StatisticsError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Of intervals that are not used here.
const CONFIDENCE: f64 = 0.95;

/// Separation of members from non-members of the same stratum, such as the same source of texts, by their scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StratifiedAuroc {
    /// The share of the pairs in which the member scores above the non-member, where a tie counts one half.
    pub auroc: f64,
    /// Pairs of a member and a non-member of the same stratum.
    pub pairs: u64,
    /// Strata with both classes.
    pub strata: usize,
    /// Strata with a single class, which have no pairs.
    pub strata_left_out: usize,
    /// Samples in no pair: those of a stratum with a single class, and those without a stratum.
    pub samples_left_out: usize,
}

/// The AUROC of `samples` where only pairs of the same stratum are counted, which a difference between strata can
/// neither raise nor lower. It is the mean of the strata's AUROCs, each weighted by its number of pairs.
///
/// Samples are of one stratum if their entries in `strata` are equal; a sample without an entry is left out. `None` if
/// no stratum has both classes, or a score that has a stratum is not finite. O(n log n).
pub fn stratified_auroc(samples: &[LabelledScore], strata: &[usize]) -> Option<StratifiedAuroc> {
    let mut grouped: Vec<(usize, LabelledScore)> = strata.iter().copied().zip(samples.iter().copied()).collect();
    grouped.sort_unstable_by_key(|(stratum, _)| *stratum);
    let (mut twice_won, mut pairs) = (0, 0);
    let (mut used, mut strata_left_out, mut samples_left_out) = (0, 0, samples.len() - grouped.len());
    for stratum in grouped.chunk_by(|a, b| a.0 == b.0) {
        let scores: Vec<LabelledScore> = stratum.iter().map(|(_, sample)| *sample).collect();
        match Roc::new(&scores) {
            Ok(roc) => (used, twice_won, pairs) = (used + 1, twice_won + roc.twice_won(), pairs + roc.pairs()),
            Err(StatisticsError::NoMembers | StatisticsError::NoNonMembers) => {
                (strata_left_out, samples_left_out) = (strata_left_out + 1, samples_left_out + scores.len());
            }
            Err(StatisticsError::NonFinite) => return None,
        }
    }
    let auroc = (pairs > 0).then(|| twice_won as f64 / (2 * pairs) as f64)?;
    Some(StratifiedAuroc { auroc, pairs: u64::try_from(pairs).ok()?, strata: used, strata_left_out, samples_left_out })
}

/// The difference between two AUROCs over pairs of the same stratum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StratifiedDifference {
    /// The second AUROC minus the first, in [-1, 1].
    pub delta: f64,
    pub standard_error: f64,
}

/// Compares two scores of independent samples within strata: the mean of the strata's differences, each weighted by its
/// number of pairs, with the standard error that follows from DeLong's in each stratum. With a constant first score it is
/// the AUROC of the second one minus one half.
///
/// A stratum in which a class has a single sample has no variance of its own. It counts with the largest possible one:
/// 1/4 for an AUROC, 1 for a difference between two. `None` if no stratum has both classes, or a score is not finite.
/// O(n log n).
///
/// # Panics
///
/// If the lists differ in length.
pub fn stratified_delong(samples: &[PairedScore], strata: &[usize]) -> Option<StratifiedDifference> {
    assert_eq!(samples.len(), strata.len(), "lists of different lengths");
    let mut grouped: Vec<(usize, PairedScore)> = strata.iter().copied().zip(samples.iter().copied()).collect();
    grouped.sort_by_key(|(stratum, _)| *stratum);
    let is_constant = samples.windows(2).all(|two| two[0].first == two[1].first);
    let largest = if is_constant { 0.25 } else { 1.0 };
    let (mut delta, mut variance, mut pairs) = (0.0, 0.0, 0.0);
    for stratum in grouped.chunk_by(|a, b| a.0 == b.0) {
        let scores: Vec<PairedScore> = stratum.iter().map(|(_, sample)| *sample).collect();
        let members = scores.iter().filter(|score| score.member).count();
        let weight = members as f64 * (scores.len() - members) as f64;
        match delong(&scores, &[], CONFIDENCE) {
            Ok(compared) => {
                delta += weight * compared.delta;
                variance += weight * weight * compared.standard_error.map_or(largest, |error| error * error);
                pairs += weight;
            }
            Err(StatisticsError::NoMembers | StatisticsError::NoNonMembers) => {}
            Err(StatisticsError::NonFinite) => return None,
        }
    }
    (pairs > 0.0).then(|| StratifiedDifference { delta: delta / pairs, standard_error: variance.sqrt() / pairs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::auroc;
    use crate::statistics::fixtures::{assert_within, labelled};
    use proptest::prelude::*;

    const LABELS: [bool; 8] = [true, false, true, false, true, false, false, true];

    #[test]
    fn a_difference_between_strata_does_not_count() {
        let samples = labelled(&LABELS, &[3.0, 1.0, 2.0, 0.0, 13.0, 11.0, 12.0, 10.0]);
        assert_eq!(auroc(&samples), Ok(0.625));
        let expected = StratifiedAuroc { auroc: 0.75, pairs: 8, strata: 2, strata_left_out: 0, samples_left_out: 0 };
        assert_eq!(stratified_auroc(&samples, &[0, 0, 0, 0, 1, 1, 1, 1]), Some(expected));
    }

    /// Two strata of four pairs each: by hand. In the first the members' components are 1 and 1/2 of the non-members, the
    /// non-members' 1 and 1/2; variances 1/8 each, so 1/8 in all. In the second it is 1/8 as well.
    #[test]
    fn the_standard_error_is_that_of_independent_strata() {
        let scores = [3.0, 1.0, 2.0, 2.5, 13.0, 11.0, 12.0, 11.5];
        let pairs: Vec<PairedScore> =
            (LABELS.iter().zip(scores)).map(|(&member, second)| PairedScore { member, first: 0.0, second }).collect();
        let unequal = stratified_delong(&pairs, &[0, 0, 0, 0, 1, 1, 1, 1]).unwrap();
        assert_within(unequal.delta, 0.25, 1e-15);
        assert_within(unequal.standard_error, 0.0625_f64.sqrt(), 1e-15);
        // Matched pairs: each difference counts with the largest variance of an AUROC.
        let matched = stratified_delong(&pairs, &[0, 0, 1, 1, 2, 2, 3, 3]).unwrap();
        assert_within(matched.standard_error, 0.25, 1e-15);
        let one = stratified_delong(&pairs, &[5; 8]).unwrap();
        let delong = delong(&pairs, &[], 0.95).unwrap();
        assert_within(one.delta, delong.delta, 1e-15);
        assert_within(one.standard_error, delong.standard_error.unwrap(), 1e-15);
        assert_eq!(stratified_delong(&pairs, &[0, 1, 0, 1, 0, 1, 1, 0]), None);
    }

    #[test]
    fn strata_of_one_class_are_left_out() {
        let samples = labelled(&[true, false, true, true, false, true, false], &[1.0, 1.0, 9.0, 9.0, -9.0, 5.0, 6.0]);
        // Of the first stratum a tied pair; the last two samples have no stratum.
        let expected = StratifiedAuroc { auroc: 0.5, pairs: 1, strata: 1, strata_left_out: 2, samples_left_out: 5 };
        assert_eq!(stratified_auroc(&samples, &[7, 7, 3, 3, 8]), Some(expected));
        assert_eq!(stratified_auroc(&samples, &[0, 1, 2, 2, 3, 2, 1]), None);
        assert_eq!((stratified_auroc(&samples, &[]), stratified_auroc(&[], &[0])), (None, None));
    }

    #[test]
    fn a_score_that_is_not_finite_has_no_place() {
        let samples = labelled(&[true, false, true, false], &[1.0, 0.0, f64::NAN, 0.0]);
        assert_eq!(stratified_auroc(&samples, &[0, 0, 1, 1]), None);
        assert_eq!(stratified_auroc(&samples, &[0, 0]).map(|stratified| stratified.auroc), Some(1.0));
    }

    proptest! {
        #[test]
        fn the_share_of_pairs_within_strata(
            rows in prop::collection::vec((any::<bool>(), -4_i32..4, 0_usize..4), 0..40),
        ) {
            let samples: Vec<LabelledScore> =
                rows.iter().map(|&(member, score, _)| LabelledScore { score: score.into(), member }).collect();
            let strata: Vec<usize> = rows.iter().map(|row| row.2).collect();
            let (mut won, mut pairs) = (0.0, 0);
            for (member, score, stratum) in rows.iter().filter(|row| row.0) {
                for other in rows.iter().filter(|other| !other.0 && other.2 == *stratum) {
                    pairs += u64::from(*member);
                    won += if *score > other.1 { 1.0 } else if *score == other.1 { 0.5 } else { 0.0 };
                }
            }
            let stratified = stratified_auroc(&samples, &strata);
            prop_assert_eq!(stratified.map_or(0, |stratified| stratified.pairs), pairs);
            if let Some(stratified) = stratified {
                prop_assert!((stratified.auroc - won / pairs as f64).abs() <= 1e-14);
                // An increasing function of the scores changes nothing.
                let cubed: Vec<LabelledScore> =
                    samples.iter().map(|s| LabelledScore { score: s.score.powi(3), member: s.member }).collect();
                prop_assert_eq!(stratified_auroc(&cubed, &strata), Some(stratified));
            }
            if let Ok(area) = auroc(&samples) {
                prop_assert_eq!(stratified_auroc(&samples, &vec![5; samples.len()]).map(|s| s.auroc), Some(area));
            }
        }
    }
}
