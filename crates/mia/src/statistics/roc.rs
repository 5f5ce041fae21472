//! The receiver operating characteristic, the area under it, and the operating points with a bounded false positive rate.

use super::rates::{clopper_pearson, false_positive_budget};
use serde::Serialize;
use thiserror::Error;
use utoipa::ToSchema;

/// The score of a text with known membership.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelledScore {
    /// A higher score means: more likely a member.
    pub score: f64,
    /// True if the text is a member of the training data.
    pub member: bool,
}

/// Why samples have no ROC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StatisticsError {
    #[error("no sample is a member; comparing the classes requires at least one of each")]
    NoMembers,
    #[error("no sample is a non-member; comparing the classes requires at least one of each")]
    NoNonMembers,
    /// A score is NaN or infinite.
    #[error("a score is not a finite number")]
    NonFinite,
}

/// One point of the ROC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct RocPoint {
    /// Share of the non-members that are classified as members.
    pub fpr: f64,
    /// Share of the members that are recognised.
    pub tpr: f64,
    /// A text counts as a member if its score is at least this; absent at the origin, where no text does.
    pub threshold: Option<f64>,
}

/// The operating point for a bound on the false positive rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct TprAtFpr {
    /// The bound on the false positive rate.
    pub fpr: f64,
    /// The largest true positive rate whose false positive rate is within the bound.
    pub tpr: f64,
    /// A text counts as a member if its score is at least this: of the thresholds that reach this rate, the one with
    /// the fewest false positives. Absent if no threshold is within the bound.
    pub threshold: Option<f64>,
    /// Number of non-members that may be classified as members; at 0 the point depends only on the highest non-member.
    pub false_positive_budget: usize,
    /// Clopper-Pearson interval of `tpr`, 95 % unless another confidence is requested, treating the threshold as given.
    pub interval: [f64; 2],
}

/// The samples with the same score, and the number of samples above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tie {
    pub score: f64,
    pub members: usize,
    pub non_members: usize,
    pub members_above: usize,
    pub non_members_above: usize,
}

impl Tie {
    /// Members that are classified as such with this score as the threshold.
    pub fn true_positives(&self) -> usize {
        self.members_above + self.members
    }

    /// Non-members that are classified as members with this score as the threshold.
    pub fn false_positives(&self) -> usize {
        self.non_members_above + self.non_members
    }

    /// Twice the number of members that beat a non-member with this score, where a tie counts one half.
    pub fn twice_beaten_by_members(&self) -> usize {
        2 * self.members_above + self.members
    }
}

/// The complete receiver operating characteristic: one point for each distinct score, none omitted.
///
/// Counts are kept as integers, so that rates and areas do not accumulate rounding errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Roc {
    /// In descending order of score; not empty.
    pub(super) ties: Vec<Tie>,
    pub(super) members: usize,
    pub(super) non_members: usize,
}

impl Roc {
    /// The ROC of `samples`, in any order. O(n log n).
    ///
    /// # Errors
    ///
    /// If a class has no samples, or a score is not finite.
    pub fn new(samples: &[LabelledScore]) -> Result<Roc, StatisticsError> {
        if samples.iter().any(|sample| !sample.score.is_finite()) {
            return Err(StatisticsError::NonFinite);
        }
        let mut descending = samples.to_vec();
        descending.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        let mut members = 0;
        let mut non_members = 0;
        let ties: Vec<Tie> = descending
            .chunk_by(|a, b| a.score == b.score)
            .map(|tied| {
                let tied_members = tied.iter().filter(|sample| sample.member).count();
                let tie = Tie {
                    score: tied[0].score,
                    members: tied_members,
                    non_members: tied.len() - tied_members,
                    members_above: members,
                    non_members_above: non_members,
                };
                members += tie.members;
                non_members += tie.non_members;
                tie
            })
            .collect();
        match (members, non_members) {
            (0, _) => Err(StatisticsError::NoMembers),
            (_, 0) => Err(StatisticsError::NoNonMembers),
            _ => Ok(Roc { ties, members, non_members }),
        }
    }

