//! The area under the ROC and its standard error.

use super::roc::{LabelledScore, Roc, StatisticsError};

/// Area under the ROC of `samples`: the probability that a random member scores above a random non-member, where a tie
/// counts one half. O(n log n).
///
/// # Errors
///
/// If a class has no samples, or a score is not finite.
pub fn auroc(samples: &[LabelledScore]) -> Result<f64, StatisticsError> {
    Roc::new(samples).map(|roc| roc.auroc())
}

impl Roc {
    /// Area under the curve, the Mann-Whitney statistic divided by the number of pairs; in [0, 1].
    pub fn auroc(&self) -> f64 {
        // Twice the number of pairs won, so that a tie adds an integer.
        let twice_won: u128 =
            self.ties.iter().map(|tie| tie.non_members as u128 * (2 * tie.members_above + tie.members) as u128).sum();
        twice_won as f64 / (2 * self.members as u128 * self.non_members as u128) as f64
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
}
