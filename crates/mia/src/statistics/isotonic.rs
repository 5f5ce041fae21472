//! Likelihood ratio of a score among members and non-members, fitted so that it only grows with the score.

use super::roc::{LabelledScore, StatisticsError};
use std::collections::BTreeSet;

/// Neighbouring scores with one fitted share of members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsotonicBlock {
    pub low: f64,
    pub high: f64,
    pub members: usize,
    pub non_members: usize,
}

impl IsotonicBlock {
    /// The likelihood of the block's scores among members divided by that among non-members, where there are
    /// `total_members` and `total_non_members` samples in all blocks.
    ///
    /// `((k1 + 1/2) / (n1 + 1)) / ((k0 + 1/2) / (n0 + 1))` with k of the n samples of each class in the block: one half
    /// is added to each count, so that it is positive and finite.
    pub fn likelihood_ratio(&self, total_members: usize, total_non_members: usize) -> f64 {
        let likelihood = |count: usize, total: usize| (count as f64 + 0.5) / (total as f64 + 1.0);
        likelihood(self.members, total_members) / likelihood(self.non_members, total_non_members)
    }

    fn size(&self) -> usize {
        self.members + self.non_members
    }

    /// Returns true if its share of members is at least that of `next`, exactly.
    fn violates(&self, next: &IsotonicBlock) -> bool {
        self.members as u128 * next.size() as u128 >= next.members as u128 * self.size() as u128
    }

    /// Both as one block, where `next` has the higher scores.
    fn merged(&self, next: &IsotonicBlock) -> IsotonicBlock {
        IsotonicBlock {
            low: self.low,
            high: next.high,
            members: self.members + next.members,
            non_members: self.non_members + next.non_members,
        }
    }
}

