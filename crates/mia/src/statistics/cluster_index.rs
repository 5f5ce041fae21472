//! Clusters of samples that are not independent of each other, numbered for sums over them.

use std::collections::HashMap;

/// The clusters of some samples, numbered from 0 in the order of first appearance.
pub(super) struct ClusterIndex {
    /// The number of each sample's cluster, less than `count`.
    pub numbers: Vec<usize>,
    pub count: usize,
}

impl ClusterIndex {
    /// Numbers the clusters of `samples`, which are positions in `clusters`: two samples are of one cluster if their
    /// entries are equal. A sample without an entry is a cluster by itself, so without any entry all are. O(n).
    pub fn new(clusters: &[usize], samples: impl Iterator<Item = usize>) -> Self {
        let mut known = HashMap::new();
        let mut count = 0;
        let mut next = || {
            count += 1;
            count - 1
        };
        let number = |sample: usize| match clusters.get(sample) {
            Some(&cluster) => *known.entry(cluster).or_insert_with(&mut next),
            None => next(),
        };
        let numbers = samples.map(number).collect();
        Self { numbers, count }
    }

    /// Returns true if every cluster is a single sample.
    pub fn is_singletons(&self) -> bool {
        self.count == self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_the_order_of_first_appearance() {
        let index = ClusterIndex::new(&[7, 0, 7, usize::MAX, 0], [0, 2, 3, 4].into_iter());
        assert_eq!((index.numbers.as_slice(), index.count, index.is_singletons()), (&[0, 0, 1, 2][..], 3, false));
    }

    #[test]
    fn samples_without_an_entry_are_clusters_by_themselves() {
        let index = ClusterIndex::new(&[1, 1], 0..4);
        assert_eq!((index.numbers.as_slice(), index.is_singletons()), (&[0, 0, 1, 2][..], false));
        let index = ClusterIndex::new(&[], 0..3);
        assert_eq!((index.numbers.as_slice(), index.is_singletons()), (&[0, 1, 2][..], true));
    }
}
