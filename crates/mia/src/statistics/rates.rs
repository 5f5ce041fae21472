//! Error rates: the number of errors that a bound allows, intervals of proportions, and the realised error of a threshold taken
//! from calibration scores.
//!
//! The k-th largest of m calibration scores is above an unknown share of the non-members, which varies from one
//! calibration to another. If scores are continuous and texts are exchangeable, this share has the distribution
//! Beta(k, m + 1 - k) (Wilks 1941), and the number of non-members above the threshold among n further ones has the
//! distribution BetaBinomial(n, k, m + 1 - k) (Wilks 1942). With tied scores fewer texts are strictly above the
//! threshold, so that both bounds hold and are conservative.
//!
//! Both hold for a k that is chosen before the scores are seen. For a k that follows from the tested scores, such as
//! the one of a list with a false discovery rate, they describe the threshold but are not guaranteed.

use statrs::function::beta::beta_reg;

/// The relative tolerance within which a product of rate and count is taken to be an integer. Far above the rounding
/// error of one multiplication (1e-16), far below any meaningful difference of a target.
const WHOLE: f64 = 1e-9;

/// The share of the largest probability below which further ones are negligible: a million of them sum up to 1e-24.
const NEGLIGIBLE: f64 = 1e-30;

/// The relative tolerance of a cumulative probability: 19/20 reaches 0.95, however it is rounded.
const ROUNDING: f64 = 1e-12;

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

/// The upper bound, at one-sided `confidence` such as 0.95, of the true false positive rate of the decision "score
/// above the `k`-th largest of `m` calibration scores": the quantile of Beta(k, m + 1 - k).
///
/// This is also the upper end of the interval of Clopper and Pearson 1934 for k - 1 false positives of m. With `k` = 0
/// no text is above the threshold and the bound is 0; with `k` > `m` every text may be, and it is 1. It is 1 as well
/// for a confidence that is not between 0.5 and 1. Relative error 1e-9 up to a million scores.
pub fn fpr_upper(k: usize, m: usize, confidence: f64) -> f64 {
    if k == 0 {
        return 0.0;
    }
    // An interval with as much on either side of it.
    let two_sided = 2.0 * confidence - 1.0;
    clopper_pearson(k - 1, m, two_sided).map_or(1.0, |[_, high]| high)
}

/// The upper bound, at one-sided `confidence` such as 0.95, of the number of false positives if all of `tested` texts
/// are non-members and those above the `k`-th largest of `m` calibration scores count as members: the smallest number
/// whose cumulative probability under BetaBinomial(tested, k, m + 1 - k) is at least `confidence`.
///
/// With `k` = 0 no text is above the threshold and the bound is 0; with `k` > `m` every text may be, and it is
/// `tested`. It is `tested` as well for a confidence that is not between 0 and 1. Time and memory are O(tested) at
/// most, and usually a small multiple of the standard deviation.
pub fn false_discoveries_upper(tested: usize, k: usize, m: usize, confidence: f64) -> usize {
    if k == 0 {
        return 0;
    }
    if k > m || !(confidence > 0.0 && confidence < 1.0) {
        return tested;
    }
    let (first, weights) = beta_binomial_weights(tested, k, m);
    let enough = weights.iter().sum::<f64>() * confidence * (1.0 - ROUNDING);
    let mut cumulative = 0.0;
    let below = weights.iter().take_while(|&&weight| {
        cumulative += weight;
        cumulative < enough
    });
    (first + below.count()).min(tested)
}

