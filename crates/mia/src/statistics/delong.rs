//! The difference between the AUROCs of two scores of the same samples.

use super::cluster_index::ClusterIndex;
use super::cluster_variance::{Component, variance_by_cluster};
use super::roc::{LabelledScore, Roc, StatisticsError};
use serde::{Deserialize, Serialize};
use statrs::function::erf::{erfc, erfc_inv};
use std::f64::consts::SQRT_2;
use utoipa::ToSchema;

/// Two scores of one sample with known membership.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedScore {
    /// True if the sample is a member of the training data.
    pub member: bool,
    /// The score of the method that is compared with.
    pub first: f64,
    /// The score of the method that is compared.
    pub second: f64,
}

/// The difference between two AUROCs of the same samples, by DeLong, DeLong and Clarke-Pearson 1988, or by
/// Obuchowski 1997 where samples come in clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PairedDeLong {
    /// The second AUROC minus the first, in [-1, 1].
    pub delta: f64,
    /// Standard error of the difference; absent if a class has a single sample, or is of a single cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Normal interval of the difference; absent if the standard error is absent or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Two-sided, of a difference of 0, by the normal distribution; absent if the standard error is absent or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
}

/// Compares the AUROCs of the two scores of `samples`, with an interval at two-sided `confidence`, such as 0.95.
///
/// Samples are of one cluster if their entries in `clusters` are equal. A sample without an entry is a cluster by
/// itself, so an empty slice stands for independent samples.
///
/// A structural component of a sample is the share of the other class that it beats (members) or is beaten by
/// (non-members), where a tie counts one half. The variance of the difference is `S10 / m + S01 / n`, with S10 and S01
/// the sample variances, over the m members and the n non-members, of the differences of their components. This equals
/// the quadratic form of the paper's covariance matrices. Where a cluster has several samples, the differences are
/// summed over each cluster first (Obuchowski 1997). The components come from the ranks of the scores
/// (Sun and Xu 2014), so the time is O(n log n). They are counted in integers, so a variance of 0 is exactly 0.
///
/// # Errors
///
/// If a class has no samples, or a score is not finite.
pub fn delong(samples: &[PairedScore], clusters: &[usize], confidence: f64) -> Result<PairedDeLong, StatisticsError> {
    let first = ranked(samples, |sample| sample.first)?;
    let second = ranked(samples, |sample| sample.second)?;
    let difference = |sample: &PairedScore| Component {
        member: sample.member,
        twice_count: second.twice_component(sample.second, sample.member)
            - first.twice_component(sample.first, sample.member),
    };
    let differences: Vec<Component> = samples.iter().map(difference).collect();
    let clusters = ClusterIndex::new(clusters, 0..samples.len());
    let variance =
        if clusters.is_singletons() { variance(&differences) } else { variance_by_cluster(&differences, &clusters) };
    let delta = second.auroc() - first.auroc();
    let standard_error = variance.map(f64::sqrt);
    let positive = standard_error.filter(|error| *error > 0.0);
    let quantile = normal_quantile(confidence);
    Ok(PairedDeLong {
        delta,
        standard_error,
        interval: positive.zip(quantile).map(|(error, z)| [delta - z * error, delta + z * error]),
        p_value: positive.map(|error| erfc(delta.abs() / error / SQRT_2)),
    })
}

fn ranked(samples: &[PairedScore], score: impl Fn(&PairedScore) -> f64) -> Result<Roc, StatisticsError> {
    let labelled = |sample: &PairedScore| LabelledScore { score: score(sample), member: sample.member };
    Roc::new(&samples.iter().map(labelled).collect::<Vec<_>>())
}

/// The variance of the difference between the AUROCs of independent samples; `None` if a class has a single one.
fn variance(differences: &[Component]) -> Option<f64> {
    let of_class = |member: bool| differences.iter().filter(move |difference| difference.member == member);
    let mean = |member: bool| {
        variance_of_mean(of_class(member).map(|difference| difference.twice_count), of_class(!member).count())
    };
    mean(true).zip(mean(false)).map(|(members, others)| members + others)
}

/// The sample variance of `twice_counts / (2 * others)`, divided by their number; `None` for fewer than two.
fn variance_of_mean(twice_counts: impl Iterator<Item = i128>, others: usize) -> Option<f64> {
    let (mut number, mut sum, mut squares) = (0_i128, 0_i128, 0_i128);
    for count in twice_counts {
        (number, sum, squares) = (number + 1, sum + count, squares + count * count);
    }
    let deviations = (number * squares - sum * sum) as f64;
    let number = number as f64;
    (number > 1.0).then(|| deviations / (number * number * (number - 1.0)) / (2.0 * others as f64).powi(2))
}

