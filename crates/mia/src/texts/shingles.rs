//! The shingles of a text, by which two texts are compared, and the sketch of 144 bytes that is kept to find similar ones.

use super::digest::{TextDigest, normalized};

/// The number of words in a shingle.
const WORDS: usize = 5;

/// The set of the shingles of a text: the hashes of every five successive words of its normalised form. A text of one
/// to four words has a single shingle, all of them; a text without words has none.
///
/// Words are what white space separates, so punctuation counts, and a text in a script without spaces has few. Takes 8
/// bytes a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shingles {
    /// In ascending order, each once.
    hashes: Box<[u64]>,
}

impl Shingles {
    /// The shingles of a text. O(n log n).
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut hashes = shingle_hashes(&normalized(text));
        hashes.sort_unstable();
        hashes.dedup();
        Self { hashes: hashes.into() }
    }

    /// Returns true if the Jaccard similarity of two texts, the share of their shingles that both have, is at least 0.8;
    /// false if neither has any. Exact, in integers, but for shingles that share a hash of 64 bits. O(n).
    #[must_use]
    pub fn similar(&self, other: &Self) -> bool {
        let (one, other) = (&self.hashes, &other.hashes);
        let enough = |both: usize| 5 * both >= 4 * (one.len() + other.len() - both);
        // The smaller set may be in the other one at best.
        let possible = enough(one.len().min(other.len()));
        possible && !one.is_empty() && enough(common(one, other))
    }
}

/// The hashes of the shingles of a normalised text, in order and with repetitions.
fn shingle_hashes(normalized: &str) -> Vec<u64> {
    let words: Vec<u64> = normalized.split_ascii_whitespace().map(|word| hash_bytes(word.as_bytes())).collect();
    words.windows(words.len().clamp(1, WORDS)).map(hash_numbers).collect()
}

/// The number of items that two ascending lists share.
fn common(one: &[u64], other: &[u64]) -> usize {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        both += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    both
}

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

/// The increment of [`scrambled`]'s counter, 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps 64 bits to 64 bits, one to one, such that each bit depends on all: the output function of SplitMix64 (Steele,
/// Lea and Flood 2014).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The number at `index` of a fixed sequence of random numbers.
const fn scrambled(index: u64) -> u64 {
    mix(index.wrapping_mul(GOLDEN))
}

/// The hash of a sequence of numbers; order and length matter.
pub(super) fn hash_numbers(numbers: &[u64]) -> u64 {
    numbers.iter().fold(mix(numbers.len() as u64), |hash, number| mix(hash ^ number))
}

/// The hash of bytes. Two different sequences of bytes share it with a probability of 2^-64, unless they are chosen for
/// that: it is no cryptographic hash. O(n).
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(mix(bytes.len() as u64), |hash, chunk| {
        let mut number = [0; 8];
        number[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::cluster_digest;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_short_text_is_one_shingle() {
        let number = |text| Shingles::new(text).hashes.len();
        assert_eq!(
            [number(""), number("a"), number("a b c d"), number("a b c d e"), number("a b c d e f")],
            [0, 1, 1, 1, 2]
        );
        let similar = |one, other| Shingles::new(one).similar(&Shingles::new(other));
        assert!(similar("One  two", "one TWO") && !similar("one two", "two one") && !similar("one", "one two"));
        assert!(!similar("", "") && !similar("", "a"));
        // A set: the repetition adds nothing.
        assert!(similar("a a a a a", "a a a a a a a a"));
    }

    /// Nine shingles against eight of them is 8 / 9; ten with eight in common is 8 / 10, and with seven 7 / 11.
    #[test]
    fn the_threshold_is_included() {
        let text = |words: &[u32]| words.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let similar = |one: &[u32], other: &[u32]| Shingles::new(&text(one)).similar(&Shingles::new(&text(other)));
        let words: Vec<u32> = (0..14).collect();
        assert!(similar(&words, &words[2..]));
        assert!(!similar(&words, &words[3..]));
        assert!(similar(&words[2..], &words));
    }

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

    /// The first outputs of SplitMix64 from the seed 0, as its authors' C code prints them.
    #[test]
    fn the_sequence_is_that_of_splitmix() {
        assert_eq!([scrambled(0), scrambled(1)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    /// The number is from the definition, written in Python.
    #[test]
    fn hashes_stay_the_same() {
        assert_eq!(hash_bytes(b""), mix(0));
        assert_eq!(hash_bytes(b"trial"), 0xa6fe_63f5_42a5_d4c2);
        let texts: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"aaaaaaaa", b"aaaaaaaa\0"];
        let distinct: HashSet<u64> = texts.iter().map(|text| hash_bytes(text)).collect();
        assert_eq!(distinct.len(), texts.len());
        assert_ne!(hash_numbers(&[1, 2]), hash_numbers(&[2, 1]));
    }

    proptest! {
        #[test]
        fn the_similarity_is_that_of_sets(
            one in prop::collection::vec(0_u8..4, 0..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..4), 0..3)
        ) {
            let mut other = one.clone();
            for (place, word) in changes {
                if !other.is_empty() {
                    let place = place.index(other.len());
                    other[place] = word;
                }
            }
            let text = |words: &[u8]| words.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
            let set = |words: &[u8]| -> HashSet<Vec<u8>> {
                words.windows(words.len().clamp(1, 5)).map(<[u8]>::to_vec).collect()
            };
            let (a, b) = (set(&one), set(&other));
            let union = a.union(&b).count();
            let expected = union > 0 && a.intersection(&b).count() * 10 >= union * 8;
            prop_assert_eq!(Shingles::new(&text(&one)).similar(&Shingles::new(&text(&other))), expected);
        }
    }
}