    /// Twice the number of non-members that a member with this score beats, where a tie counts one half.
    pub(super) fn twice_non_members_beaten(&self, tie: &Tie) -> usize {
        2 * (self.non_members - tie.non_members_above) - tie.non_members
    }

    /// The curve from (0, 0) to (1, 1), with the threshold falling from above every score to the lowest.
    pub fn points(&self) -> Vec<RocPoint> {
        let origin = RocPoint { fpr: 0.0, tpr: 0.0, threshold: None };
        let points = self.ties.iter().map(|tie| RocPoint {
            fpr: tie.false_positives() as f64 / self.non_members as f64,
            tpr: tie.true_positives() as f64 / self.members as f64,
            threshold: Some(tie.score),
        });
        std::iter::once(origin).chain(points).collect()
    }

    /// Area under the curve, the Mann-Whitney statistic divided by the number of pairs; in [0, 1].
    pub fn auroc(&self) -> f64 {
        self.twice_won() as f64 / (2 * self.pairs()) as f64
    }

    /// Twice the number of pairs won, so that a tie adds an integer.
    pub(super) fn twice_won(&self) -> u128 {
        self.ties.iter().map(|tie| tie.non_members as u128 * tie.twice_beaten_by_members() as u128).sum()
    }

    /// The number of pairs of a member and a non-member.
    pub(super) fn pairs(&self) -> u128 {
        self.members as u128 * self.non_members as u128
    }

    /// Standard error of the area by DeLong, DeLong and Clarke-Pearson 1988: `sqrt(S10 / m + S01 / n)`, with S10 and
    /// S01 the sample variances, over the m members and the n non-members, of the share of the other class that each
    /// one beats. `None` if a class has a single sample, which has no variance.
    pub fn auroc_standard_error(&self) -> Option<f64> {
        if self.members < 2 || self.non_members < 2 {
            return None;
        }
        let (m, n) = (self.members as f64, self.non_members as f64);
        let area = self.auroc();
        let mut members_squares = 0.0;
        let mut non_members_squares = 0.0;
        for tie in &self.ties {
            let non_members_beaten = self.twice_non_members_beaten(tie) as f64 / 2.0;
            let beaten_by_members = tie.twice_beaten_by_members() as f64 / 2.0;
            members_squares += tie.members as f64 * (non_members_beaten / n - area).powi(2);
            non_members_squares += tie.non_members as f64 * (beaten_by_members / m - area).powi(2);
        }
        let member_variance = members_squares / (m - 1.0);
        let non_member_variance = non_members_squares / (n - 1.0);
        Some((member_variance / m + non_member_variance / n).sqrt())
    }

    /// Twice the number of samples of the other class that a sample of the curve beats (a member) or is beaten by (a
    /// non-member), where a tie counts one half. O(log n).
    pub(super) fn twice_component(&self, score: f64, member: bool) -> i128 {
        // The score is one of the curve's, so the first one that is not above it is equal to it.
        let place = self.ties.partition_point(|tie| tie.score > score);
        let count = |tie: &Tie| if member { self.twice_non_members_beaten(tie) } else { tie.twice_beaten_by_members() };
        self.ties.get(place).map_or(0, |tie| count(tie) as i128)
    }

    /// The largest true positive rate whose false positive rate is at most `fpr`, that is, whose false positives are
    /// within the budget of false positives, with an interval at two-sided `confidence`: [0, 1] if that is not between 0 and 1.
    pub fn tpr_at_fpr(&self, fpr: f64, confidence: f64) -> TprAtFpr {
        let budget = false_positive_budget(fpr, self.non_members);
        // Both counts only grow along the curve, so the best point is the last allowed one, and the first point with
        // its rate has the fewest false positives.
        let allowed = self.ties.partition_point(|tie| tie.false_positives() <= budget);
        let best = self.ties[..allowed].iter().rev().find(|tie| tie.members > 0);
        let recognised = best.map_or(0, |tie| tie.true_positives());
        TprAtFpr {
            fpr,
            tpr: recognised as f64 / self.members as f64,
            threshold: best.map(|tie| tie.score),
            false_positive_budget: budget,
            // There is at least one member, so only an invalid confidence has no interval.
            interval: clopper_pearson(recognised, self.members, confidence).unwrap_or([0.0, 1.0]),
        }
    }

