//! P-values of single texts, from the scores of known non-members.

use super::rates::{false_positive_budget, fpr_upper};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// The one-sided confidence of the bound on the realised false positive rate.
const CONFIDENCE: f64 = 0.95;

/// Why scores cannot serve as a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CalibrationError {
    /// Too few scores for any p-value to reach 0.05.
    #[error("{size} calibration scores; at least {fewest} are required", fewest = CalibrationScores::FEWEST)]
    TooFew {
        /// Number of scores.
        size: usize,
    },
    /// A score is NaN or infinite.
    #[error("a calibration score is not a finite number")]
    NonFinite,
}

/// The scores of known non-members under one method, one score for each cluster of texts.
///
/// A p-value is valid if the text, were it a non-member, would be exchangeable with the calibration: of the same kind,
/// date and length, and cut the same way. The score of a cluster is the maximum over its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationScores {
    ascending: Vec<f64>,
}

impl CalibrationScores {
    /// Minimum number of scores of a calibration: with 19 the smallest possible p-value is 0.05.
    pub const FEWEST: usize = 19;

    /// A calibration with `scores`, in any order. O(m log m).
    ///
    /// # Errors
    ///
    /// If there are fewer than [`CalibrationScores::FEWEST`] scores, or a score is not finite.
    pub fn new(scores: Vec<f64>) -> Result<Self, CalibrationError> {
        if scores.len() < Self::FEWEST {
            return Err(CalibrationError::TooFew { size: scores.len() });
        }
        if scores.iter().any(|score| !score.is_finite()) {
            return Err(CalibrationError::NonFinite);
        }
        Ok(Self::sorted(scores))
    }

    fn sorted(mut scores: Vec<f64>) -> Self {
        scores.sort_unstable_by(f64::total_cmp);
        Self { ascending: scores }
    }

    /// The scores, from the lowest to the highest.
    #[must_use]
    pub fn ascending(&self) -> &[f64] {
        &self.ascending
    }

    /// The number of scores, m.
    pub fn size(&self) -> usize {
        self.ascending.len()
    }

    /// The smallest possible p-value, and the difference between two adjacent ones: `1 / (m + 1)`.
    pub fn resolution(&self) -> f64 {
        1.0 / (self.size() + 1) as f64
    }

    /// The conformal p-value of a text with this score, by Vovk, Gammerman and Shafer 2005:
    /// `(1 + #{c >= score}) / (m + 1)`, where c are the calibration scores. O(log m).
    ///
    /// For a non-member it is at most t with a probability of at most t, for each t in [0, 1]; ties only make it
    /// larger. A score of NaN has p-value 1.
    pub fn p_value(&self, score: f64) -> f64 {
        let below = self.ascending.partition_point(|&calibration| calibration < score);
        (1 + self.size() - below) as f64 / (self.size() + 1) as f64
    }

    /// The lowest threshold that keeps the false positive rate within `fpr`, for the decision `score > threshold`.
    ///
    /// It is the k-th largest calibration score, where k is the largest integer with `k / (m + 1) <= fpr`: a text is
    /// above it exactly if its p-value is at most `k / (m + 1)`. A product `fpr (m + 1)` within 1e-9 of an integer,
    /// relatively, counts as that integer. `None` if k is 0, that is, if `fpr` is below
    /// [`CalibrationScores::resolution`] or NaN. A bound from 1 on has the threshold of k = m, the lowest calibration
    /// score. O(log m).
    pub fn threshold(&self, fpr: f64) -> Option<CalibratedThreshold> {
        // The budget of m + 1 texts: those of the calibration and the one that is tested.
        let k = false_positive_budget(fpr, self.size() + 1).min(self.size());
        if k == 0 {
            return None;
        }
        let threshold = *self.ascending.get(self.size() - k)?;
        Some(CalibratedThreshold { fpr, threshold, fpr_upper_95: fpr_upper(k, self.size(), CONFIDENCE) })
    }
}

