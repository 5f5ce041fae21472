//! The area under the ROC and its standard error.

use super::cluster_index::ClusterIndex;
use super::cluster_variance::{Component, variance_by_cluster};
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn assert_close(actual: Option<f64>, expected: f64) {
        assert!(actual.is_some_and(|actual| (actual - expected).abs() <= 1e-9), "{actual:?} is not {expected}");
    }

    fn samples(labels: &[u8], scores: &[f64]) -> Vec<LabelledScore> {
        labels.iter().zip(scores).map(|(&label, &score)| LabelledScore { score, member: label == 1 }).collect()
    }

    /// The expected numbers are from NumPy: every structural component as a loop over the other class, their sums by
    /// cluster, and the formula of Obuchowski 1997 as printed. Clusters have up to four samples, of both classes.
    #[test]
    fn standard_errors_by_cluster_as_by_definition() {
        let ten =
            samples(&[0, 0, 1, 1, 1, 1, 1, 1, 0, 0], &[0.5, 0.625, 0.0, 0.75, 0.875, 0.125, 0.875, 0.625, 0.0, 0.75]);
        let clusters = [0, 1, 1, 2, 2, 3, 4, 4, 0, 5];
        assert_close(auroc_standard_error_by_cluster(&ten, &clusters), 0.22155888772035448);
        let labels: Vec<u8> = (0..300).map(|i| u8::from(i * 7919 % 5 < 2)).collect();
        let scores: Vec<f64> = (0_u32..)
            .zip(&labels)
            .map(|(i, label)| f64::from((i * 7919 + 13) % 101) + 20.0 * f64::from(*label))
            .collect();
        let clusters: Vec<usize> = (0..300).map(|i| i * 31 % 97).collect();
        assert_close(auroc_standard_error_by_cluster(&samples(&labels, &scores), &clusters), 0.03744759840277738);
        assert_close(auroc_standard_error_by_cluster(&samples(&labels, &scores), &[]), 0.030989175722547273);
    }

    #[test]
    fn without_two_clusters_of_a_class_there_is_no_error() {
        let four = samples(&[1, 1, 0, 0], &[1.0, 3.0, 2.0, 0.0]);
        for clusters in [[0; 4], [0, 0, 1, 2], [0, 1, 2, 2]] {
            assert_eq!(auroc_standard_error_by_cluster(&four, &clusters), None);
        }
        assert_eq!(auroc_standard_error_by_cluster(&samples(&[1, 1], &[1.0, 2.0]), &[0, 0]), None);
        assert_eq!(auroc_standard_error_by_cluster(&samples(&[1, 0], &[1.0, f64::NAN]), &[0, 0]), None);
        // Two clusters of both classes are enough; here each is as the other.
        let alike = samples(&[1, 0, 1, 0], &[1.0, 1.0, 1.0, 1.0]);
        assert_eq!(auroc_standard_error_by_cluster(&alike, &[0, 0, 1, 1]), Some(0.0));
    }

    proptest! {
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
            let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-12,
                (a, b) => a == b,
            };
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
