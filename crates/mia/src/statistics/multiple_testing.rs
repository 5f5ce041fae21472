//! P-values adjusted for several comparisons, and lists of texts with a bounded false discovery rate: the expected share of
//! non-members on the list.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

/// The relative tolerance within which two numbers that differ by rounding only are taken to be equal: ten operations
/// err by 1e-15.
const ROUNDING: f64 = 1e-12;

/// Procedure that chooses a list from p-values.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Procedure {
    /// Benjamini and Hochberg 1995. It holds for conformal p-values that share a calibration (Bates et al. 2023).
    #[default]
    Bh,
    /// Benjamini and Hochberg at the bound divided by Storey's estimate of the share of non-members (Storey, Taylor and
    /// Siegmund 2004).
    Storey,
    /// Benjamini and Yekutieli 2001, which holds however the p-values depend on each other.
    By,
}

/// The list, in the order of the p-values.
#[derive(Clone, Debug, PartialEq)]
pub struct Discoveries {
    /// The estimated share of non-members among all, at most 1; only with [`Procedure::Storey`].
    pub pi0: Option<f64>,
    /// The smallest bound at which each would be on the list, at most 1. On the list are exactly those whose adjusted
    /// p-value is at most the bound.
    pub adjusted: Vec<f64>,
    /// True for each that is on the list.
    pub rejected: Vec<bool>,
}

/// Chooses a list with a false discovery rate of at most `fdr`, between 0 and 1.
///
/// On the list are the k smallest of the n p-values, where k is the largest i with `p_(i) <= q i / n`. The level q is
/// `fdr` with [`Procedure::Bh`], `fdr / pi0` with [`Procedure::Storey`], where
/// `pi0 = min(1, (1 + #{p > 1/2}) / (n / 2))`, and `fdr / (1 + 1/2 + ... + 1/n)` with [`Procedure::By`].
///
/// An adjusted p-value that differs from `fdr` by at most 1e-12, relatively, is set to `fdr`, since an equality is
/// often lost to rounding, and is common among conformal p-values. A p-value outside [0, 1] counts as the nearest
/// bound, and NaN as 1. O(n log n).
pub fn discover(p_values: &[f64], fdr: f64, procedure: Procedure) -> Discoveries {
    let (pi0, factor) = match procedure {
        Procedure::Bh => (None, 1.0),
        Procedure::Storey => {
            let share = null_share(p_values);
            (Some(share), share)
        }
        Procedure::By => (None, harmonic(p_values.len())),
    };
    let snapped = |p: f64| if (p - fdr).abs() <= ROUNDING * fdr { fdr } else { p };
    let adjusted: Vec<f64> = step_up(p_values, factor).into_iter().map(snapped).collect();
    let rejected = adjusted.iter().map(|&p| p <= fdr).collect();
    Discoveries { pi0, adjusted, rejected }
}

/// The smallest `factor * n p_(j) / j` over j >= i, at most 1, for the i-th smallest p-value.
fn step_up(p_values: &[f64], factor: f64) -> Vec<f64> {
    let n = p_values.len();
    let mut adjusted = vec![1.0; n];
    let mut least: f64 = 1.0;
    for (smaller, (index, p)) in ascending(p_values).into_iter().enumerate().rev() {
        least = least.min(factor * (p * n as f64 / (smaller + 1) as f64));
        adjusted[index] = least;
    }
    adjusted
}

/// Storey's estimate of the share of null hypotheses, from the p-values above 1/2: at most 1, and 1 without any.
fn null_share(p_values: &[f64]) -> f64 {
    // NaN counts as 1.
    let large = p_values.iter().filter(|&&p| p > 0.5 || p.is_nan()).count();
    ((1 + large) as f64 / (p_values.len() as f64 / 2.0)).min(1.0)
}

/// 1 + 1/2 + ... + 1/n, from the smallest term up.
fn harmonic(n: usize) -> f64 {
    (1..=n).rev().map(|i| 1.0 / i as f64).sum()
}

/// The length of the shortest list that is possible with `tested` texts and a calibration of `calibration_size`
/// non-members at a bound of `fdr`, between 0 and 1: `ceil(n / (q (m + 1)))`, since no p-value is below `1 / (m + 1)`.
///
/// No list is possible if this is more than `tested`. The number is that of [`Procedure::Bh`]; for the others, `fdr` is
/// the level of [`discover`]. A quotient that exceeds an integer by at most 1e-12, relatively, counts as that integer.
pub fn minimum_discoveries(tested: usize, fdr: f64, calibration_size: usize) -> usize {
    let quotient = tested as f64 / (fdr * (calibration_size as f64 + 1.0));
    (quotient * (1.0 - ROUNDING)).ceil() as usize
}

