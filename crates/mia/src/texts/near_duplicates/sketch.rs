//! Sketch of a text, kept to find similar ones.

use super::shingles::shingle_hashes;
use crate::texts::cluster::normalized;
use crate::texts::digest::TextDigest;
use crate::texts::hash::{hash_numbers, scrambled};

/// The number of bands of a sketch.
pub(super) const BANDS: usize = 32;

/// The number of MinHash values in a band.
const VALUES: usize = 4;

/// The hash functions of each band. A function `(a, b)` maps a key x of 32 bits to the upper half of `a x + b`, modulo
/// 2^64 (multiply-shift, Dietzfelbinger 1996).
const FUNCTIONS: [[(u64, u64); VALUES]; BANDS] = {
    let mut functions = [[(0, 0); VALUES]; BANDS];
    let mut index = 0;
    while index < BANDS * VALUES {
        let constants = (scrambled(2 * index as u64), scrambled(2 * index as u64 + 1));
        functions[index / VALUES][index % VALUES] = constants;
        index += 1;
    }
    functions
};

/// The digest of a text's normalised form, and its MinHash (Broder 1997): 128 values in 32 bands of 4, each band hashed
/// to 32 bits. Takes 144 bytes.
///
/// Two texts agree in a value with the probability of their Jaccard similarity J, so in at least one band with
/// `1 - (1 - J^4)^32`: all but one in twenty million for J = 0.8, 1 in 20 for J = 0.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSketch {
    /// Digest of the text, as [`crate::texts::cluster_digest`] computes it.
    pub(super) digest: TextDigest,
    pub(super) bands: [u32; BANDS],
}

impl TextSketch {
    /// The digest of the text's normalised form.
    #[must_use]
    pub fn digest(&self) -> TextDigest {
        self.digest
    }

    /// The sketch of a text. O(n): 128 multiplications a word.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let normalized = normalized(text);
        // Half of each hash is enough to find candidates.
        let keys: Vec<u32> = shingle_hashes(&normalized).into_iter().map(|hash| (hash >> 32) as u32).collect();
        let bands = FUNCTIONS.map(|functions| (hash_numbers(&minima(&functions, &keys)) >> 32) as u32);
        Self { digest: TextDigest::new(&normalized), bands }
    }
}

/// The least value of each function over the keys.
fn minima(functions: &[(u64, u64); VALUES], keys: &[u32]) -> [u64; VALUES] {
    let mut minima = [u64::MAX; VALUES];
    for &key in keys {
        for (minimum, (a, b)) in minima.iter_mut().zip(functions) {
            *minimum = (*minimum).min(a.wrapping_mul(key.into()).wrapping_add(*b));
        }
    }
    minima.map(|minimum| minimum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::cluster_digest;

    /// The numbers are from the definition, written in Python.
    #[test]
    fn sketches_stay_the_same_and_small() {
        let sketch = TextSketch::new("The boat  on the river was cold");
        assert_eq!(sketch, TextSketch::new("the boat on THE river was cold"));
        assert_eq!(sketch.digest, cluster_digest("The boat on the river was cold"));
        assert_eq!((sketch.bands[0], sketch.bands[31]), (0xb275_de76, 0x9fd9_129f));
        assert_eq!(size_of::<TextSketch>(), 144);
    }

    /// The share of equal values estimates the similarity J with a standard error of sqrt(J (1 - J) / 128): over 200
    /// pairs with J = 0.8, the mean is within 4 standard errors, and every pair shares a band.
    #[test]
    fn similar_texts_agree_in_as_many_values() {
        let key = |index: u64| (scrambled(1_000_000 + index) >> 32) as u32;
        let (mut equal, mut missed) = (0_u32, 0);
        for pair in 0..200 {
            let keys: Vec<u32> = (0..90).map(|index| key(100 * pair + index)).collect();
            let both = FUNCTIONS.map(|functions| (minima(&functions, &keys[..81]), minima(&functions, &keys[9..])));
            missed += usize::from(both.iter().all(|(one, other)| one != other));
            let values = both.iter().flat_map(|(one, other)| one.iter().zip(other));
            equal += values.map(|(one, other)| u32::from(one == other)).sum::<u32>();
        }
        let share = f64::from(equal) / (200.0 * 128.0);
        assert!((share - 0.8).abs() < 4.0 * (0.16_f64 / 25_600.0).sqrt(), "{share}");
        assert_eq!(missed, 0);
    }
}
