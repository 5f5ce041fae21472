//! Student's t and Welch's test.

use serde::{Deserialize, Serialize};
use statrs::function::beta::checked_beta_reg;
use utoipa::ToSchema;

/// Values whose range is at most this share of the largest magnitude are constant: their differences are rounding.
const CONSTANT: f64 = 1e-12;

/// A one-sided t-test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TTest {
    /// The difference divided by its standard error.
    pub statistic: f64,
    /// Degrees of freedom of Student's distribution, at least 1; not an integer for Welch's test.
    pub degrees_of_freedom: f64,
    /// The probability of a statistic at least as large if the difference were 0.
    pub p_value: f64,
}

impl TTest {
    /// The test of a statistic; `None` if a number is not finite.
    fn new(statistic: f64, degrees_of_freedom: f64) -> Option<TTest> {
        let p_value = upper_tail(statistic, degrees_of_freedom)?;
        Some(TTest { statistic, degrees_of_freedom, p_value })
    }
}

/// Tests whether the mean of the population of `values` is greater than 0 (Student 1908). O(n).
///
/// `None` for fewer than two values, if all are equal (up to 1e-12 of the largest magnitude), or if a value is not
/// finite.
pub fn one_sample_t(values: &[f64]) -> Option<TTest> {
    let Moments { count, mean, variance } = Moments::new(values)?;
    let positive = Some(variance).filter(|variance| *variance > 0.0)?;
    TTest::new(mean / (positive / count).sqrt(), count - 1.0)
}

/// Tests whether the mean of the population of `first` is greater than that of `second`, without assuming equal
/// variances (Welch 1947). The statistic is the difference of the means divided by its standard error; the degrees of
/// freedom are Satterthwaite's (1946). O(n).
///
/// `None` for fewer than two values on a side, if the values of both sides are constant (up to 1e-12 of the largest
/// magnitude), or if a value is not finite.
pub fn welch(first: &[f64], second: &[f64]) -> Option<TTest> {
    let (a, b) = (Moments::new(first)?, Moments::new(second)?);
    let (share_a, share_b) = (a.variance / a.count, b.variance / b.count);
    let squared_error = share_a + share_b;
    if squared_error <= 0.0 {
        return None;
    }
    // The squares of shares of the sum neither overflow nor all vanish.
    let (part_a, part_b) = (share_a / squared_error, share_b / squared_error);
    let degrees_of_freedom = 1.0 / (part_a * part_a / (a.count - 1.0) + part_b * part_b / (b.count - 1.0));
    TTest::new((a.mean - b.mean) / squared_error.sqrt(), degrees_of_freedom)
}

/// The mean of values, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEstimate {
    pub mean: f64,
    pub standard_error: f64,
    /// The two-sided confidence interval of the mean of the population, by Student's distribution.
    pub interval: [f64; 2],
    /// Degrees of freedom of Student's distribution.
    degrees_of_freedom: f64,
}

impl MeanEstimate {
    /// The smallest mean above 0 that a one-sided t-test of values that vary as these do finds at `level` with probability
    /// `power` of at least 1/2: `(t_(1 - level) + t_power) standard_error`, which is above the exact value.
    pub fn detectable(&self, level: f64, power: f64) -> Option<f64> {
        let quantile = |probability: f64| upper_quantile(probability, self.degrees_of_freedom);
        Some((quantile(level)? + quantile(1.0 - power)?) * self.standard_error)
    }
}

/// Estimates the mean of the population of `values`, with an interval at `confidence` in (0, 1). O(n).
///
/// `None` for fewer than two values, if all are equal (up to 1e-12 of the largest magnitude), or if a number is not
/// finite.
pub fn mean_estimate(values: &[f64], confidence: f64) -> Option<MeanEstimate> {
    let Moments { count, mean, variance } = Moments::new(values)?;
    let standard_error = (variance / count).sqrt();
    let half = upper_quantile((1.0 - confidence) / 2.0, count - 1.0)? * standard_error;
    let interval = [mean - half, mean + half];
    let is_known = standard_error > 0.0 && interval.iter().all(|bound| bound.is_finite());
    is_known.then_some(MeanEstimate { mean, standard_error, interval, degrees_of_freedom: count - 1.0 })
}