/// The p-values adjusted by Holm 1979, in the order given: comparing each with a level keeps the probability of any
/// false rejection within that level, however the p-values depend on each other.
///
/// The i-th smallest of n becomes the largest of `(n - j + 1) p_(j)` over j <= i, at most 1. A value outside [0, 1]
/// counts as the nearest bound, and NaN as 1. O(n log n).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (smaller, (index, p)) in ascending(p_values).into_iter().enumerate() {
        let remaining = p_values.len() - smaller;
        largest = largest.max(remaining as f64 * p).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// The index and the value of each p-value, in ascending order of the values; equal ones keep their order. O(n log n).
///
/// A value outside [0, 1] counts as the nearest bound, and NaN as 1, which is no evidence.
fn ascending(p_values: &[f64]) -> Vec<(usize, f64)> {
    let valid = |p: f64| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let mut indexed: Vec<(usize, f64)> = p_values.iter().map(|&p| valid(p)).enumerate().collect();
    indexed.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    indexed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{shuffle, stream};
    use crate::statistics::CalibrationScores;
    use crate::statistics::fixtures::assert_all_within;
    use Procedure::{Bh, By, Storey};
    use proptest::prelude::*;
    use rand_chacha::rand_core::Rng;

    #[track_caller]
    fn assert_adjusted(p_values: &[f64], procedure: Procedure, expected: &[f64]) {
        assert_all_within(&discover(p_values, 0.1, procedure).adjusted, expected, 1e-9);
    }

    fn listed(p_values: &[f64], fdr: f64, procedure: Procedure) -> usize {
        discover(p_values, fdr, procedure).rejected.iter().filter(|&&rejected| rejected).count()
    }

    const SEVEN: [f64; 10] = [0.05, 0.05, 0.05, 0.05, 0.05, 0.15, 0.6, 0.75, 0.9, 1.0];

    /// Example 6.
    #[test]
    fn five_p_values() {
        let p_values = [0.1, 0.2, 0.6, 1.0, 0.2];
        let discoveries = discover(&p_values, 0.5, Bh);
        assert_eq!(discoveries.rejected, [true, true, false, false, true]);
        assert_eq!(discoveries.pi0, None);
        assert_all_within(&discoveries.adjusted, &[1.0 / 3.0, 1.0 / 3.0, 0.75, 1.0, 1.0 / 3.0], 1e-9);
        assert_eq!(listed(&p_values, 0.3, Bh), 0);
        assert_eq!(listed(&p_values, 0.1, Bh), 0);
    }

    /// Example 7.
    #[test]
    fn ten_p_values() {
        let bh = [0.1, 0.1, 0.1, 0.1, 0.1, 0.25, 0.857142857142857, 0.9375, 1.0, 1.0];
        assert_adjusted(&SEVEN, Bh, &bh);
        let mut by = [1.0; 10];
        by[..5].fill(0.292896825396825);
        by[5] = 0.732242063492064;
        assert_adjusted(&SEVEN, By, &by);
        assert_eq!(discover(&SEVEN, 0.1, Storey).pi0, Some(1.0));
        // 0.05 * 10 / 5 is exactly the bound.
        assert_eq!(listed(&SEVEN, 0.1, Bh), 5);
        assert_eq!(listed(&SEVEN, 0.05, Bh), 0);
        assert_eq!([0.05, 0.1, 0.2].map(|fdr| minimum_discoveries(10, fdr, 19)), [10, 5, 3]);
    }

    /// Example 7.
    #[test]
    fn storey_lists_more() {
        let p_values = [0.005, 0.005, 0.01, 0.02, 0.03, 0.04, 0.3, 0.45, 0.6, 0.9];
        assert_eq!(discover(&p_values, 0.05, Storey).pi0, Some(0.6));
        assert_eq!(listed(&p_values, 0.05, Bh), 4);
        assert_eq!(listed(&p_values, 0.05, Storey), 6);
    }

    /// Against `scipy.stats.false_discovery_control(p, method="bh")` and `"by"`.
    #[test]
    fn as_scipy_adjusts() {
        assert_adjusted(&SCIPY_P, Bh, &SCIPY_BH);
        assert_adjusted(&SCIPY_P, By, &SCIPY_BY);
    }

    const SCIPY_P: [f64; 12] = [0.04, 0.001, 0.6, 0.012, 0.012, 0.9, 0.0, 0.031, 0.2, 0.0271, 1.0, 0.044];
    const SCIPY_BH: [f64; 12] =
        [0.066, 0.006, 0.72, 0.036, 0.036, 0.981818181818182, 0.0, 0.062, 0.266666666666667, 0.062, 1.0, 0.066];
    const SCIPY_BY: [f64; 12] = [
        0.204811904761905,
        0.0186192640692641,
        1.0,
        0.111715584415584,
        0.111715584415584,
        1.0,
        0.0,
        0.192399062049062,
        0.827522847522847,
        0.192399062049062,
        1.0,
        0.204811904761905,
    ];

    /// i p-values of i q / n each, out of n whose others are 1: each list holds i, whatever q i / n rounds to.
    #[test]
    fn no_equality_is_lost_to_rounding() {
        for n in 1..=60_usize {
            for i in 1..=n {
                for percent in [1_u32, 3, 5, 7, 10, 13, 20, 29, 30, 57, 70] {
                    let p = (i as u32 * percent) as f64 / (n * 100) as f64;
                    let mut p_values = vec![1.0; n];
                    p_values[..i].fill(p);
                    assert_eq!(listed(&p_values, f64::from(percent) / 100.0, Bh), i, "{i} of {n} at {percent} %");
                    p_values[..i].fill(p * (1.0 + 1e-9));
                    assert_eq!(listed(&p_values, f64::from(percent) / 100.0, Bh), 0, "{i} of {n} at {percent} %");
                }
            }
        }
    }

    /// A list of the shortest length is possible, and none that is shorter.
    #[test]
    fn the_shortest_list() {
        for (tested, fdr, size) in [(10, 0.05, 19), (10, 0.1, 19), (600, 0.1, 200), (7, 0.3, 20), (29, 0.29, 99)] {
            let fewest = minimum_discoveries(tested, fdr, size);
            let smallest = |count: usize| {
                let mut p_values = vec![1.0; tested];
                p_values[..count].fill(1.0 / (size + 1) as f64);
                listed(&p_values, fdr, Bh)
            };
            assert_eq!(smallest(fewest), fewest);
            assert_eq!(smallest(fewest - 1), 0);
        }
        assert_eq!(minimum_discoveries(0, 0.1, 19), 0);
        assert_eq!(minimum_discoveries(1, 0.1, 1_000_000), 1);
    }

    #[test]
    fn corners() {
        for procedure in [Bh, Storey, By] {
            assert!(discover(&[], 0.1, procedure).rejected.is_empty());
            let one = discover(&[0.05], 0.05, procedure);
            assert_eq!((one.adjusted, one.rejected), (vec![0.05], vec![true]));
            let odd = discover(&[f64::NAN, -1.0, 7.0], 0.1, procedure);
            assert_eq!(odd.rejected, [false, true, false]);
            assert!(odd.adjusted.iter().all(|p| (0.0..=1.0).contains(p)));
            assert_eq!(discover(&[0.0], f64::NAN, procedure).rejected, [false]);
        }
    }

    #[test]
    fn names_of_procedures() {
        assert_eq!(Procedure::default().to_string(), "bh");
        assert_eq!("storey".parse(), Ok(Storey));
        assert_eq!(serde_json::to_string(&By).expect("json"), "\"by\"");
    }

    /// Against `statsmodels.stats.multitest.multipletests(p, method="holm")[1]`.
    #[test]
    fn as_statsmodels_adjusts() {
        let p_values = [0.04, 0.001, 0.6, 0.012, 0.012, 0.9, 0.0, 0.031];
        assert_all_within(&holm(&p_values), &[0.124, 0.007, 1.0, 0.072, 0.072, 1.0, 0.0, 0.124], 1e-12);
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.3]), [0.3]);
        assert_eq!(holm(&[1.0, 1.0]), [1.0, 1.0]);
        assert_eq!(holm(&[f64::NAN, -1.0, 7.0]), [1.0, 0.0, 1.0]);
    }

    fn uniform(random: &mut impl Rng) -> f64 {
        random.next_u64() as f64 / 2.0_f64.powi(64)
    }

    /// The mean false discovery proportion over 2,000 simulations, its standard error, and the mean share of the
    /// members that are listed: 200 calibration scores, 40 non-members and 20 members. Non-members are uniform on [0,
    /// 1], and members on [0.9, 1.4].
    fn simulated(fdr: f64, procedure: Procedure) -> (f64, f64, f64) {
        const RUNS: usize = 2000;
        let mut random = stream(1, "false discoveries");
        let (mut sum, mut squares, mut recognised) = (0.0, 0.0, 0);
        for _ in 0..RUNS {
            let calibration =
                CalibrationScores::new((0..200).map(|_| uniform(&mut random)).collect()).expect("enough scores");
            let non_members = (0..40).map(|_| uniform(&mut random)).collect::<Vec<_>>();
            let members = (0..20).map(|_| 0.9 + uniform(&mut random) / 2.0).collect::<Vec<_>>();
            let p_values: Vec<f64> =
                non_members.iter().chain(&members).map(|&score| calibration.p_value(score)).collect();
            let rejected = discover(&p_values, fdr, procedure).rejected;
            let count = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count();
            let proportion = count(&rejected[..40]) as f64 / count(&rejected).max(1) as f64;
            sum += proportion;
            squares += proportion * proportion;
            recognised += count(&rejected[40..]);
        }
        let mean = sum / RUNS as f64;
        let variance = squares / RUNS as f64 - mean * mean;
        (mean, (variance / RUNS as f64).sqrt(), recognised as f64 / (20 * RUNS) as f64)
    }

    /// The expectation is at most the bound times the share of non-members, 2/3, with BH and BY, and at most the bound
    /// with Storey. A mean exceeds its expectation by four standard errors with a probability of 3e-5.
    #[test]
    fn the_false_discovery_rate_is_kept() {
        for (procedure, share) in [(Bh, 2.0 / 3.0), (By, 2.0 / 3.0), (Storey, 1.0)] {
            let (mean, error, power) = simulated(0.2, procedure);
            assert!(mean <= 0.2 * share + 4.0 * error, "{procedure}: {mean} +- {error}");
            // Not by listing nothing.
            assert!(power > 0.05, "{procedure}: {power} of the members are listed");
        }
    }

    /// Few distinct values, as of a conformal p-value, so that ties and equalities are common.
    fn any_p_values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((1_u32..=20).prop_map(|rank| f64::from(rank) / 20.0), 1..40)
    }

    fn any_procedure() -> impl Strategy<Value = Procedure> {
        prop::sample::select(vec![Bh, Storey, By])
    }

    proptest! {
        #[test]
        fn permuted_texts_have_permuted_answers(p_values in any_p_values(), procedure in any_procedure(), seed: u64) {
            let mut order: Vec<usize> = (0..p_values.len()).collect();
            shuffle(&mut order, &mut stream(seed, "permutation"));
            let permuted: Vec<f64> = order.iter().map(|&index| p_values[index]).collect();
            let (before, after) = (discover(&p_values, 0.2, procedure), discover(&permuted, 0.2, procedure));
            prop_assert_eq!(before.pi0, after.pi0);
            for (place, &index) in order.iter().enumerate() {
                prop_assert_eq!(before.adjusted[index], after.adjusted[place]);
                prop_assert_eq!(before.rejected[index], after.rejected[place]);
            }
        }

        /// In integers: p is a number of twentieths and the bound one of hundredths.
        #[test]
        fn the_list_is_that_of_the_rule(ranks in prop::collection::vec(1_usize..=20, 1..60), percent in 1_usize..100) {
            let p_values: Vec<f64> = ranks.iter().map(|&rank| rank as f64 / 20.0).collect();
            let mut sorted = ranks.clone();
            sorted.sort_unstable();
            let n = ranks.len();
            let within = |&i: &usize| sorted[i - 1] * n * 100 <= percent * i * 20;
            let largest = (1..=n).rev().find(within).unwrap_or(0);
            let discoveries = discover(&p_values, percent as f64 / 100.0, Bh);
            prop_assert_eq!(discoveries.rejected.iter().filter(|&&rejected| rejected).count(), largest);
            for (index, rank) in ranks.iter().enumerate() {
                prop_assert_eq!(discoveries.rejected[index], sorted[..largest].contains(rank));
            }
        }

        #[test]
        fn a_level_rejects_what_stepping_down_rejects(
            p_values in prop::collection::vec(0.0..=1.0, 1..30),
            level in 0.01..0.99,
        ) {
            let mut sorted = p_values.clone();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len();
            let rejected = (0..n).take_while(|&smaller| (n - smaller) as f64 * sorted[smaller] <= level).count();
            prop_assert_eq!(holm(&p_values).iter().filter(|&&adjusted| adjusted <= level).count(), rejected);
        }
    }
}
