//! Dataset inference (Maini et al. 2024): many methods as one score, whose weights are learnt on one half of the clusters and tested
//! on the other.
//!
//! A cluster's label has no part in its own combined score, so that where labels are exchangeable a test on the other half holds its
//! level, however the weights were learnt. Which half is which is drawn several times; the p-values of these splits depend on each other,
//! and twice their median is a p-value under any dependence (Meinshausen, Meier and Bühlmann 2009).

use super::delong::PairedScore;
use super::features::{FeatureRows, standardised};
use super::hypothesis::{HypothesisError, welch};
use super::logistic::LogisticFit;
use super::max_t::{RankColumn, max_t};
use super::stratified::stratified_delong;
use crate::random::{shuffle, stream};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Number of splits.
const SPLITS: usize = 20;

/// Of a feature, the share of the values at each end that count as the value next to them.
const CLIPPED: f64 = 0.025;

/// Minimum number of clusters in a list: both halves of it have a variance.
const FEWEST: usize = 4;

/// Permutations of labels by which the difference to a control is tested.
const PERMUTATIONS: usize = 9_999;

/// The features of clusters of two lists.
#[derive(Clone, Copy, Debug)]
pub struct InferenceFeatures<'a> {
    /// True for each cluster of the first list.
    pub labels: &'a [bool],
    /// The scores of each method, one for each cluster, all finite.
    pub features: &'a [Vec<f64>],
    /// The same under a control model, by the methods that it can compute; `None` without a control.
    pub control: Option<&'a [Vec<f64>]>,
    /// Decides the splits and the permutations.
    pub seed: u64,
}

/// Results over all splits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatasetInference {
    pub splits: Vec<InferenceSplit>,
    /// The mean weight of each feature over the splits, of the standardised feature.
    pub weights: Vec<f64>,
    /// Number of clusters of each list in the half that is tested.
    pub tested: [usize; 2],
}

/// One split: the combined scores on the half that the weights were not learnt on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InferenceSplit {
    /// That the first list scores no higher, by Welch's test, one-sided; 1 where no score varies.
    pub p_value: f64,
    /// The area under the ROC curve.
    pub auroc: f64,
    /// By DeLong.
    pub standard_error: f64,
    /// The same clusters under the control; absent without one, or where it computes none of the methods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlSplit>,
}

/// The combined scores under a control, by weights that were learnt on the control's own scores of the other half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ControlSplit {
    pub auroc: f64,
    /// AUROC under the model less that under the control.
    pub difference: f64,
    /// Of the difference, by DeLong.
    pub standard_error: f64,
    /// That the difference is at most 0, by permutations of the labels, one-sided; 1 where nothing varies.
    pub p_value: f64,
}

/// Learns weights on one half of the clusters of each list and tests the combined score on the other, over 20 splits.
///
/// HalvedClusters s shuffles the clusters of the first list, then those of the second, and learns on the first `floor(n / 2)` of each. Features
/// are clipped to the values of that half, of both lists together, that leave `floor(n / 40)` at each end, then standardised on it. The
/// weights are those of a logistic regression with a ridge penalty of half the sum of their squares.
///
/// The result is of no use once `keep_going` returns false. O(splits n width^2) for each step of Newton's method.
///
/// # Errors
/// If a list has fewer than four clusters, or a feature is not finite or of another length.
pub fn dataset_inference(
    inference: &InferenceFeatures,
    keep_going: &dyn Fn() -> bool,
) -> Result<DatasetInference, HypothesisError> {
    let InferenceFeatures { labels, features, control, .. } = *inference;
    let first = labels.iter().filter(|label| **label).count();
    if first.min(labels.len() - first) < FEWEST {
        return Err(HypothesisError::TooFewForHalves);
    }
    let mut all = features.iter().chain(control.unwrap_or_default());
    if features.is_empty() || all.any(|column| column.len() != labels.len() || !column.iter().all(|v| v.is_finite())) {
        return Err(HypothesisError::NonFinite);
    }
    let (mut splits, mut weights, mut tested) = (Vec::with_capacity(SPLITS), vec![0.0; features.len()], [0, 0]);
    for number in 0..SPLITS {
        if !keep_going() {
            break;
        }
        let split = HalvedClusters::new(inference, number);
        let (combined, learnt) = split.combined(labels, features);
        weights.iter_mut().zip(learnt).for_each(|(sum, weight)| *sum += weight / SPLITS as f64);
        let control = control.filter(|columns| !columns.is_empty()).map(|columns| split.combined(labels, columns).0);
        splits.push(split.test(&combined, control.as_deref(), inference.seed, keep_going)?);
        tested = [true, false].map(|side| split.labels.iter().filter(|label| **label == side).count());
    }
    Ok(DatasetInference { splits, weights, tested })
}

