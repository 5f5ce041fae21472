//! Which samples a replicate draws.

use crate::random::index_below;
use crate::statistics::clusters::ClusterIndex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};

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
        let mut units = vec![Vec::new(); index.count()];
        for (&cluster, &sample) in index.numbers.iter().zip(indices) {
            units[cluster].push(sample);
        }
        Self::Clusters(units)
    }
}

/// The source of the replicates.
pub(super) enum Draws<'a> {
    /// Drawn at random.
    Seeded { replicates: usize, seed: u64 },
    /// Given as lists of indices.
    Listed(&'a [Vec<u32>]),
}

impl Draws<'_> {
    pub fn replicates(&self) -> usize {
        match self {
            Self::Seeded { replicates, .. } => *replicates,
            Self::Listed(lists) => lists.len(),
        }
    }

    /// The key of the random draws among the samples with `true` in `scored`: different samples have different draws.
    pub fn key(&self, scored: &[bool]) -> [u8; 32] {
        let seed = if let Self::Seeded { seed, .. } = self { *seed } else { 0 };
        let scored: Vec<u8> = scored.iter().map(|&scored| scored.into()).collect();
        Sha256::new().chain_update(seed.to_le_bytes()).chain_update(scored).finalize().into()
    }

    /// Counts in `counts`, which has an entry for each sample, how often `replicate` draws it from `units`.
    pub fn count(&self, replicate: usize, key: [u8; 32], units: &Units, counts: &mut [u32]) {
        counts.fill(0);
        let mut count = |index: u32| {
            if let Some(count) = counts.get_mut(index as usize) {
                *count += 1;
            }
        };
        match self {
            Self::Seeded { .. } => match units {
                Units::Samples(indices) => draw(replicate, key, indices, |&index| count(index)),
                Units::Clusters(clusters) => draw(replicate, key, clusters, |cluster| {
                    cluster.iter().for_each(|&index| count(index));
                }),
            },
            Self::Listed(lists) => lists[replicate].iter().for_each(|&index| count(index)),
        }
    }
}

/// Draws as many of `units` as there are, with replacement.
///
/// Each replicate has its own ChaCha stream, so that the result does not depend on who computes it or when.
fn draw<T>(replicate: usize, key: [u8; 32], units: &[T], mut count: impl FnMut(&T)) {
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(replicate as u64);
    for _ in units {
        count(&units[index_below(&mut random, units.len() as u32) as usize]);
    }
}