/// A threshold that keeps the false positive rate within a bound, from the scores of known non-members.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CalibratedThreshold {
    /// The bound on the false positive rate, on average over calibrations of this size.
    pub fpr: f64,
    /// A text counts as a member if its score is greater than this.
    pub threshold: f64,
    /// The true false positive rate at this threshold is at most this with 95 % confidence, since this calibration may
    /// lie lower than others: for the k-th largest of m scores, the 0.95 quantile of Beta(k, m + 1 - k). Where scores
    /// are tied, fewer non-members are above the threshold and the bound is conservative.
    pub fpr_upper_95: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;
    use crate::statistics::fixtures::assert_close;
    use crate::statistics::rates::clopper_pearson;
    use proptest::prelude::*;
    use rand_chacha::rand_core::Rng;

    /// Nine scores: fewer than a caller may give.
    fn nine() -> CalibrationScores {
        CalibrationScores::sorted(vec![-2.4, -3.1, -1.4, -2.7, -2.5, -1.6, -2.2, -2.0, -1.9])
    }

    fn nineteen() -> CalibrationScores {
        CalibrationScores::new(vec![
            -3.1, -2.7, -2.5, -2.4, -2.2, -2.0, -1.9, -1.6, -1.4, -1.3, -1.25, -1.2, -1.15, -1.1, -1.05, -1.02, -0.98,
            -0.95, -0.9,
        ])
        .expect("enough scores")
    }

    /// Examples 6 and 7.
    #[test]
    fn p_values_worked_by_hand() {
        for (score, expected) in [(-1.0, 0.1), (-1.5, 0.2), (-2.3, 0.6), (-3.5, 1.0), (-1.4, 0.2)] {
            assert_close(nine().p_value(score), expected);
        }
        let scores = [-0.2, -0.3, -0.5, -0.6, -0.85, -0.97, -1.4, -2.0, -2.6, -3.3];
        let expected = [0.05, 0.05, 0.05, 0.05, 0.05, 0.15, 0.6, 0.75, 0.9, 1.0];
        for (score, expected) in scores.into_iter().zip(expected) {
            assert_close(nineteen().p_value(score), expected);
        }
        assert_close(nineteen().resolution(), 0.05);
        assert_eq!(nineteen().size(), 19);
        assert_eq!(nineteen().p_value(f64::NAN), 1.0);
        assert_eq!(nineteen().p_value(f64::INFINITY), 0.05);
    }

    /// Example 6; the bound is `scipy.stats.beta.ppf(0.95, 2, 8)`.
    #[test]
    fn a_threshold_worked_by_hand() {
        let threshold = nine().threshold(0.2).expect("two of ten");
        assert_eq!(threshold.threshold, -1.6);
        assert_close(threshold.fpr_upper_95, NINE_UPPER);
        assert_eq!(nine().threshold(0.0999), None);
        assert_eq!(nineteen().threshold(0.05).expect("one of twenty").threshold, -0.9);
    }

    const NINE_UPPER: f64 = 0.429135547031434;

    #[test]
    fn products_that_are_whole_but_for_rounding() {
        // In binary, 0.29 * 100 is 28.999999999999996.
        let scores = CalibrationScores::new((0..99).map(f64::from).collect()).expect("enough scores");
        assert_eq!(scores.threshold(0.29).expect("29 of 100").threshold, 70.0);
        assert_eq!(scores.threshold(0.01).expect("one of 100").threshold, 98.0);
    }

    #[test]
    fn bounds_from_one_on_and_invalid_ones() {
        for fpr in [0.95, 0.99, 1.0, 3.0, f64::INFINITY] {
            let threshold = nineteen().threshold(fpr).expect("all scores");
            assert_eq!(threshold.threshold, -3.1);
            assert!(threshold.fpr_upper_95 > 0.99 && threshold.fpr_upper_95 < 1.0);
        }
        for fpr in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(nineteen().threshold(fpr), None);
        }
    }

    #[test]
    fn scores_that_cannot_calibrate() {
        assert_eq!(CalibrationScores::new(vec![0.0; 18]), Err(CalibrationError::TooFew { size: 18 }));
        let message = CalibrationError::TooFew { size: 18 }.to_string();
        assert_eq!(message, "18 calibration scores; at least 19 are required");
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut scores = vec![0.0; 19];
            scores[7] = wrong;
            assert_eq!(CalibrationScores::new(scores), Err(CalibrationError::NonFinite));
        }
    }

    #[test]
    fn equal_scores_are_no_evidence() {
        let equal = CalibrationScores::new(vec![0.0; 30]).expect("enough scores");
        assert_eq!(equal.p_value(0.0), 1.0);
        assert_eq!(equal.p_value(-0.0), 1.0);
        assert_eq!(equal.threshold(0.5).expect("15 of 31").threshold, 0.0);
    }

    #[test]
    fn a_threshold_survives_json() {
        let threshold = nineteen().threshold(0.1).expect("two of twenty");
        let text = serde_json::to_string(&threshold).expect("json");
        assert_eq!(serde_json::from_str::<CalibratedThreshold>(&text).expect("a threshold"), threshold);
    }

    /// 10,000 draws of 19 calibration scores and one more non-member, of `values` equally likely scores. At each level
    /// t, the number of p-values up to t is compared with Binomial(10,000, t): the lower end of Clopper and Pearson's
    /// interval is above t exactly if that number has a probability below one in a million. Over the 19 levels and both
    /// tests, valid p-values would fail under a new seed with a probability of at most 4e-5.
    fn assert_super_uniform(values: u64) {
        let mut random = stream(values, "super-uniform");
        let mut score = || (random.next_u64() % values) as f64;
        let draws: Vec<f64> = (0..10_000)
            .map(|_| {
                let calibration = CalibrationScores::new((0..19).map(|_| score()).collect()).expect("enough scores");
                calibration.p_value(score())
            })
            .collect();
        for rank in 1..=19 {
            let level = f64::from(rank) / 20.0;
            let within = draws.iter().filter(|&&p| p <= level).count();
            let [low, _] = clopper_pearson(within, 10_000, 1.0 - 2e-6).expect("an interval");
            assert!(low <= level, "{within} of 10,000 p-values are at most {level}");
        }
    }

    #[test]
    fn p_values_of_exchangeable_scores_are_super_uniform() {
        assert_super_uniform(1 << 40);
    }

    #[test]
    fn p_values_of_exchangeable_tied_scores_are_super_uniform() {
        assert_super_uniform(6);
    }

    /// Few distinct scores, so that ties are common.
    fn any_scores(size: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((-20_i32..20).prop_map(f64::from), size)
    }

    proptest! {
        #[test]
        fn a_monotone_change_of_the_scores_changes_no_p_value(scores in any_scores(19..80), tested in -21_i32..21) {
            let tested = f64::from(tested);
            let change = |score: f64| (score / 7.0).exp() - 3.0;
            let changed = scores.iter().copied().map(change).collect();
            let before = CalibrationScores::new(scores).expect("enough scores").p_value(tested);
            let after = CalibrationScores::new(changed).expect("enough scores").p_value(change(tested));
            prop_assert_eq!(before, after);
        }

        #[test]
        fn a_p_value_is_that_of_the_definition(scores in any_scores(19..80), tested in -21_i32..21) {
            let tested = f64::from(tested);
            let reached = scores.iter().filter(|&&score| score >= tested).count();
            let expected = (1 + reached) as f64 / (1 + scores.len()) as f64;
            prop_assert_eq!(CalibrationScores::new(scores).expect("enough scores").p_value(tested), expected);
        }

        #[test]
        fn a_threshold_decides_as_the_p_value(scores in any_scores(19..80), rank in 0.0..1.0, tested in -21_i32..21) {
            let calibration = CalibrationScores::new(scores).expect("enough scores");
            let tested = f64::from(tested);
            let k = 1 + (rank * calibration.size() as f64) as usize;
            let fpr = k as f64 / (calibration.size() + 1) as f64;
            let threshold = calibration.threshold(fpr).expect("at least one of m + 1").threshold;
            prop_assert_eq!(tested > threshold, calibration.p_value(tested) <= fpr);
        }
    }
}