/// The statistic that Student's distribution exceeds with `probability` in (0, 1/2], by bisection to about 1e-15 of it.
fn upper_quantile(probability: f64, freedom: f64) -> Option<f64> {
    if !(probability > 0.0 && probability <= 0.5) {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while upper_tail(high, freedom)? > probability {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle, freedom)? > probability { low = middle } else { high = middle }
    }
    Some(high)
}

/// The mean and the sample variance of at least two values.
struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Moments {
    /// `None` for fewer than two values or if a value is not finite. The variance of constant values is exactly 0.
    fn new(values: &[f64]) -> Option<Moments> {
        let (first, _) = values.split_first().filter(|(_, others)| !others.is_empty())?;
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = values.len() as f64;
        // Relative to the first value, so that a large common part does not cost digits.
        let shift = values.iter().map(|value| value - first).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - first - shift).powi(2)).sum();
        let variance = if is_constant(values) { 0.0 } else { squares / (count - 1.0) };
        Some(Moments { count, mean: first + shift, variance })
    }
}

fn is_constant(values: &[f64]) -> bool {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low <= CONSTANT * high.abs().max(low.abs())
}

/// The probability that Student's t with `freedom` degrees of freedom is at least `statistic`; `None` if a number is
/// not finite or `freedom` is not positive.
fn upper_tail(statistic: f64, freedom: f64) -> Option<f64> {
    if !(statistic.is_finite() && freedom.is_finite() && freedom > 0.0) {
        return None;
    }
    let square = statistic * statistic;
    // Each form keeps its digits where the other one loses them: near the centre, and in the tail.
    let tail = if square < 1.0 {
        0.5 * (1.0 - checked_beta_reg(0.5, freedom / 2.0, square / (freedom + square)).ok()?)
    } else {
        0.5 * checked_beta_reg(freedom / 2.0, 0.5, freedom / (freedom + square)).ok()?
    };
    let p_value = if statistic >= 0.0 { tail } else { 1.0 - tail };
    p_value.is_finite().then_some(p_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{
        DIFFERENCES, HELD_OUT, SUSPECTS, assert_exact_level, assert_relative, assert_within, normals,
    };
    use proptest::prelude::*;

    /// Expected: `scipy.stats.sem` and `scipy.stats.t.interval(0.99, n - 1, mean, sem)`.
    #[test]
    fn means_as_scipy() {
        let many: Vec<f64> = (0..500).map(|i| f64::from(i * 7 % 10) - 4.0).collect();
        for (values, expected) in [
            (&DIFFERENCES[..], [0.08375, 0.0281537551415691, -0.014773595875616621, 0.1822735958756166]),
            (&many[..], [0.5, 0.12858097111262043, 0.16752590928241573, 0.8324740907175843]),
        ] {
            let MeanEstimate { mean, standard_error, interval: [low, high], .. } = mean_estimate(values, 0.99).unwrap();
            for (actual, expected) in [mean, standard_error, low, high].into_iter().zip(expected) {
                assert_within(actual, expected, 1e-10);
            }
        }
        // `(scipy.stats.t.ppf(0.99, 7) + scipy.stats.t.ppf(0.8, 7)) * sem`.
        let detectable = mean_estimate(&DIFFERENCES, 0.99).unwrap().detectable(0.01, 0.8).unwrap();
        assert_within(detectable, 0.10963019354549695, 1e-10);
        assert_within(upper_quantile(0.005, 1.0).unwrap(), 63.656741162871526, 1e-8);
        for values in [&[1.0][..], &[0.5; 9], &[1.0, f64::NAN], &[1e300, -1e300]] {
            assert_eq!(mean_estimate(values, 0.99), None);
        }
    }

    /// Expected: `scipy.stats.ttest_1samp(values, 0, alternative="greater")`.
    #[test]
    fn one_sample_as_scipy() {
        let many: Vec<f64> = (0..500).map(|i| f64::from(i * 7 % 10) - 4.0).collect();
        for (values, statistic, degrees_of_freedom, p_value) in [
            (&DIFFERENCES[..], 2.974736392316735, 7.0, 0.010334238468731135),
            (&DIFFERENCES.map(|difference| -difference), -2.974736392316735, 7.0, 0.9896657615312688),
            (&[0.1, 0.3], 2.0, 1.0, 0.14758361765043326),
            (&many, 3.888600277890764, 499.0, 5.723261738193025e-5),
        ] {
            let test = one_sample_t(values).expect("variance");
            assert_eq!(test.degrees_of_freedom, degrees_of_freedom);
            assert!((test.statistic / statistic - 1.0).abs() < 1e-12, "{} is not {statistic}", test.statistic);
            assert!((test.p_value / p_value - 1.0).abs() < 1e-9, "{} is not {p_value}", test.p_value);
        }
    }

    #[test]
    fn what_has_no_variance() {
        assert_eq!([one_sample_t(&[]), one_sample_t(&[1.0])], [None; 2]);
        assert_eq!(one_sample_t(&[0.1; 7]), None);
        // 0.1 with another rounding: 0.3 - 0.2 is 0.09999999999999998.
        assert_eq!(one_sample_t(&[0.3 - 0.2, 0.1, 0.2 - 0.1]), None);
        assert_eq!(one_sample_t(&[1.0, f64::NAN]), None);
        assert_eq!(one_sample_t(&[f64::MAX, f64::MIN]), None);
    }

    /// Expected: `scipy.stats.t.sf(statistic, freedom)`.
    #[test]
    fn tails_as_scipy() {
        for (freedom, tails) in TAILS {
            for (statistic, expected) in STATISTICS.into_iter().zip(tails) {
                let actual = upper_tail(statistic, freedom).expect("finite");
                let error = (actual / expected - 1.0).abs();
                assert!(error < 1e-9, "t = {statistic}, {freedom} degrees: {actual} is not {expected}");
            }
        }
        assert_eq!(upper_tail(1e200, 5.0), Some(0.0));
        assert_eq!(upper_tail(f64::NAN, 5.0), None);
        assert_eq!(upper_tail(1.0, 0.0), None);
    }

    const STATISTICS: [f64; 12] = [-40.0, -1.7, -1e-09, 0.0, 1e-06, 0.3, 0.99, 1.01, 2.0, 5.0, 12.0, 30.0];

    /// By degrees of freedom, a tail for each of [`STATISTICS`].
    #[rustfmt::skip]
    const TAILS: [(f64, [f64; 12]); 9] = [
        (1.0, [0.9920439100879742, 0.8307469726696672, 0.5, 0.5, 0.4999996816759652, 0.4072264209222577,
            0.251599533703095, 0.24841638179120096, 0.14758361765043326, 0.0628329581890012, 0.026464676059589878,
            0.010606402405535426]),
        (1.5, [0.9985101878045344, 0.8646688779244794, 0.500000000340735, 0.5, 0.4999996592650187, 0.40023609840179253,
            0.2273760132568387, 0.22377734700327212, 0.11209416517802556, 0.032687883810578106, 0.009021014637013932,
            0.002292821161489703]),
        (2.0, [0.9996877926639076, 0.8843832868992144, 0.5000000003535534, 0.5, 0.4999996464466094, 0.3962428304200888,
            0.21325901010014509, 0.20940996554099928, 0.09175170953613698, 0.018874775675311862, 0.00343646683857923,
            0.0005546313409798295]),
        (7.0, [0.999999999204891, 0.9335355516087224, 0.5000000003849914, 0.5, 0.49999961500854917, 0.3864450252010671,
            0.1775763735848925, 0.17306285637472674, 0.042809664281488025, 0.0007826389765864124, 3.179155189092549e-06,
            5.894234440366572e-09]),
        (30.25, [1.0, 0.9503037185340635, 0.5000000003956594, 0.5, 0.49999960434058177, 0.3831145439955851,
            0.16501369738036764, 0.16025317704278275, 0.02727436110736163, 1.141004059228919e-05,
            2.4763367267704246e-13, 2.288690611416047e-24]),
        (299.0, [1.0, 0.9549145834003386, 0.5000000003986089, 0.5, 0.49999960139114336, 0.3821928066873211,
            0.1614872936839289, 0.1566559600578169, 0.02320226994361152, 4.892845494848925e-07, 1.2002487794232359e-27,
            1.7943056720309806e-92]),
        (10000.0, [1.0, 0.9554189886361475, 0.5000000003989323, 0.5, 0.49999960106769303, 0.38209169561466616,
            0.16109903616743967, 0.15625986362237776, 0.022763630330717714, 2.9151633068313295e-07,
            2.989889803905625e-33, 1.0221635237126803e-189]),
        (100000.0, [1.0, 0.9554329823756685, 0.5000000003989413, 0.5, 0.49999960105871694, 0.3820888895951688,
            0.16108825720325826, 0.15624886690904047, 0.022751481728753256, 2.8713508393208397e-07,
            1.8722529059782093e-33, 3.68926843611138e-197]),
        (1000000.0, [1.0, 0.9554343817548255, 0.5000000003989422, 0.5, 0.4999996010578193, 0.3820886089894971,
            0.16108717928034136, 0.15624776721031, 0.02275026692565962, 2.8669989354453723e-07, 1.785842562382547e-33,
            6.010047116832059e-198]),
    ];

    /// Expected: `scipy.stats.ttest_ind(first, second, equal_var=False, alternative="greater")`.
    #[test]
    fn welch_as_scipy() {
        let a: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 10)).collect();
        let b: Vec<f64> = (0..45).map(|i| f64::from(i * 3 % 8)).collect();
        for (first, second, expected) in [
            (&SUSPECTS[..], &HELD_OUT[..], [3.87741721525662, 13.9274688094735, 0.000844845099955239]),
            (&a, &b, [2.1197946014837767, 102.57348718881678, 0.018218041608718098]),
            // One side is constant.
            (&[1.0, 2.0, 4.0], &[2.0; 3], [0.3779644730092274, 2.0, 0.3709005551264194]),
            (&[1.0, 2.0], &[5.0, 9.0], [-2.6678918753996625, 1.1245136186770428, 0.8972754246345557]),
        ] {
            let TTest { statistic, degrees_of_freedom, p_value } = welch(first, second).expect("variance");
            let actual = [statistic, degrees_of_freedom, p_value];
            actual.into_iter().zip(expected).for_each(|(actual, expected)| assert_relative(actual, expected));
        }
    }

    #[test]
    fn welch_needs_variance() {
        assert_eq!(welch(&[1.0], &SUSPECTS), None);
        assert_eq!(welch(&SUSPECTS, &[]), None);
        assert_eq!(welch(&[0.1; 3], &[0.2; 5]), None);
        assert_eq!(welch(&[f64::NAN, 1.0], &SUSPECTS), None);
        // The sums of the squares overflow.
        assert_eq!(welch(&[1e300, -1e300], &SUSPECTS), None);
        assert_eq!(welch(&[f64::MAX, f64::MIN], &SUSPECTS), None);
    }

    #[test]
    fn welch_keeps_its_level() {
        let wider = |values: Vec<f64>| -> Vec<f64> { values.iter().map(|value| 3.0 * value).collect() };
        assert_exact_level("welch", |random| {
            welch(&normals(random, 10), &wider(normals(random, 15))).expect("variance").p_value
        });
    }

    proptest! {
        #[test]
        fn sides_swap(
            first in proptest::collection::vec(-9.0..9.0, 2..20),
            second in proptest::collection::vec(-9.0..9.0, 2..20),
        ) {
            let (one, other) = (welch(&first, &second), welch(&second, &first));
            prop_assert_eq!(one.is_some(), other.is_some());
            if let (Some(one), Some(other)) = (one, other) {
                prop_assert!((one.statistic + other.statistic).abs() <= 1e-12 * one.statistic.abs());
                prop_assert!((one.p_value + other.p_value - 1.0).abs() < 1e-9);
                let least = first.len().min(second.len()) as f64 - 1.0;
                let most = (first.len() + second.len()) as f64 - 2.0;
                prop_assert!(one.degrees_of_freedom >= least * (1.0 - 1e-12));
                prop_assert!(one.degrees_of_freedom <= most * (1.0 + 1e-12));
            }
        }
    }
}