/// Twice the value of which half of `p_values` are at most as large, at most 1: a p-value whatever their dependence. If each is one,
/// then of B p-values half are at most a/2 with a probability of at most a, by Markov's inequality (Meinshausen, Meier and Bühlmann
/// 2009, with gamma = 1/2). `None` without any.
pub fn twice_median(p_values: impl Iterator<Item = f64>) -> Option<f64> {
    lower_median(p_values).map(|median| (2.0 * median).min(1.0))
}

/// The lower median.
fn lower_median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

impl DatasetInference {
    /// Twice the median p-value; `None` without a split.
    pub fn p_value(&self) -> Option<f64> {
        twice_median(self.splits.iter().map(|split| split.p_value))
    }

    /// The lower median over splits of a number; `None` if one of them has none.
    pub fn median(&self, number: impl Fn(&InferenceSplit) -> Option<f64>) -> Option<f64> {
        let numbers: Option<Vec<f64>> = self.splits.iter().map(number).collect();
        lower_median(numbers?.into_iter())
    }
}

/// The clusters of both lists in two halves.
struct HalvedClusters {
    learning: Vec<usize>,
    testing: Vec<usize>,
    /// The labels of the half that is tested.
    labels: Vec<bool>,
}

impl HalvedClusters {
    fn new(inference: &InferenceFeatures, number: usize) -> Self {
        let mut random = stream(inference.seed, &format!("halves of split {number}"));
        let (mut learning, mut testing) = (Vec::new(), Vec::new());
        for side in [true, false] {
            let mut list: Vec<usize> =
                (0..inference.labels.len()).filter(|&place| inference.labels[place] == side).collect();
            shuffle(&mut list, &mut random);
            let (first, second) = list.split_at(list.len() / 2);
            learning.extend_from_slice(first);
            testing.extend_from_slice(second);
        }
        learning.sort_unstable();
        testing.sort_unstable();
        let labels = testing.iter().map(|&place| inference.labels[place]).collect();
        Self { learning, testing, labels }
    }

    /// The combined scores of the half that is tested, and the weights.
    fn combined(&self, labels: &[bool], features: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
        let mut rows = FeatureRows::zero(labels.len(), features.len());
        let strata = vec![0; labels.len()];
        for (column, values) in features.iter().enumerate() {
            let [low, high] = self.bounds(values);
            let clipped: Vec<Option<f64>> = values.iter().map(|value| Some(value.clamp(low, high))).collect();
            rows.set_column(column, &standardised(&clipped, &self.learning, &strata));
        }
        let fit = LogisticFit::new(&rows, labels, &self.learning);
        (fit.log_odds(&rows, &self.testing), fit.weights)
    }

    /// The bounds that a feature is clipped to.
    fn bounds(&self, values: &[f64]) -> [f64; 2] {
        let mut learnt: Vec<f64> = self.learning.iter().map(|&place| values[place]).collect();
        learnt.sort_by(f64::total_cmp);
        let outside = (CLIPPED * learnt.len() as f64) as usize;
        [learnt[outside], learnt[learnt.len() - 1 - outside]]
    }

