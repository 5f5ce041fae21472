//! The standard error of an AUROC, and the difference between the AUROCs of two scores of the same samples.

use super::clusters::ClusterIndex;
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

/// Standard error of the area under the ROC of `samples`, which come in clusters, by Obuchowski 1997.
///
/// Samples are of one cluster if their entries in `clusters` are equal; a sample without an entry is a cluster by
/// itself. A cluster may have both labels. Where every cluster is one sample, it is [`Roc::auroc_standard_error`]. The
/// estimate is 0, and not negative, where nothing varies. O(n log n).
///
/// `None` if fewer than two clusters have members, or have non-members, or if a score is not finite.
pub fn auroc_standard_error_by_cluster(samples: &[LabelledScore], clusters: &[usize]) -> Option<f64> {
    let roc = Roc::new(samples).ok()?;
    let clusters = ClusterIndex::new(clusters, 0..samples.len());
    if clusters.is_singletons() {
        return roc.auroc_standard_error();
    }
    let component = |&LabelledScore { score, member }: &LabelledScore| Component {
        member,
        twice_count: roc.twice_component(score, member),
    };
    let components: Vec<Component> = samples.iter().map(component).collect();
    variance_by_cluster(&components, &clusters).map(f64::sqrt)
}

/// Contribution of one sample to twice the number of pairs won: to that of one score, or to a difference between two.
struct Component {
    /// The class of the sample.
    member: bool,
    /// Twice the number of samples of the other class that are on the right side of the score: non-members below a member,
    /// members above a non-member. A tie counts one half. An integer, so that nothing is rounded.
    twice_count: i128,
}

/// The variance of the share of pairs won by Obuchowski 1997, from one component for each sample of `clusters`.
///
/// With V10 the components of the m members as shares of the n non-members, V01 those of the non-members, A their mean,
/// and a cluster's deviations `a = sum (V10 - A)` over its members and `b = sum (V01 - A)` over its non-members, it is
/// `S10 / m^2 + S01 / n^2 + 2 S11 / (m n)`, where `S10 = I10 / (I10 - 1) sum a^2` over the I10 clusters with members,
/// `S01 = I01 / (I01 - 1) sum b^2` over the I01 clusters with non-members, and `S11 = I / (I - 1) sum a b` over all I
/// clusters; those of one class add nothing to the last sum. With a sample a cluster it is DeLong's.
///
/// Since neither I10 nor I01 is more than I, it equals the sum, written below, of terms that are not negative. It is
/// exactly 0 if every deviation is. `None` if fewer than two clusters have members, or have non-members. O(n).
fn variance_by_cluster(components: &[Component], clusters: &ClusterIndex) -> Option<f64> {
    let members = ClassDeviations::new(components, clusters, true)?;
    let others = ClassDeviations::new(components, clusters, false)?;
    let correction = 1.0 / (clusters.count() as f64 - 1.0);
    let both: f64 = members.values.iter().zip(&others.values).map(|(a, b)| (a + b).powi(2)).sum();
    let alone =
        |class: &ClassDeviations| (class.correction - correction) * class.values.iter().map(|a| a * a).sum::<f64>();
    Some((1.0 + correction) * both + alone(&members) + alone(&others))
}

/// Deviations of the components of one class from their mean.
struct ClassDeviations {
    /// For each cluster, the sum over its samples of the class, divided by the number of samples of the class.
    values: Vec<f64>,
    /// `1 / (I - 1)` for I clusters with samples of the class.
    correction: f64,
}

impl ClassDeviations {
    /// `None` if fewer than two clusters have samples of the class.
    fn new(components: &[Component], clusters: &ClusterIndex, member: bool) -> Option<Self> {
        let mut sums = vec![(0_i128, 0_i128); clusters.count()];
        let (mut number, mut total) = (0, 0);
        let of_class = components.iter().zip(&clusters.numbers).filter(|(component, _)| component.member == member);
        for (component, &cluster) in of_class {
            (number, total) = (number + 1, total + component.twice_count);
            let (samples, sum) = sums.get_mut(cluster)?;
            (*samples, *sum) = (*samples + 1, *sum + component.twice_count);
        }
        let occupied = sums.iter().filter(|(samples, _)| *samples > 0).count();
        let others = components.len() as f64 - number as f64;
        let scale = 2.0 * others * (number as f64).powi(2);
        (occupied > 1).then(|| Self {
            values: sums.iter().map(|(samples, sum)| (sum * number - samples * total) as f64 / scale).collect(),
            correction: 1.0 / (occupied as f64 - 1.0),
        })
    }
}

