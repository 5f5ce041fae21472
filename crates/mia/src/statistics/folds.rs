//! Folds of texts that keep each cluster together.

use foldhash::{HashMap, HashMapExt};

pub const FOLDS: usize = 5;

/// The fold of each text, from 0 to 4: the i-th cluster of a label, counted from 0 by first appearance, is in fold
/// i mod 5. A cluster with both labels counts as one of its first text's label.
///
/// `clusters` has any number for each text, the same for the texts of a cluster. As many folds as the shorter list is
/// long. O(n).
#[must_use]
pub fn folds(labels: &[bool], clusters: &[usize]) -> Vec<usize> {
    let clusters = LabelledClusters::new(labels, clusters);
    let folds = label_folds(&clusters.labels);
    clusters.numbers.iter().map(|&cluster| folds[cluster]).collect()
}

/// The clusters of labelled texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelledClusters {
    /// The cluster of each text, from 0 by first appearance.
    pub numbers: Vec<usize>,
    /// The label of each cluster, which is that of its first text.
    pub labels: Vec<bool>,
}

impl LabelledClusters {
    pub fn new(labels: &[bool], clusters: &[usize]) -> Self {
        let mut dense: HashMap<usize, usize> = HashMap::new();
        let mut cluster_labels = Vec::new();
        let number = |(&label, &cluster)| {
            *dense.entry(cluster).or_insert_with(|| {
                cluster_labels.push(label);
                cluster_labels.len() - 1
            })
        };
        let numbers = labels.iter().zip(clusters).map(number).collect();
        Self { numbers, labels: cluster_labels }
    }
}

/// The fold of each cluster by the labels of the clusters.
pub(super) fn label_folds(labels: &[bool]) -> Vec<usize> {
    let mut counts = [0_usize; 2];
    let fold = |&label: &bool| {
        let count = &mut counts[usize::from(label)];
        *count += 1;
        (*count - 1) % FOLDS
    };
    labels.iter().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Worked example 10.
    #[test]
    fn texts_alone_take_turns() {
        let labels = [1, 1, 0, 0, 1, 0, 1, 0, 1, 0].map(|label| label == 1);
        let clusters: Vec<usize> = (0..10).collect();
        assert_eq!(folds(&labels, &clusters), [0, 1, 0, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_cluster_counts_once_as_its_first_text() {
        let labels = [true, false, false, true, true, false];
        assert_eq!(folds(&labels, &[7, 9, 7, 9, 2, 4]), [0, 0, 0, 0, 1, 1]);
        assert_eq!(folds(&labels, &[3; 6]), [0; 6]);
        assert_eq!(folds(&labels, &[1, 1]), [0; 2]);
        assert!(folds(&[], &[]).is_empty());
    }

    proptest! {
        #[test]
        fn clusters_stay_together_and_folds_are_even(
            texts in prop::collection::vec((any::<bool>(), 0_usize..12), 0..60)
        ) {
            let (labels, clusters): (Vec<bool>, Vec<usize>) = texts.into_iter().unzip();
            let folds = folds(&labels, &clusters);
            let mut sizes = [[0_usize; FOLDS]; 2];
            for (row, cluster) in clusters.iter().enumerate() {
                let first = clusters.iter().position(|other| other == cluster).expect("itself");
                prop_assert_eq!(folds[row], folds[first]);
                sizes[usize::from(labels[row])][folds[row]] += usize::from(first == row);
            }
            for sizes in sizes {
                prop_assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[FOLDS - 1] <= 1);
            }
        }
    }
}