    fn test(
        &self,
        combined: &[f64],
        control: Option<&[f64]>,
        seed: u64,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<InferenceSplit, HypothesisError> {
        let side = |side: bool| -> Vec<f64> {
            let of_side = combined.iter().zip(&self.labels).filter(|(_, label)| **label == side);
            of_side.map(|(score, _)| *score).collect()
        };
        let (above_half, standard_error) = self.difference(&vec![0.0; combined.len()], combined)?;
        let control = control.map(|control| {
            let (control_above_half, _) = self.difference(&vec![0.0; control.len()], control)?;
            let (difference, standard_error) = self.difference(control, combined)?;
            let [target, alone] =
                [combined, control].map(|scores| scores.iter().copied().map(Some).collect::<Vec<_>>());
            let strata = vec![0; self.labels.len()];
            let column = RankColumn::difference(&target, &alone, &strata);
            let test = max_t(&self.labels, &strata, &[column], PERMUTATIONS, seed, keep_going);
            let p_value = test.first().copied().flatten().map_or(1.0, |test| test.p_value);
            Ok(ControlSplit { auroc: 0.5 + control_above_half, difference, standard_error, p_value })
        });
        Ok(InferenceSplit {
            p_value: welch(&side(true), &side(false)).map_or(1.0, |test| test.p_value),
            auroc: 0.5 + above_half,
            standard_error,
            control: control.transpose()?,
        })
    }

    /// The AUROC of the second score less that of the first, with its standard error.
    fn difference(&self, first: &[f64], second: &[f64]) -> Result<(f64, f64), HypothesisError> {
        let scores = self.labels.iter().zip(first.iter().zip(second));
        let samples: Vec<PairedScore> =
            scores.map(|(&member, (&first, &second))| PairedScore { member, first, second }).collect();
        let difference = stratified_delong(&samples, &vec![0; samples.len()]).ok_or(HypothesisError::NonFinite)?;
        Ok((difference.delta, difference.standard_error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::assert_within;
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::Rng;
    use serde_json::Value;

    fn inferred(labels: &[bool], features: &[Vec<f64>], control: Option<&[Vec<f64>]>, seed: u64) -> DatasetInference {
        dataset_inference(&InferenceFeatures { labels, features, control, seed }, &|| true).expect("two lists")
    }

    /// Numbers by scipy (`tests/interop/dataset_inference.py`). Newton's method ends where the gradient is 1e-10 of the first, so weights
    /// have some nine digits.
    #[test]
    fn splits_are_those_of_scipy() {
        let case = include_str!("../../../../tests/fixtures/dataset_inference.json");
        let case: Value = serde_json::from_str(case).expect("JSON");
        let numbers = |value: &Value| -> Vec<f64> {
            value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
        };
        let labels: Vec<bool> = numbers(&case["labels"]).iter().map(|label| *label == 1.0).collect();
        let features: Vec<Vec<f64>> = case["features"].as_array().expect("a list").iter().map(numbers).collect();
        let result = inferred(&labels, &features, None, 11);
        assert_eq!((result.splits.len(), result.tested), (SPLITS, [16, 22]));
        for (split, expected) in result.splits.iter().zip(case["splits"].as_array().expect("a list")) {
            assert_within(split.p_value, expected["p_value"].as_f64().expect("a number"), 1e-8);
            assert_within(split.auroc, expected["auroc"].as_f64().expect("a number"), 1e-12);
            assert_within(split.standard_error, expected["standard_error"].as_f64().expect("a number"), 1e-12);
        }
        for (weight, expected) in result.weights.iter().zip(numbers(&case["weights"])) {
            assert_within(*weight, expected, 1e-8);
        }
        assert_within(result.p_value().expect("splits"), case["p_value"].as_f64().expect("a number"), 1e-8);
    }

    /// Approximately normal: the sum of twelve uniform numbers less 6.
    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| f64::from(random.next_u32()) / 2f64.powi(32)).sum::<f64>() - 6.0
    }

    /// Five correlated features of 2 `each` clusters, the first list by `shift` higher in two of them.
    fn drawn(random: &mut ChaCha8Rng, each: usize, shift: f64) -> (Vec<bool>, Vec<Vec<f64>>) {
        let labels: Vec<bool> = (0..2 * each).map(|place| place % 2 == 0).collect();
        let common: Vec<f64> = labels.iter().map(|_| normal(random)).collect();
        let mut feature = |place: usize| -> Vec<f64> {
            let shift = if place < 2 { shift } else { 0.0 };
            let value = |(common, label): (&f64, &bool)| common + normal(random) + shift * f64::from(u8::from(*label));
            common.iter().zip(&labels).map(value).collect()
        };
        let features = (0..5).map(&mut feature).collect();
        (labels, features)
    }

    fn share_below(draws: usize, each: usize, shift: f64, level: f64) -> f64 {
        let mut random = stream(3, "simulated lists");
        let is_low = |_: &usize| {
            let (labels, features) = drawn(&mut random, each, shift);
            inferred(&labels, &features, None, 0).p_value().is_some_and(|p_value| p_value <= level)
        };
        (0..draws).filter(is_low).count() as f64 / draws as f64
    }

    /// At level .01 at most .01 and two standard errors of 400 draws; where there is something to find it is found.
    #[test]
    fn the_level_holds_over_null_draws_and_there_is_power() {
        let level = 0.01;
        assert!(share_below(400, 20, 0.0, level) <= level + 2.0 * (level * (1.0 - level) / 400.0_f64).sqrt());
        assert!(share_below(400, 20, 0.0, 0.05) <= 0.05 + 2.0 * (0.05_f64 * 0.95 / 400.0).sqrt());
        assert!(share_below(20, 60, 1.5, level) > 0.9);
    }

    #[test]
    fn a_control_that_finds_as_much_leaves_no_difference() {
        let (labels, features) = drawn(&mut stream(4, "simulated lists"), 40, 1.5);
        let same = inferred(&labels, &features, Some(&features), 0);
        for split in &same.splits {
            let control = split.control.expect("a control");
            assert_eq!((control.auroc, control.difference, control.p_value), (split.auroc, 0.0, 1.0));
        }
        let noise: Vec<Vec<f64>> = drawn(&mut stream(5, "simulated lists"), 40, 0.0).1;
        let beside_noise = inferred(&labels, &features, Some(&noise), 0);
        let p_values = beside_noise.splits.iter().filter_map(|split| Some(split.control?.p_value));
        assert!(twice_median(p_values).is_some_and(|p_value| p_value < 0.01));
        assert_eq!(beside_noise.weights, same.weights);
        assert!(inferred(&labels, &features, Some(&[]), 0).splits.iter().all(|split| split.control.is_none()));
    }

    #[test]
    fn twice_the_median_is_at_most_one() {
        assert_eq!(twice_median([0.04, 0.01, 0.02, 0.03].into_iter()), Some(0.04));
        assert_eq!(twice_median([0.9, 0.8].into_iter()), Some(1.0));
        assert_eq!(twice_median(std::iter::empty()), None);
    }

    #[test]
    fn what_cannot_be_halved_is_an_error() {
        let labels = [true, true, true, true, false, false, false];
        let failed = |labels: &[bool], features: &[Vec<f64>]| {
            dataset_inference(&InferenceFeatures { labels, features, control: None, seed: 0 }, &|| true).err()
        };
        assert_eq!(failed(&labels, &[vec![0.0; 7]]), Some(HypothesisError::TooFewForHalves));
        let eight = [true, false, true, false, true, false, true, false];
        assert_eq!(failed(&eight, &[vec![0.0; 7]]), Some(HypothesisError::NonFinite));
        assert_eq!(failed(&eight, &[vec![f64::NAN; 8]]), Some(HypothesisError::NonFinite));
        assert_eq!(failed(&eight, &[]), Some(HypothesisError::NonFinite));
        // Nothing varies, so nothing is shown.
        assert_eq!(inferred(&eight, &[vec![1.5; 8]], None, 0).p_value(), Some(1.0));
    }
}
