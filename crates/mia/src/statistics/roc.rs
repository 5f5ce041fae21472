//! The receiver operating characteristic and the area under it.

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
}
