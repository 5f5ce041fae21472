//! Which samples a replicate draws.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// Where the replicates come from.
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

    /// The key of the random draws among the samples that are `true` in `scored`: other samples, other draws.
    pub fn key(&self, scored: &[bool]) -> [u8; 32] {
        let seed = if let Self::Seeded { seed, .. } = self { *seed } else { 0 };
        let scored: Vec<u8> = scored.iter().map(|&scored| scored.into()).collect();
        Sha256::new().chain_update(seed.to_le_bytes()).chain_update(scored).finalize().into()
    }

    /// Writes to `counts`, which has a place for each sample, how often `replicate` draws it from `places`.
    pub fn count(&self, replicate: usize, key: [u8; 32], places: &[u32], counts: &mut [u32]) {
        counts.fill(0);
        let mut count = |place: u32| {
            if let Some(count) = counts.get_mut(place as usize) {
                *count += 1;
            }
        };
        match self {
            Self::Seeded { .. } => draw(replicate, key, places, count),
            Self::Listed(lists) => lists[replicate].iter().for_each(|&place| count(place)),
        }
    }
}

/// Draws as many of `places` as there are, with replacement.
///
/// Each replicate has a stream of ChaCha of its own, so that it does not matter who computes it or when. The number
/// below the bound is by Lemire 2019, here rather than from a library, whose next version may draw others.
fn draw(replicate: usize, key: [u8; 32], places: &[u32], mut count: impl FnMut(u32)) {
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(replicate as u64);
    let bound = places.len() as u64;
    // Without these the first numbers would come up once more often than the last.
    let rejected = (1_u64 << 32).checked_rem(bound).unwrap_or(0);
    for _ in places {
        let scaled = loop {
            let scaled = u64::from(random.next_u32()) * bound;
            if scaled & 0xffff_ffff >= rejected {
                break scaled;
            }
        };
        count(places[(scaled >> 32) as usize]);
    }
}
