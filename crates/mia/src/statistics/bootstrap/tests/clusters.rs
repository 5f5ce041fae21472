//! Draws of whole clusters.

use super::{LABELS, TIED, all, alone, only};
use crate::statistics::bootstrap::draws::{Draws, Units};
use crate::statistics::bootstrap::{Bootstrap, bootstrap};
use crate::statistics::{LabelledScore, auroc_standard_error_by_cluster};

#[test]
fn clusters_are_drawn_as_a_whole() {
    // Clusters by first appearance: 0 and 3, then 1, then 4 and 5; the sample at 2 has no score.
    let clusters = [9, 4, 9, 9, 0, 0];
    let places = [0, 1, 3, 4, 5];
    let key = [1; 32];
    let draws = Draws::Seeded { replicates: 100, seed: 1 };
    let (mut by_cluster, mut counts) = ([0; 3], [0; 6]);
    for replicate in 0..100 {
        draws.count(replicate, key, &Units::new(&[], &[0, 1, 2]), &mut by_cluster);
        draws.count(replicate, key, &Units::new(&clusters, &places), &mut counts);
        let [first, second, third] = by_cluster;
        assert_eq!((counts, first + second + third), ([first, second, 0, first, third, third], 3));
    }
}

#[test]
fn a_sample_a_cluster_is_as_without_clusters() {
    let scores = all(&TIED);
    let resampled =
        |clusters: &[usize]| bootstrap(&LABELS, clusters, &[alone(&scores)], &[0.5], &Bootstrap::default(), &|| true);
    let without = resampled(&[]);
    assert_eq!(resampled(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), without);
    assert_eq!(resampled(&[5, 50, 500, 1, 0, 2, 90, 3, 4, 6]), without);
    assert_ne!(resampled(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 8]), without);
}

#[test]
fn repeated_samples_vary_as_the_samples_do() {
    // Every sample three times, as a cluster.
    let labels: Vec<bool> = (0..100).map(|i| i % 2 == 1).collect();
    let scores: Vec<f64> = (0..100).map(|i| f64::from(i * 7919 % 101) + 20.0 * f64::from(i % 2)).collect();
    let clusters: Vec<usize> = (0..300).map(|place| place / 3).collect();
    let copied_labels: Vec<bool> = clusters.iter().map(|&sample| labels[sample]).collect();
    let copied_scores: Vec<Option<f64>> = clusters.iter().map(|&sample| Some(scores[sample])).collect();
    let settings = Bootstrap { replicates: 2000, ..Bootstrap::default() };
    let once = only(&labels, &all(&scores), &settings).auroc.expect("both classes");
    let column = [alone(&copied_scores)];
    let repeated = bootstrap(&copied_labels, &clusters, &column, &[], &settings, &|| true).remove(0).summary;
    let repeated = repeated.auroc.expect("both classes");
    // The draws depend on the number of samples and so differ: five standard errors of a difference of means, and of
    // deviations.
    assert!((repeated.mean - once.mean).abs() < 5.0 * once.standard_deviation / 1000_f64.sqrt());
    assert!((repeated.standard_deviation / once.standard_deviation - 1.0).abs() < 5.0 / 2000_f64.sqrt());
    // As independent samples they would seem to say more.
    let independent = only(&copied_labels, &copied_scores, &settings).auroc.expect("both classes");
    assert!((independent.standard_deviation / once.standard_deviation * 3_f64.sqrt() - 1.0).abs() < 0.15);
}

#[test]
fn the_deviation_by_cluster_is_near_the_standard_error() {
    // Clusters of one to five samples of both classes, which share a part of their scores.
    let clusters: Vec<usize> = (0..600).map(|i| i * i / 3 % 199).collect();
    let labels: Vec<bool> = (0..600).map(|i| (i * 7919 + i / 7) % 3 == 0).collect();
    let scores: Vec<f64> = (0..600)
        .map(|i| (clusters[i] * 104_729 % 211) as f64 + (i * 7919 % 103) as f64 + 40.0 * f64::from(u8::from(labels[i])))
        .collect();
    let samples: Vec<LabelledScore> =
        scores.iter().zip(&labels).map(|(&score, &member)| LabelledScore { score, member }).collect();
    let error = auroc_standard_error_by_cluster(&samples, &clusters).expect("two clusters of each class");
    let settings = Bootstrap { replicates: 4000, ..Bootstrap::default() };
    let scores = all(&scores);
    let summary = bootstrap(&labels, &clusters, &[alone(&scores)], &[], &settings, &|| true).remove(0).summary;
    let deviation = summary.auroc.expect("both classes").standard_deviation;
    assert!((deviation / error - 1.0).abs() < 0.1, "{deviation} {error}");
    let independent = only(&labels, &scores, &settings).auroc.expect("both classes").standard_deviation;
    assert!((independent / error - 1.0).abs() > 0.1, "{independent} {error}");
}
