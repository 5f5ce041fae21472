//! The operating points of a classifier with a bounded false positive rate.

use super::roc::Roc;
use serde::Serialize;
use statrs::function::beta::beta_reg;
use utoipa::ToSchema;

/// Default confidence of the interval of a true positive rate.
const CONFIDENCE: f64 = 0.95;

/// The relative tolerance within which a product of rate and count is taken to be an integer. Far above the rounding
/// error of one multiplication (1e-16), far below any meaningful difference of a target.
const WHOLE: f64 = 1e-9;

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

/// The number of false positives that a bound allows among `non_members`: `floor(fpr * non_members)`, at most all.
///
/// A product within 1e-9 of an integer, relatively, counts as that integer: 0.29 * 100 is 28.999999999999996 in binary,
/// and still allows 29. A bound that is negative or NaN allows none.
pub fn false_positive_budget(fpr: f64, non_members: usize) -> usize {
    let product = fpr * non_members as f64;
    let nearest = product.round();
    let whole = if (product - nearest).abs() <= WHOLE * nearest { nearest } else { product.floor() };
    (whole as usize).min(non_members)
}

impl Roc {
    /// The largest true positive rate whose false positive rate is at most `fpr`, that is, whose false positives are
    /// within [`false_positive_budget`].
    pub fn tpr_at_fpr(&self, fpr: f64) -> TprAtFpr {
        self.tpr_at_fpr_with(fpr, CONFIDENCE)
    }

    /// Like [`Roc::tpr_at_fpr`], with an interval at two-sided `confidence`: [0, 1] if that is not between 0 and 1.
    pub fn tpr_at_fpr_with(&self, fpr: f64, confidence: f64) -> TprAtFpr {
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

/// The exact interval of a proportion, by Clopper and Pearson 1934: `[low, high]` in [0, 1], for `successes` out of
/// `trials` at two-sided `confidence`, such as 0.95.
///
/// `None` if there are no trials, fewer trials than successes, or `confidence` is not between 0 and 1.
pub fn clopper_pearson(successes: usize, trials: usize, confidence: f64) -> Option<[f64; 2]> {
    if trials == 0 || successes > trials || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    let failures = (trials - successes) as f64;
    let successes = successes as f64;
    let low = if successes == 0.0 { 0.0 } else { beta_quantile(successes, failures + 1.0, tail) };
    let high = if failures == 0.0 { 1.0 } else { beta_quantile(successes + 1.0, failures, 1.0 - tail) };
    Some([low, high])
}

/// The quantile of Beta(a, b), both positive, at `probability`.
///
/// By bisection down to adjacent floating-point numbers, about sixty steps: statrs' own inverse is a Newton iteration
/// that does not terminate for quantiles close to 0, such as that of 0 out of ten million. Relative error against
/// SciPy: 1e-12 at a thousand trials, 5e-10 at a million.
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if beta_reg(a, b, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}