    /// The smallest false positive rate at which at least 95 % of the members are recognised.
    pub fn fpr_at_95_tpr(&self) -> f64 {
        // In integers, because 0.95 has no exact binary representation.
        let reached = |true_positives: usize| true_positives as u128 * 100 >= self.members as u128 * 95;
        let first = self.ties.partition_point(|tie| !reached(tie.true_positives()));
        // The lowest score recognises every member, so such a point always exists.
        let false_positives = self.ties.get(first).map_or(self.non_members, |tie| tie.false_positives());
        false_positives as f64 / self.non_members as f64
    }
}

/// Area under the ROC of `samples`: the probability that a random member scores above a random non-member, where a tie
/// counts one half. O(n log n).
///
/// # Errors
///
/// If a class has no samples, or a score is not finite.
pub fn auroc(samples: &[LabelledScore]) -> Result<f64, StatisticsError> {
    Roc::new(samples).map(|roc| roc.auroc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{LABELS, TIED, UNTIED, assert_close, labelled};
    use proptest::prelude::*;

    fn roc(scores: &[f64]) -> Roc {
        Roc::new(&labelled(&LABELS, scores)).expect("both classes")
    }

    #[test]
    fn area_and_its_standard_error() {
        assert_close(roc(&TIED).auroc(), 0.645833333333333);
        assert_close(roc(&UNTIED).auroc(), 0.916666666666667);
        let error = roc(&TIED).auroc_standard_error().expect("two of each class");
        assert_close(error, 0.187731338767814);
    }

    #[test]
    fn the_curve_keeps_every_point() {
        let points = roc(&TIED).points();
        #[rustfmt::skip]
        let expected = [
            (0.0, 0.0, None),
            (0.0, 1.0 / 3.0, Some(0.875)),
            (0.25, 0.5, Some(0.75)),
            (0.5, 2.0 / 3.0, Some(0.625)),
            (0.75, 2.0 / 3.0, Some(0.5)),
            (0.75, 5.0 / 6.0, Some(0.125)),
            (1.0, 1.0, Some(0.0)),
        ];
        assert_eq!(points.len(), expected.len());
        for (point, (fpr, tpr, threshold)) in points.iter().zip(expected) {
            assert_close(point.fpr, fpr);
            assert_close(point.tpr, tpr);
            assert_eq!(point.threshold, threshold);
        }
    }

    #[test]
    fn operating_points() {
        let tied = roc(&TIED);
        for (fpr, tpr, threshold, budget) in [
            (0.05, 1.0 / 3.0, 0.875, 0),
            (0.25, 0.5, 0.75, 1),
            (0.3, 0.5, 0.75, 1),
            // The threshold with fewer false positives where two have the same rate.
            (0.5, 2.0 / 3.0, 0.625, 2),
            (0.75, 5.0 / 6.0, 0.125, 3),
            (1.0, 1.0, 0.0, 4),
        ] {
            let point = tied.tpr_at_fpr(fpr, 0.95);
            assert_close(point.tpr, tpr);
            assert_eq!((point.threshold, point.false_positive_budget), (Some(threshold), budget));
            assert!(point.interval[0] <= point.tpr && point.tpr <= point.interval[1]);
        }
        assert_eq!(tied.fpr_at_95_tpr(), 1.0);
        // The confidence decides the interval alone.
        let point = tied.tpr_at_fpr(0.05, 0.9);
        assert_eq!(Some(point.interval), clopper_pearson(2, 6, 0.9));
        assert_eq!(TprAtFpr { interval: tied.tpr_at_fpr(0.05, 0.95).interval, ..point }, tied.tpr_at_fpr(0.05, 0.95));
        assert_eq!(tied.tpr_at_fpr(0.05, f64::NAN).interval, [0.0, 1.0]);
    }

    #[test]
    fn a_bound_that_no_threshold_satisfies_has_none() {
        let point = Roc::new(&labelled(&[true, false], &[1.0, 2.0])).expect("both classes").tpr_at_fpr(0.05, 0.95);
        assert_eq!((point.tpr, point.threshold, point.interval[0]), (0.0, None, 0.0));
    }

    #[test]
    fn the_rate_of_95_percent_is_met_exactly() {
        // 19 of 20 members are 95 %, although 0.95 has no exact binary representation.
        let members = (0..20).map(|i| LabelledScore { score: f64::from(i), member: true });
        let non_members = [-1.0, 0.5].map(|score| LabelledScore { score, member: false });
        let samples: Vec<LabelledScore> = members.chain(non_members).collect();
        assert_eq!(Roc::new(&samples).expect("both classes").fpr_at_95_tpr(), 0.0);
    }

    #[test]
    fn samples_without_a_curve() {
        let sample = |score, member| LabelledScore { score, member };
        for (samples, error) in [
            (vec![], StatisticsError::NoMembers),
            (vec![sample(1.0, false)], StatisticsError::NoMembers),
            (vec![sample(1.0, true)], StatisticsError::NoNonMembers),
            (vec![sample(1.0, true), sample(f64::NAN, false)], StatisticsError::NonFinite),
        ] {
            assert_eq!(auroc(&samples), Err(error));
        }
        let single = Roc::new(&[sample(1.0, true), sample(0.0, false), sample(0.5, false)]);
        assert_eq!(single.expect("both classes").auroc_standard_error(), None);
    }

    fn any_samples() -> impl Strategy<Value = Vec<LabelledScore>> {
        // Few distinct scores, so that ties are common.
        let sample =
            (-8_i32..8, any::<bool>()).prop_map(|(score, member)| LabelledScore { score: f64::from(score), member });
        prop::collection::vec(sample, 2..60).prop_filter("both classes", |samples| {
            let members = samples.iter().filter(|sample| sample.member).count();
            0 < members && members < samples.len()
        })
    }

    proptest! {
        #[test]
        fn negated_scores_have_the_rest_of_the_area(samples in any_samples()) {
            let negated: Vec<LabelledScore> = samples
                .iter()
                .map(|sample| LabelledScore { score: -sample.score, ..*sample })
                .collect();
            let sum = auroc(&samples).expect("an area") + auroc(&negated).expect("an area");
            prop_assert!((sum - 1.0).abs() <= 1e-15, "{}", sum);
        }

        #[test]
        fn the_area_is_that_of_all_pairs(samples in any_samples()) {
            let (members, others): (Vec<LabelledScore>, Vec<LabelledScore>) =
                samples.iter().partition(|sample| sample.member);
            let wins: f64 = members
                .iter()
                .flat_map(|member| others.iter().map(|other| {
                    if member.score > other.score { 1.0 }
                    else if member.score == other.score { 0.5 }
                    else { 0.0 }
                }))
                .sum();
            let expected = wins / (members.len() * others.len()) as f64;
            let area = auroc(&samples).expect("an area");
            prop_assert!((area - expected).abs() <= 1e-12);
        }

        #[test]
        fn an_operating_point_is_the_best_of_the_curve(samples in any_samples(), fpr in 0.0..=1.0) {
            let roc = Roc::new(&samples).expect("both classes");
            let best = roc.points().into_iter().filter(|point| point.fpr <= fpr).map(|point| point.tpr);
            prop_assert_eq!(roc.tpr_at_fpr(fpr, 0.95).tpr, best.fold(0.0, f64::max));
        }
    }
}