/// The half-width of a two-sided interval, in standard deviations; `None` if `confidence` is not between 0 and 1.
pub fn normal_quantile(confidence: f64) -> Option<f64> {
    (confidence > 0.0 && confidence < 1.0).then(|| SQRT_2 * erfc_inv(1.0 - confidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// statrs' complementary error function, from which p-values and intervals come, is exact to some 1e-10.
    #[track_caller]
    fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= 1e-9, "{actual} is not {expected}");
    }

    fn paired(labels: &[u8], first: &[f64], second: &[f64]) -> Vec<PairedScore> {
        let scores = first.iter().zip(second);
        let sample =
            |(&label, (&first, &second)): (&u8, (&f64, &f64))| PairedScore { member: label == 1, first, second };
        labels.iter().zip(scores).map(sample).collect()
    }

    /// The expected numbers of both tests are from NumPy and SciPy: every structural component as a loop over the other
    /// class, `numpy.cov` of the components of both scores, and `scipy.stats.norm`.
    #[test]
    fn ten_samples_as_by_definition() {
        let labels = [0, 0, 1, 1, 1, 1, 1, 1, 0, 0];
        let first = [0.5, 0.625, 0.0, 0.75, 0.875, 0.125, 0.875, 0.625, 0.0, 0.75];
        let second = [0.5, 0.3, 0.6, 0.8, 0.9, 0.4, 0.7, 0.65, 0.1, 0.55];
        let samples = paired(&labels, &first, &second);
        for (confidence, interval) in
            [(0.95, [-0.042275641817169196, 0.5839423084838358]), (0.9, [0.008063998044643195, 0.5336026686220233])]
        {
            let difference = delong(&samples, &[], confidence).expect("both classes");
            assert_close(difference.delta, 0.27083333333333326);
            assert_close(difference.standard_error.expect("a variance"), 0.15975241260567344);
            assert_close(difference.p_value.expect("a variance"), 0.09001250964802768);
            let [low, high] = difference.interval.expect("a variance");
            assert_close(low, interval[0]);
            assert_close(high, interval[1]);
        }
    }

    fn three_hundred() -> Vec<PairedScore> {
        let labels: Vec<u8> = (0..300).map(|i| u8::from(i * 7919 % 5 < 2)).collect();
        let labelled = || (0_u32..).zip(&labels);
        let first: Vec<f64> =
            labelled().map(|(i, label)| f64::from((i * 7919 + 13) % 101) + 20.0 * f64::from(*label)).collect();
        let second: Vec<f64> = labelled()
            .zip(&first)
            .map(|((i, label), first)| f64::from((i * 104_729 + 7) % 97) + 0.25 * first + 10.0 * f64::from(*label))
            .collect();
        paired(&labels, &first, &second)
    }

    #[test]
    fn three_hundred_samples_with_ties_as_by_definition() {
        let difference = delong(&three_hundred(), &[], 0.95).expect("both classes");
        assert_close(difference.delta, -0.036550925925926014);
        assert_close(difference.standard_error.expect("a variance"), 0.038991064557764306);
        assert_close(difference.p_value.expect("a variance"), 0.3485435832564071);
        let [low, high] = difference.interval.expect("a variance");
        assert_close(low, -0.11297200817802022);
        assert_close(high, 0.039870156326168193);
    }

    /// From NumPy and SciPy: the differences of the components summed by cluster, the formula of Obuchowski 1997 as
    /// printed, and `scipy.stats.norm`. Clusters have up to four samples, of both classes.
    #[test]
    fn differences_by_cluster_as_by_definition() {
        let labels = [0, 0, 1, 1, 1, 1, 1, 1, 0, 0];
        let first = [0.5, 0.625, 0.0, 0.75, 0.875, 0.125, 0.875, 0.625, 0.0, 0.75];
        let second = [0.5, 0.3, 0.6, 0.8, 0.9, 0.4, 0.7, 0.65, 0.1, 0.55];
        let ten = delong(&paired(&labels, &first, &second), &[0, 1, 1, 2, 2, 3, 4, 4, 0, 5], 0.95);
        let ten = ten.expect("both classes");
        assert_close(ten.delta, 0.27083333333333326);
        assert_close(ten.standard_error.expect("a variance"), 0.2043715706159465);
        let samples = three_hundred();
        let clusters: Vec<usize> = (0..300).map(|i| i * 31 % 97).collect();
        let difference = delong(&samples, &clusters, 0.95).expect("both classes");
        assert_close(difference.delta, -0.036550925925925924);
        assert_close(difference.standard_error.expect("a variance"), 0.03290991027482942);
        assert_close(difference.p_value.expect("a variance"), 0.266725128243284);
        let [low, high] = difference.interval.expect("a variance");
        assert_close(low, -0.10105316479903625);
        assert_close(high, 0.0279513129471844);
        // A sample a cluster, however the clusters are numbered, is as without clusters.
        let singletons: Vec<usize> = (0..300).map(|i| 7 * (300 - i)).collect();
        assert_eq!(delong(&samples, &singletons, 0.95), delong(&samples, &[], 0.95));
    }

    #[test]
    fn clusters_without_a_variance() {
        let samples = paired(&[1, 1, 0, 0], &[1.0, 2.0, 3.0, 0.0], &[3.0, 1.0, 2.0, 0.0]);
        let difference = delong(&samples, &[0, 0, 1, 2], 0.95).expect("both classes");
        assert_eq!((difference.standard_error, difference.interval, difference.p_value), (None, None, None));
        let same = paired(&[1, 1, 0, 0], &[1.0, 2.0, 3.0, 0.0], &[1.0, 2.0, 3.0, 0.0]);
        let expected = PairedDeLong { delta: 0.0, standard_error: Some(0.0), interval: None, p_value: None };
        assert_eq!(delong(&same, &[0, 1, 0, 1], 0.95), Ok(expected));
    }

    #[test]
    fn without_variance_there_is_no_p_value() {
        let scores = [0.3, 0.1, 0.2, 0.7, 0.7];
        let no_inference = |delta| PairedDeLong { delta, standard_error: Some(0.0), interval: None, p_value: None };
        // The same score twice.
        let samples = paired(&[0, 1, 0, 1, 0], &scores, &scores);
        assert_eq!(delong(&samples, &[], 0.95), Ok(no_inference(0.0)));
        // Every sample is ranked right by one score and wrong by the other.
        let samples = paired(&[0, 0, 1, 1, 1], &[1.0, 2.0, 3.0, 4.0, 5.0], &[5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!(delong(&samples, &[], 0.95), Ok(no_inference(-1.0)));
        // A single member has no variance.
        let difference =
            delong(&paired(&[0, 0, 1], &[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0]), &[], 0.95).expect("both classes");
        assert_eq!(difference, PairedDeLong { delta: -0.5, standard_error: None, interval: None, p_value: None });
    }

    #[test]
    fn what_has_no_comparison() {
        let both =
            |labels: &[u8], score: f64| delong(&paired(labels, &[score, 1.0], &[0.0, 2.0]), &[], 0.95).unwrap_err();
        assert_eq!(both(&[1, 1], 0.0), StatisticsError::NoNonMembers);
        assert_eq!(both(&[0, 0], 0.0), StatisticsError::NoMembers);
        assert_eq!(both(&[0, 1], f64::NAN), StatisticsError::NonFinite);
        let invalid = delong(&paired(&[0, 0, 1, 1], &[1.0, 2.0, 1.5, 3.0], &[1.0, 2.0, 3.0, 4.0]), &[], 1.0);
        let invalid = invalid.expect("both classes");
        assert!(invalid.interval.is_none() && invalid.p_value.is_some());
    }

    proptest! {
        #[test]
        fn order_repetition_and_monotone_functions_change_nothing(
            rows in prop::collection::vec((any::<bool>(), -6_i32..6, -6_i32..6, 0_usize..9), 2..40),
        ) {
            let sample = |&(member, first, second, _): &(bool, i32, i32, usize)| {
                PairedScore { member, first: first.into(), second: second.into() }
            };
            let samples: Vec<PairedScore> = rows.iter().map(sample).collect();
            let clusters: Vec<usize> = rows.iter().map(|row| row.3).collect();
            let difference = delong(&samples, &clusters, 0.95);
            let cube = |s: &PairedScore| PairedScore { first: s.first.powi(3), second: s.second.powi(3), ..*s };
            let cubed: Vec<PairedScore> = samples.iter().map(cube).collect();
            prop_assert_eq!(&delong(&cubed, &clusters, 0.95), &difference);
            let error = |result: Result<PairedDeLong, StatisticsError>| result.ok()?.standard_error;
            let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-12,
                (a, b) => a == b,
            };
            let (reversed, of_reversed): (Vec<PairedScore>, Vec<usize>) =
                samples.iter().copied().zip(clusters.iter().copied()).rev().unzip();
            prop_assert!(close(error(delong(&reversed, &of_reversed, 0.95)), error(difference)));
            // Every sample twice, as a cluster, is that sample once.
            let twice: Vec<PairedScore> = samples.iter().flat_map(|sample| [*sample; 2]).collect();
            let of_twice: Vec<usize> = (0..twice.len()).map(|place| place / 2).collect();
            prop_assert!(close(error(delong(&twice, &of_twice, 0.95)), error(delong(&samples, &[], 0.95))));
        }
    }
}
