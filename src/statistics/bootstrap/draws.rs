//! Which samples a replicate draws.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

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

    /// Counts in `counts`, which has an entry for each sample, how often `replicate` draws it from `indices`.
    pub fn count(&self, replicate: usize, key: [u8; 32], indices: &[u32], counts: &mut [u32]) {
        counts.fill(0);
        let mut count = |index: u32| {
            if let Some(count) = counts.get_mut(index as usize) {
                *count += 1;
            }
        };
        match self {
            Self::Seeded { .. } => draw(replicate, key, indices, count),
            Self::Listed(lists) => lists[replicate].iter().for_each(|&index| count(index)),
        }
    }
}

/// Draws `indices.len()` of `indices`, with replacement.
///
/// Each replicate has its own ChaCha stream, so that the result does not depend on who computes it or when. Bounded
/// numbers use the method of Lemire 2019, implemented here because the next version of a library may draw others.
fn draw(replicate: usize, key: [u8; 32], indices: &[u32], mut count: impl FnMut(u32)) {
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(replicate as u64);
    let bound = indices.len() as u64;
    // Without rejection, the first numbers would occur once more often than the last.
    let rejected = (1_u64 << 32).checked_rem(bound).unwrap_or(0);
    for _ in indices {
        let scaled = loop {
            let scaled = u64::from(random.next_u32()) * bound;
            if scaled & 0xffff_ffff >= rejected {
                break scaled;
            }
        };
        count(indices[(scaled >> 32) as usize]);
    }
}
