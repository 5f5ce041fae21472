//! The AUROC over pairs of the same stratum.

use super::roc::{LabelledScore, Roc, StatisticsError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How well scores separate members from non-members of the same stratum, such as the same source of texts.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::auroc;
    use proptest::prelude::*;

    fn samples(labels: &[u8], scores: &[f64]) -> Vec<LabelledScore> {
        labels.iter().zip(scores).map(|(&label, &score)| LabelledScore { score, member: label == 1 }).collect()
    }

    #[test]
    fn a_difference_between_strata_does_not_count() {
        let samples = samples(&[1, 0, 1, 0, 1, 0, 0, 1], &[3.0, 1.0, 2.0, 0.0, 13.0, 11.0, 12.0, 10.0]);
        assert_eq!(auroc(&samples), Ok(0.625));
        let expected = StratifiedAuroc { auroc: 0.75, pairs: 8, strata: 2, strata_left_out: 0, samples_left_out: 0 };
        assert_eq!(stratified_auroc(&samples, &[0, 0, 0, 0, 1, 1, 1, 1]), Some(expected));
    }

    #[test]
    fn strata_of_one_class_are_left_out() {
        let samples = samples(&[1, 0, 1, 1, 0, 1, 0], &[1.0, 1.0, 9.0, 9.0, -9.0, 5.0, 6.0]);
        // Of the first stratum a tied pair; the last two samples have no stratum.
        let expected = StratifiedAuroc { auroc: 0.5, pairs: 1, strata: 1, strata_left_out: 2, samples_left_out: 5 };
        assert_eq!(stratified_auroc(&samples, &[7, 7, 3, 3, 8]), Some(expected));
        assert_eq!(stratified_auroc(&samples, &[0, 1, 2, 2, 3, 2, 1]), None);
        assert_eq!((stratified_auroc(&samples, &[]), stratified_auroc(&[], &[0])), (None, None));
    }

    #[test]
    fn a_score_that_is_not_finite_has_no_place() {
        let samples = samples(&[1, 0, 1, 0], &[1.0, 0.0, f64::NAN, 0.0]);
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
