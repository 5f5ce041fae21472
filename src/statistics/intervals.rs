//! Confidence intervals.

use statrs::function::beta::inv_beta_reg;

/// The exact interval of a share, by Clopper and Pearson 1934: `[low, high]` in [0, 1], for `successes` out of
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
    let low = if successes == 0.0 { 0.0 } else { inv_beta_reg(successes, failures + 1.0, tail) };
    let high = if failures == 0.0 { 1.0 } else { inv_beta_reg(successes + 1.0, failures, 1.0 - tail) };
    Some([low, high])
}
