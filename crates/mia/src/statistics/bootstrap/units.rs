//! What a replicate draws with replacement.

use crate::statistics::cluster_index::ClusterIndex;

/// The samples of a cohort, in what a replicate draws as a whole.
pub(super) enum Units {
    /// Every sample is drawn by itself. The indices of the samples.
    Samples(Vec<u32>),
    /// The indices of the samples of each cluster, in the order of first appearance.
    Clusters(Vec<Vec<u32>>),
}

impl Units {
    /// The units of the samples at `indices`, where `clusters` gives the cluster of each sample; a sample without an
    /// entry is a cluster by itself.
    pub fn new(clusters: &[usize], indices: &[u32]) -> Self {
        let index = ClusterIndex::new(clusters, indices.iter().map(|&index| index as usize));
        if index.is_singletons() {
            return Self::Samples(indices.to_vec());
        }
        let mut units = vec![Vec::new(); index.count];
        for (&cluster, &sample) in index.numbers.iter().zip(indices) {
            units[cluster].push(sample);
        }
        Self::Clusters(units)
    }
}