/// The half-width of a two-sided interval, in standard deviations; `None` if `confidence` is not between 0 and 1.
pub fn normal_quantile(confidence: f64) -> Option<f64> {
    (confidence > 0.0 && confidence < 1.0).then(|| SQRT_2 * erfc_inv(1.0 - confidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{LABELS, TIED, UNTIED, assert_close, labelled};
    use proptest::prelude::*;

    const TEN_CLUSTERS: [usize; 10] = [0, 1, 1, 2, 2, 3, 4, 4, 0, 5];

    fn paired(labels: &[bool], first: &[f64], second: &[f64]) -> Vec<PairedScore> {
        let sample = |((&member, &first), &second)| PairedScore { member, first, second };
        labels.iter().zip(first).zip(second).map(sample).collect()
    }

    fn three_hundred() -> (Vec<PairedScore>, Vec<usize>) {
        let sample = |i: u32| {
            let member = i * 7919 % 5 < 2;
            let raised = f64::from(u8::from(member));
            let first = f64::from((i * 7919 + 13) % 101) + 20.0 * raised;
            PairedScore { member, first, second: f64::from((i * 104_729 + 7) % 97) + 0.25 * first + 10.0 * raised }
        };
        ((0..300).map(sample).collect(), (0..300).map(|i| i * 31 % 97).collect())
    }

    /// From NumPy and SciPy: every structural component as a loop over the other class, `numpy.cov` of the components of both
    /// scores, and `scipy.stats.norm`; by cluster the differences of the components summed by cluster and the formula of
    /// Obuchowski 1997 as printed. Clusters have up to four samples, of both classes. statrs' complementary error function,
    /// from which p-values and intervals come, is exact to some 1e-10.
    #[test]
    fn differences_as_by_definition() {
        let ten = paired(&LABELS, &TIED, &UNTIED);
        let (many, clusters) = three_hundred();
        for (samples, clusters, confidence, delta, error, p_value, interval) in [
            (
                &ten,
                &[][..],
                0.95,
                0.27083333333333326,
                0.15975241260567344,
                0.09001250964802768,
                [-0.042275641817169196, 0.5839423084838358],
            ),
            (
                &ten,
                &[],
                0.9,
                0.27083333333333326,
                0.15975241260567344,
                0.09001250964802768,
                [0.008063998044643195, 0.5336026686220233],
            ),
            (
                &many,
                &[],
                0.95,
                -0.036550925925926014,
                0.038991064557764306,
                0.3485435832564071,
                [-0.11297200817802022, 0.039870156326168193],
            ),
            (
                &many,
                &clusters,
                0.95,
                -0.036550925925925924,
                0.03290991027482942,
                0.266725128243284,
                [-0.10105316479903625, 0.0279513129471844],
            ),
        ] {
            let difference = delong(samples, clusters, confidence).expect("both classes");
            assert_close(difference.delta, delta);
            assert_close(difference.standard_error.expect("a variance"), error);
            assert_close(difference.p_value.expect("a variance"), p_value);
            let [low, high] = difference.interval.expect("a variance");
            assert_close(low, interval[0]);
            assert_close(high, interval[1]);
        }
        let by_cluster = delong(&ten, &TEN_CLUSTERS, 0.95).expect("both classes");
        assert_close(by_cluster.delta, 0.27083333333333326);
        assert_close(by_cluster.standard_error.expect("a variance"), 0.2043715706159465);
        // A sample a cluster, however the clusters are numbered, is as without clusters.
        let singletons: Vec<usize> = (0..300).map(|i| 7 * (300 - i)).collect();
        assert_eq!(delong(&many, &singletons, 0.95), delong(&many, &[], 0.95));
    }

    #[test]
    fn without_variance_there_is_no_p_value() {
        let rising = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (scores, four) = ([0.3, 0.1, 0.2, 0.7, 0.7], [1.0, 2.0, 3.0, 0.0]);
        for (labels, first, second, clusters, delta, standard_error) in [
            // The same score twice.
            (&[false, true, false, true, false][..], &scores[..], &scores[..], &[][..], 0.0, Some(0.0)),
            (&[true, true, false, false], &four, &four, &[0, 1, 0, 1], 0.0, Some(0.0)),
            // Every sample is ranked right by one score and wrong by the other.
            (&[false, false, true, true, true], &rising, &[5.0, 4.0, 3.0, 2.0, 1.0], &[], -1.0, Some(0.0)),
            // A single member, and a single cluster of members, have no variance.
            (&[false, false, true], &rising[..3], &[3.0, 1.0, 2.0], &[], -0.5, None),
            (&[true, true, false, false], &four, &[3.0, 1.0, 2.0, 0.0], &[0, 0, 1, 2], 0.25, None),
        ] {
            let expected = PairedDeLong { delta, standard_error, interval: None, p_value: None };
            assert_eq!(delong(&paired(labels, first, second), clusters, 0.95), Ok(expected));
        }
    }

    #[test]
    fn what_has_no_comparison() {
        for (labels, score, error) in [
            ([true, true], 0.0, StatisticsError::NoNonMembers),
            ([false, false], 0.0, StatisticsError::NoMembers),
            ([false, true], f64::NAN, StatisticsError::NonFinite),
        ] {
            assert_eq!(delong(&paired(&labels, &[score, 1.0], &[0.0, 2.0]), &[], 0.95), Err(error));
        }
        let four = paired(&[false, false, true, true], &[1.0, 2.0, 1.5, 3.0], &[1.0, 2.0, 3.0, 4.0]);
        let invalid = delong(&four, &[], 1.0).expect("both classes");
        assert!(invalid.interval.is_none() && invalid.p_value.is_some());
    }

    /// From NumPy, as above.
    #[test]
    fn standard_errors_by_cluster_as_by_definition() {
        let error = |samples: &[LabelledScore], clusters: &[usize]| {
            auroc_standard_error_by_cluster(samples, clusters).expect("a variance")
        };
        assert_close(error(&labelled(&LABELS, &TIED), &TEN_CLUSTERS), 0.22155888772035448);
        let (many, clusters) = three_hundred();
        let many: Vec<LabelledScore> =
            many.iter().map(|sample| LabelledScore { score: sample.first, member: sample.member }).collect();
        assert_close(error(&many, &clusters), 0.03744759840277738);
        assert_close(error(&many, &[]), 0.030989175722547273);
    }

    #[test]
    fn without_two_clusters_of_a_class_there_is_no_error() {
        let four = labelled(&[true, true, false, false], &[1.0, 3.0, 2.0, 0.0]);
        for clusters in [[0; 4], [0, 0, 1, 2], [0, 1, 2, 2]] {
            assert_eq!(auroc_standard_error_by_cluster(&four, &clusters), None);
        }
        assert_eq!(auroc_standard_error_by_cluster(&labelled(&[true; 2], &[1.0, 2.0]), &[0, 0]), None);
        assert_eq!(auroc_standard_error_by_cluster(&labelled(&[true, false], &[1.0, f64::NAN]), &[0, 0]), None);
        // Two clusters of both classes are enough; here each is as the other.
        let alike = labelled(&[true, false, true, false], &[1.0; 4]);
        assert_eq!(auroc_standard_error_by_cluster(&alike, &[0, 0, 1, 1]), Some(0.0));
    }

    fn close(a: Option<f64>, b: Option<f64>) -> bool {
        a.zip(b).map_or(a == b, |(a, b)| (a - b).abs() <= 1e-12)
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
            let (reversed, of_reversed): (Vec<PairedScore>, Vec<usize>) =
                samples.iter().copied().zip(clusters.iter().copied()).rev().unzip();
            prop_assert!(close(error(delong(&reversed, &of_reversed, 0.95)), error(difference)));
            // Every sample twice, as a cluster, is that sample once.
            let twice: Vec<PairedScore> = samples.iter().flat_map(|sample| [*sample; 2]).collect();
            let of_twice: Vec<usize> = (0..twice.len()).map(|place| place / 2).collect();
            prop_assert!(close(error(delong(&twice, &of_twice, 0.95)), error(delong(&samples, &[], 0.95))));
        }

        #[test]
        fn errors_by_cluster(
            rows in prop::collection::vec((any::<bool>(), -6_i32..6, 0_usize..12), 2..60),
            copies in 2_usize..5,
        ) {
            let samples: Vec<LabelledScore> =
                rows.iter().map(|&(member, score, _)| LabelledScore { score: score.into(), member }).collect();
            let clusters: Vec<usize> = rows.iter().map(|row| row.2).collect();
            let error = auroc_standard_error_by_cluster(&samples, &clusters);
            prop_assert!(error.is_none_or(f64::is_finite));
            // An increasing function of the scores, and another order of the samples.
            let cubed: Vec<LabelledScore> =
                samples.iter().map(|s| LabelledScore { score: s.score.powi(3), member: s.member }).collect();
            prop_assert_eq!(auroc_standard_error_by_cluster(&cubed, &clusters), error);
            let reversed: Vec<LabelledScore> = samples.iter().rev().copied().collect();
            let reversed_clusters: Vec<usize> = clusters.iter().rev().copied().collect();
            prop_assert!(close(auroc_standard_error_by_cluster(&reversed, &reversed_clusters), error));
            // Every sample several times, as a cluster, is that sample once.
            let single = Roc::new(&samples).ok().and_then(|roc| roc.auroc_standard_error());
            let singletons: Vec<usize> = (0..samples.len()).collect();
            prop_assert_eq!(auroc_standard_error_by_cluster(&samples, &singletons), single);
            let copied: Vec<LabelledScore> = samples.iter().flat_map(|s| std::iter::repeat_n(*s, copies)).collect();
            let of_copies: Vec<usize> = singletons.iter().flat_map(|c| std::iter::repeat_n(*c, copies)).collect();
            prop_assert!(close(auroc_standard_error_by_cluster(&copied, &of_copies), single));
        }
    }
}