/// The probabilities of BetaBinomial(n, k, m + 1 - k), 1 <= k <= m, up to a common factor, from the first number that
/// is not negligible to the last: that number and the weights.
///
/// By the ratio of adjacent probabilities from the mode outwards. Unlike a difference of log-gammas, each of which is
/// 1e7 at a million, this loses no digits, and nothing overflows.
fn beta_binomial_weights(n: usize, k: usize, m: usize) -> (usize, Vec<f64>) {
    // The probability of `count + 1` divided by that of `count`, for count < n.
    let ratio = |count: usize| {
        let gain = (n - count) as f64 * (k + count) as f64;
        let loss = (count + 1) as f64 * (m - k + n - count) as f64;
        gain / loss
    };
    // At most one from the mode.
    let centre = ((n as f64 * (k - 1) as f64 / (m - 1).max(1) as f64) as usize).min(n);
    let down = (0..centre).rev().scan(1.0, |weight, count| {
        *weight /= ratio(count);
        Some(*weight)
    });
    let up = (centre..n).scan(1.0, |weight, count| {
        *weight *= ratio(count);
        Some(*weight)
    });
    let mut weights: Vec<f64> = down.take_while(|&weight| weight > NEGLIGIBLE).collect();
    let first = centre - weights.len();
    weights.reverse();
    weights.push(1.0);
    weights.extend(up.take_while(|&weight| weight > NEGLIGIBLE));
    (first, weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{assert_close, assert_relative};
    use proptest::prelude::*;

    #[test]
    fn false_positive_budgets() {
        for (fpr, non_members, budget) in [
            (0.005, 389, 1),
            (0.005, 258, 1),
            (0.005, 111, 0),
            (0.05, 20, 1),
            (0.05, 400, 20),
            (0.29, 100, 29),
            (0.07, 100, 7),
            (0.0, 100, 0),
            (1.0, 100, 100),
            (1.5, 100, 100),
            (-1.0, 100, 0),
            (f64::NAN, 100, 0),
            (f64::INFINITY, 100, 100),
            (0.05, 0, 0),
        ] {
            assert_eq!(false_positive_budget(fpr, non_members), budget, "{fpr} of {non_members}");
        }
    }

    #[test]
    fn clopper_pearson_intervals() {
        let close = |actual: Option<[f64; 2]>, expected: [f64; 2]| {
            let [low, high] = actual.expect("an interval");
            assert_close(low, expected[0]);
            assert_close(high, expected[1]);
        };
        close(clopper_pearson(23, 139, 0.95), [0.107878853117659, 0.237865420650191]);
        close(clopper_pearson(0, 111, 0.95), [0.0, 0.0326869940239477]);
        close(clopper_pearson(111, 111, 0.95), [1.0 - 0.0326869940239477, 1.0]);
        // The upper end of two-sided 90 % is that of one-sided 95 %.
        close(clopper_pearson(0, 111, 0.9), [0.0, 0.0266276416933757]);
        // Many trials; here the closed form is 1 - 0.025^(1/n).
        let rare = clopper_pearson(0, 10_000_000, 0.95);
        close(rare, [0.0, -(0.025_f64.ln() / 1e7).exp_m1()]);
        assert_eq!(clopper_pearson(0, 0, 0.95), None);
        assert_eq!(clopper_pearson(2, 1, 0.95), None);
        assert_eq!(clopper_pearson(1, 2, 1.0), None);
        assert_eq!(clopper_pearson(1, 2, f64::NAN), None);
    }

    /// Example 8.
    #[test]
    fn bounds_worked_by_hand() {
        assert_relative(fpr_upper(1, 200, 0.95), 0.0148670392312721);
        assert_relative(fpr_upper(11, 200, 0.95), 0.0833351510663720);
        assert_relative(fpr_upper(11, 1000, 0.95), 0.0169031751205625);
        assert_relative(fpr_upper(1, 19, 0.95), 0.145868503312243);
        assert_eq!(false_discoveries_upper(600, 1, 200, 0.95), 10);
        assert_eq!(false_discoveries_upper(600, 2, 200, 0.95), 15);
        assert_eq!(false_discoveries_upper(600, 6, 1000, 0.95), 8);
        assert_eq!(false_discoveries_upper(10, 1, 19, 0.95), 2);
    }

    /// Against `scipy.stats.beta.ppf(confidence, k, m + 1 - k)`.
    #[test]
    fn a_rate_is_the_quantile_of_scipy() {
        for (k, m, confidence, expected) in RATES {
            assert_relative(fpr_upper(k, m, confidence), expected);
        }
    }

    const RATES: [(usize, usize, f64, f64); 14] = [
        (1, 19, 0.95, 0.1458685033122434),
        (19, 19, 0.95, 0.9973039936971287),
        (10, 19, 0.99, 0.7460469204854829),
        (1, 1, 0.95, 0.95),
        (200, 200, 0.95, 0.9997435664127765),
        (500, 1000, 0.99, 0.5362258661963728),
        (1, 1_000_000, 0.95, 2.9957277863525433e-06),
        (100, 1_000_000, 0.95, 0.00011699608162080635),
        (50_000, 1_000_000, 0.95, 0.05035894796812965),
        (500_000, 1_000_000, 0.95, 0.5008219260526601),
        (500_000, 1_000_000, 0.75, 0.5003367447527487),
        (500_000, 1_000_000, 0.999, 0.5015446120813782),
        (999_999, 1_000_000, 0.95, 0.9999996446383748),
        (1_000_000, 1_000_000, 0.95, 0.9999999487067069),
    ];

    #[test]
    fn rates_without_a_beta_distribution() {
        assert_eq!(fpr_upper(0, 19, 0.95), 0.0);
        assert_eq!(fpr_upper(0, 0, 0.95), 0.0);
        assert_eq!(fpr_upper(20, 19, 0.95), 1.0);
        for confidence in [0.5, 0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(fpr_upper(1, 19, confidence), 1.0);
        }
    }

    /// Against `scipy.stats.betabinom.ppf(confidence, n, k, m + 1 - k)` up to n = 600, and for more against sums of
    /// probabilities with 50 digits by mpmath.
    #[test]
    fn a_number_is_the_quantile_of_scipy() {
        for (tested, k, m, confidence, expected) in NUMBERS {
            let actual = false_discoveries_upper(tested, k, m, confidence);
            assert_eq!(actual, expected, "{tested} tested, k {k}, m {m}, confidence {confidence}");
        }
    }

    const NUMBERS: [(usize, usize, usize, f64, usize); 18] = [
        (1, 1, 19, 0.95, 0),
        (1, 1, 18, 0.95, 1),
        (0, 1, 19, 0.95, 0),
        (10, 19, 19, 0.95, 10),
        (10, 10, 19, 0.95, 8),
        (600, 200, 200, 0.95, 600),
        (600, 1, 200, 0.99, 15),
        (600, 11, 200, 0.5, 32),
        (1, 200, 200, 0.95, 1),
        (5, 1, 1, 0.95, 5),
        (600, 100, 200, 0.01, 242),
        (1_000_000, 1, 19, 0.95, 145_869),
        (1_000_000, 1, 1_000_000, 0.95, 4),
        (1_000_000, 1000, 1_000_000, 0.95, 1074),
        (1_000_000, 500_000, 1_000_000, 0.95, 501_163),
        (1000, 500_000, 1_000_000, 0.95, 526),
        (100_000, 1_000_000, 1_000_000, 0.95, 100_000),
        (100_000, 200, 200, 0.95, 99_975),
    ];

    #[test]
    fn numbers_without_a_beta_distribution() {
        assert_eq!(false_discoveries_upper(10, 0, 19, 0.95), 0);
        assert_eq!(false_discoveries_upper(0, 1, 19, 0.95), 0);
        assert_eq!(false_discoveries_upper(10, 20, 19, 0.95), 10);
        assert_eq!(false_discoveries_upper(10, 1, 0, 0.95), 10);
        for confidence in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(false_discoveries_upper(10, 1, 19, confidence), 10);
        }
    }

    fn choose(n: u128, k: u128) -> u128 {
        (0..k.min(n - k)).fold(1, |product, i| product * (n - i) / (i + 1))
    }

    /// By counting: in how many orders of m + n texts at most `count` of the n tested are above the k-th largest of the
    /// m others, out of all. At 95/100 and other whole percentages, in integers.
    fn counted(tested: usize, k: usize, m: usize, percent: u128) -> usize {
        let (n, k, m) = (tested as u128, k as u128, m as u128);
        let mut cumulative = 0;
        let reaches = |&count: &u128| {
            cumulative += choose(k - 1 + count, count) * choose(m - k + n - count, n - count);
            cumulative * 100 >= choose(m + n, n) * percent
        };
        (0..=n).find(reaches).expect("all orders") as usize
    }

    /// Where a cumulative probability is often equal to the confidence.
    #[test]
    fn no_equality_is_lost_to_rounding() {
        for m in [9, 19, 24, 49, 99] {
            for (n, k) in (1..=3).flat_map(|n| (1..=m).map(move |k| (n, k))) {
                for percent in 1..100_u8 {
                    let actual = false_discoveries_upper(n, k, m, f64::from(percent) / 100.0);
                    assert_eq!(actual, counted(n, k, m, percent.into()), "n {n}, k {k}, m {m} at {percent} %");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_share(trials in 1_usize..2000, share in 0.0..=1.0) {
            let successes = (share * trials as f64) as usize;
            let [low, high] = clopper_pearson(successes, trials, 0.95).expect("an interval");
            let observed = successes as f64 / trials as f64;
            prop_assert!(0.0 <= low && low <= observed && observed <= high && high <= 1.0);
        }

        #[test]
        fn a_number_is_that_of_all_orders(n in 0_usize..40, m in 1_usize..40, rank in 0.0..1.0, percent in 1_u8..100) {
            let k = 1 + (rank * m as f64) as usize;
            let confidence = f64::from(percent) / 100.0;
            prop_assert_eq!(false_discoveries_upper(n, k, m, confidence), counted(n, k, m, percent.into()));
        }

        #[test]
        fn bounds_grow_with_the_threshold_rank(m in 2_usize..5000, n in 0_usize..5000, rank in 0.0..1.0) {
            let k = 1 + (rank * (m - 1) as f64) as usize;
            prop_assert!(fpr_upper(k, m, 0.95) < fpr_upper(k + 1, m, 0.95));
            prop_assert!(k as f64 / (m as f64 + 1.0) < fpr_upper(k, m, 0.95));
            prop_assert!(false_discoveries_upper(n, k, m, 0.95) <= false_discoveries_upper(n, k + 1, m, 0.95));
        }
    }
}
