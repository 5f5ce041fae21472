//! Weights in random order, as an ablation of positional decay.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// The weights in an order that seed and text determine, so that it depends on no other text.
pub fn shuffled(weights: Vec<f64>, seed: u64, text: &str) -> Vec<f64> {
    let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(text).finalize();
    let mut random = ChaCha8Rng::from_seed(hash.into());
    let mut keyed: Vec<(u64, f64)> = weights.into_iter().map(|weight| (random.next_u64(), weight)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, weight)| weight).collect()
}