/// The shares of members that increase with the score and fit best, by least squares and by likelihood: blocks in
/// ascending order of score and of share. Empty without samples.
///
/// By pooling adjacent violators (Ayer et al. 1955), in any order of the samples; equal scores, and neighbours with
/// equal shares, are in one block. O(n log n).
///
/// # Errors
///
/// If a score is not finite.
pub fn isotonic(samples: &[LabelledScore]) -> Result<Vec<IsotonicBlock>, StatisticsError> {
    if samples.iter().any(|sample| !sample.score.is_finite()) {
        return Err(StatisticsError::NonFinite);
    }
    let mut ascending = samples.to_vec();
    ascending.sort_unstable_by(|a, b| a.score.total_cmp(&b.score));
    let mut blocks: Vec<IsotonicBlock> = Vec::new();
    for mut block in ascending.chunk_by(|a, b| a.score == b.score).filter_map(tied) {
        while let Some(previous) = blocks.pop_if(|previous| previous.violates(&block)) {
            block = previous.merged(&block);
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Samples with equal scores as a block.
fn tied(samples: &[LabelledScore]) -> Option<IsotonicBlock> {
    let members = samples.iter().filter(|sample| sample.member).count();
    Some(IsotonicBlock {
        low: samples.first()?.score,
        high: samples.last()?.score,
        members,
        non_members: samples.len() - members,
    })
}

/// The probability of membership after evidence with this likelihood ratio, from the probability `prior` before it, by
/// Bayes' theorem. In [0, 1].
///
/// A prior outside [0, 1] counts as the nearest bound and a negative likelihood ratio as 0; NaN counts as 0 for both.
pub fn posterior(likelihood_ratio: f64, prior: f64) -> f64 {
    let prior = bounded(prior, 0.0, 1.0);
    // Positive and finite, so that neither 0/0 nor 0 times infinity occurs.
    let likelihood_ratio = bounded(likelihood_ratio, f64::MIN_POSITIVE, f64::MAX);
    1.0 / (1.0 + (1.0 - prior) / (likelihood_ratio * prior))
}

/// The nearest number from `low` to `high`, and `low` for NaN.
fn bounded(value: f64, low: f64, high: f64) -> f64 {
    if value.is_nan() { low } else { value.clamp(low, high) }
}

/// The posterior of each sample, from the samples of the other folds only (Zadrozny and Elkan 2002).
///
/// A sample in fold f has the likelihood ratio of its block of the isotonic fit to the samples that are not in f:
/// the block with the greatest `low` that is at most its score, else the first. `folds` are the folds of the samples,
/// by any numbers; where one list is longer, its rest does not count. O(n log n) for each fold.
///
/// # Errors
///
/// If a score is not finite, or all samples of a class are in one fold.
pub fn out_of_fold_posteriors(
    samples: &[LabelledScore],
    folds: &[usize],
    prior: f64,
) -> Result<Vec<f64>, StatisticsError> {
    let folded: Vec<(LabelledScore, usize)> = samples.iter().copied().zip(folds.iter().copied()).collect();
    let distinct: BTreeSet<usize> = folded.iter().map(|(_, fold)| *fold).collect();
    let mut posteriors = vec![0.0; folded.len()];
    for fold in distinct {
        let others: Vec<LabelledScore> =
            folded.iter().filter(|(_, other)| *other != fold).map(|(sample, _)| *sample).collect();
        let steps = likelihood_ratios(&others)?;
        let inside = folded.iter().zip(&mut posteriors).filter(|((_, other), _)| *other == fold);
        for ((sample, _), value) in inside {
            *value = posterior(likelihood_ratio(&steps, sample.score), prior);
        }
    }
    Ok(posteriors)
}

/// The lowest score and the likelihood ratio of each block of the fit to `samples`, in ascending order.
fn likelihood_ratios(samples: &[LabelledScore]) -> Result<Vec<(f64, f64)>, StatisticsError> {
    let members = samples.iter().filter(|sample| sample.member).count();
    let non_members = samples.len() - members;
    match (members, non_members) {
        (0, _) => Err(StatisticsError::NoMembers),
        (_, 0) => Err(StatisticsError::NoNonMembers),
        _ => {
            let step = |block: IsotonicBlock| (block.low, block.likelihood_ratio(members, non_members));
            Ok(isotonic(samples)?.into_iter().map(step).collect())
        }
    }
}

/// The likelihood ratio of the block for a score; 1 without blocks.
fn likelihood_ratio(steps: &[(f64, f64)], score: f64) -> f64 {
    let reached = steps.partition_point(|(low, _)| *low <= score);
    steps.get(reached.saturating_sub(1)).map_or(1.0, |(_, ratio)| *ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{shuffle, stream};
    use crate::statistics::fixtures::{assert_close, labelled as by_label};
    use proptest::prelude::*;

    fn labelled(scores: &[f64], members: &[u8]) -> Vec<LabelledScore> {
        by_label(&members.iter().map(|member| *member == 1).collect::<Vec<_>>(), scores)
    }

    /// The fitted share of members, in [0, 1].
    fn share(block: &IsotonicBlock) -> f64 {
        block.members as f64 / block.size() as f64
    }

    fn fitted(blocks: &[IsotonicBlock], score: f64) -> f64 {
        let block = blocks.iter().find(|block| block.low <= score && score <= block.high);
        share(block.expect("a block of every score"))
    }

    /// Example 12.
    #[test]
    fn blocks_worked_by_hand() {
        let samples = labelled(&[-3.1, -2.7, -2.2, -2.0, -1.7, -1.5, -1.2, -0.9], &[0, 0, 1, 0, 0, 1, 1, 1]);
        let blocks = isotonic(&samples).expect("finite");
        assert_eq!(blocks.len(), 3);
        let third = 1.0 / 3.0;
        for (sample, share) in samples.iter().zip([0.0, 0.0, third, third, third, 1.0, 1.0, 1.0]) {
            assert_close(fitted(&blocks, sample.score), share);
        }
        let expected = [(-3.1, -2.7, 0.2, 0.0217391304347826), (-2.2, -1.7, 0.6, 0.0625), (-1.5, -0.9, 7.0, 0.4375)];
        for (block, (low, high, ratio, after)) in blocks.iter().zip(expected) {
            assert_eq!((block.low, block.high), (low, high));
            assert_close(block.likelihood_ratio(4, 4), ratio);
            assert_close(posterior(block.likelihood_ratio(4, 4), 0.1), after);
        }
    }

    const SCORES: [f64; 16] = [0.3, 0.1, 0.3, 0.7, 0.5, 0.5, 0.9, 0.2, 0.2, 0.8, 0.6, 0.7, 0.4, 0.1, 0.9, 0.3];
    const MEMBERS: [u8; 16] = [1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1];
    const FOLDS: [usize; 16] = [0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 2];

    /// Against `sklearn.isotonic.IsotonicRegression().fit_transform(scores, members)`.
    #[test]
    fn as_scikit_learn_fits() {
        let blocks = isotonic(&labelled(&SCORES, &MEMBERS)).expect("finite");
        for (score, share) in SCORES.into_iter().zip(SHARES) {
            assert_close(fitted(&blocks, score), share);
        }
    }

    const SHARES: [f64; 16] = [
        0.444444444444444,
        0.0,
        0.444444444444444,
        0.666666666666667,
        0.444444444444444,
        0.444444444444444,
        1.0,
        0.444444444444444,
        0.444444444444444,
        0.666666666666667,
        0.444444444444444,
        0.666666666666667,
        0.444444444444444,
        0.0,
        1.0,
        0.444444444444444,
    ];

    /// By the definition, with the blocks of scikit-learn's `IsotonicRegression`: scores of the other folds with equal
    /// fitted values.
    #[test]
    fn out_of_fold_as_with_scikit_learn() {
        let samples = labelled(&SCORES, &MEMBERS);
        let posteriors = out_of_fold_posteriors(&samples, &FOLDS, 0.3).expect("both classes");
        assert_eq!(posteriors.len(), 16);
        for (actual, expected) in posteriors.into_iter().zip(POSTERIORS) {
            assert_close(actual, expected);
        }
    }

    const POSTERIORS: [f64; 16] = [
        0.222222222222222,
        0.109090909090909,
        0.320792079207921,
        0.320792079207921,
        0.3,
        0.3,
        0.72,
        0.0684410646387833,
        0.3,
        0.72,
        0.320792079207921,
        0.375,
        0.222222222222222,
        0.0684410646387833,
        0.642857142857143,
        0.3,
    ];

    #[test]
    fn samples_without_a_fit() {
        assert_eq!(isotonic(&[]), Ok(vec![]));
        assert_eq!(isotonic(&labelled(&[1.0, f64::NAN], &[0, 1])), Err(StatisticsError::NonFinite));
        assert_eq!(out_of_fold_posteriors(&[], &[], 0.1), Ok(vec![]));
        let samples = labelled(&[1.0, 2.0, 3.0, 4.0], &[0, 0, 1, 1]);
        let fails = |folds: &[usize]| out_of_fold_posteriors(&samples, folds, 0.1).expect_err("one class");
        assert_eq!(fails(&[0, 1, 0, 0]), StatisticsError::NoMembers);
        assert_eq!(fails(&[7, 7, 8, 7]), StatisticsError::NoNonMembers);
        let infinite = labelled(&[1.0, 2.0, 3.0, f64::INFINITY], &[0, 0, 1, 1]);
        assert_eq!(out_of_fold_posteriors(&infinite, &[0, 1, 0, 1], 0.1), Err(StatisticsError::NonFinite));
    }

    #[test]
    fn one_score_is_one_block() {
        let blocks = isotonic(&labelled(&[2.0; 5], &[1, 0, 1, 0, 0])).expect("finite");
        assert_eq!(blocks, [IsotonicBlock { low: 2.0, high: 2.0, members: 2, non_members: 3 }]);
        // Zero has two signs.
        assert_eq!(isotonic(&labelled(&[0.0, -0.0], &[0, 1])).expect("finite").len(), 1);
    }

    #[test]
    fn posteriors_of_extreme_values() {
        assert_eq!(posterior(7.0, 0.0), 0.0);
        assert_eq!(posterior(7.0, 1.0), 1.0);
        assert_close(posterior(1.0, 0.3), 0.3);
        let extremes = [0.0, -1.0, 1e-320, 1e-9, 0.5, 1.0, 2.0, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        for ratio in extremes {
            for prior in extremes {
                assert!((0.0..=1.0).contains(&posterior(ratio, prior)), "{ratio} at {prior}");
            }
        }
    }

    /// Few distinct scores, so that ties are common.
    fn any_samples() -> impl Strategy<Value = Vec<LabelledScore>> {
        let sample =
            (-8_i32..8, any::<bool>()).prop_map(|(score, member)| LabelledScore { score: f64::from(score), member });
        prop::collection::vec(sample, 1..60)
    }

    /// The fit by its min-max formula: the largest, over the scores up to this one, of the smallest mean from there to
    /// a score from this one on.
    fn min_max(samples: &[LabelledScore], score: f64) -> f64 {
        let mean = |low: f64, high: f64| {
            let inside = samples.iter().filter(|sample| low <= sample.score && sample.score <= high);
            let (count, members) =
                inside.fold((0, 0), |(count, members), sample| (count + 1, members + i32::from(sample.member)));
            f64::from(members) / f64::from(count)
        };
        let scores = || samples.iter().map(|sample| sample.score);
        let least = |low: f64| scores().filter(|&high| high >= score).map(|high| mean(low, high)).fold(1.0, f64::min);
        scores().filter(|&low| low <= score).map(least).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn the_fit_is_that_of_the_min_max_formula(samples in any_samples()) {
            let blocks = isotonic(&samples).expect("finite");
            prop_assert!(blocks.windows(2).all(|pair| pair[0].high < pair[1].low && share(&pair[0]) < share(&pair[1])));
            prop_assert_eq!(blocks.iter().map(IsotonicBlock::size).sum::<usize>(), samples.len());
            for sample in &samples {
                prop_assert!((fitted(&blocks, sample.score) - min_max(&samples, sample.score)).abs() <= 1e-12);
            }
        }

        #[test]
        fn permuted_samples_have_permuted_posteriors(samples in any_samples(), seed: u64) {
            let folds: Vec<usize> = (0..samples.len()).map(|index| index % 3).collect();
            let mut order: Vec<usize> = (0..samples.len()).collect();
            shuffle(&mut order, &mut stream(seed, "permutation"));
            let permuted: Vec<LabelledScore> = order.iter().map(|&index| samples[index]).collect();
            let permuted_folds: Vec<usize> = order.iter().map(|&index| folds[index]).collect();
            let before = out_of_fold_posteriors(&samples, &folds, 0.2);
            let after = out_of_fold_posteriors(&permuted, &permuted_folds, 0.2);
            let expected = before.map(|values| order.iter().map(|&index| values[index]).collect::<Vec<_>>());
            prop_assert_eq!(expected, after);
        }
    }
}
