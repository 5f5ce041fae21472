//! Hashes of 64 bits that are the same on every machine and in every version: results depend on them.

/// The increment of [`scrambled`]'s counter, 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps 64 bits to 64 bits, one to one, such that each bit depends on all: the output function of SplitMix64 (Steele,
/// Lea and Flood 2014).
pub(super) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The number at `index` of a fixed sequence of random numbers.
pub(super) const fn scrambled(index: u64) -> u64 {
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
        let distinct: std::collections::HashSet<u64> = texts.iter().map(|text| hash_bytes(text)).collect();
        assert_eq!(distinct.len(), texts.len());
        assert_ne!(hash_numbers(&[1, 2]), hash_numbers(&[2, 1]));
    }
}
