//! The difference between two means.

use super::student::{Moments, TTest};

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
    // As shares of the sum, whose squares neither overflow nor all vanish.
    let (part_a, part_b) = (share_a / squared_error, share_b / squared_error);
    let degrees_of_freedom = 1.0 / (part_a * part_a / (a.count - 1.0) + part_b * part_b / (b.count - 1.0));
    TTest::new((a.mean - b.mean) / squared_error.sqrt(), degrees_of_freedom)
}

#[cfg(test)]
mod tests {
    use super::super::null_draws::{assert_exact_level, normals};
    use super::*;
    use proptest::prelude::*;

    const SUSPECTS: [f64; 8] = [-1.8, -1.2, -2.0, -1.5, -1.1, -1.9, -1.3, -1.6];
    const HELD_OUT: [f64; 8] = [-2.4, -1.9, -2.2, -2.6, -1.7, -2.1, -2.5, -2.0];

    #[track_caller]
    fn assert_welch(first: &[f64], second: &[f64], expected: [f64; 3]) {
        let TTest { statistic, degrees_of_freedom, p_value } = welch(first, second).expect("variance");
        for (actual, expected) in [statistic, degrees_of_freedom, p_value].into_iter().zip(expected) {
            assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual} is not {expected}");
        }
    }

    /// Expected: `scipy.stats.ttest_ind(first, second, equal_var=False, alternative="greater")`.
    #[test]
    fn examples_as_scipy() {
        assert_welch(&SUSPECTS, &HELD_OUT, [3.87741721525662, 13.9274688094735, 0.000844845099955239]);
        let a: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 10)).collect();
        let b: Vec<f64> = (0..45).map(|i| f64::from(i * 3 % 8)).collect();
        assert_welch(&a, &b, [2.1197946014837767, 102.57348718881678, 0.018218041608718098]);
        // One side is constant.
        assert_welch(&[1.0, 2.0, 4.0], &[2.0; 3], [0.3779644730092274, 2.0, 0.3709005551264194]);
        assert_welch(&[1.0, 2.0], &[5.0, 9.0], [-2.6678918753996625, 1.1245136186770428, 0.8972754246345557]);
    }

    #[test]
    fn what_cannot_be_tested() {
        assert_eq!(welch(&[1.0], &SUSPECTS), None);
        assert_eq!(welch(&SUSPECTS, &[]), None);
        assert_eq!(welch(&[0.1; 3], &[0.2; 5]), None);
        assert_eq!(welch(&[f64::NAN, 1.0], &SUSPECTS), None);
        // The sums of the squares overflow.
        assert_eq!(welch(&[1e300, -1e300], &SUSPECTS), None);
        assert_eq!(welch(&[f64::MAX, f64::MIN], &SUSPECTS), None);
    }

    #[test]
    fn type_one_error() {
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
