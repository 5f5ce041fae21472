//! Random numbers that a seed and a purpose decide: the same on every machine, and no two purposes share them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// A stream of random numbers for one purpose.
pub fn stream(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(purpose);
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// A stream of random numbers from a key of 256 bits, such as one from the operating system.
pub fn seeded(bits: [u8; 32]) -> ChaCha8Rng {
    ChaCha8Rng::from_seed(bits)
}

/// Fisher and Yates' shuffle.
pub fn shuffle<T>(items: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(random, last as u64 + 1) as usize);
    }
}

/// A uniform number below `bound`, which is positive, by the method of Lemire 2019. Implemented here because the next
/// version of a library may draw others. Without rejection, the lowest products would occur once more often.
pub fn index_below(random: &mut ChaCha8Rng, bound: u32) -> u32 {
    loop {
        let scaled = u64::from(random.next_u32()) * u64::from(bound);
        let low = scaled as u32;
        // The division is rarely necessary.
        if low >= bound || bound.wrapping_neg().checked_rem(bound).is_none_or(|rejected| low >= rejected) {
            return (scaled >> 32) as u32;
        }
    }
}

/// A uniform number below a bound, by rejection.
fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = random.next_u64();
        if drawn < fair {
            return drawn % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of docs/draws.md, which its code in Python gives.
    #[test]
    fn draws_are_those_of_the_documentation() {
        let words = |number| {
            let mut random = stream(0, "max-t");
            random.set_stream(number);
            [random.next_u32(), random.next_u32()]
        };
        assert_eq!(words(0)[0], 0xca0a_4a9d);
        assert_eq!(words(1), [0x1ab2_00fb, 0xa731_6a74]);
        let mut random = stream(1, "sign flip");
        assert_eq!(std::array::from_fn(|_| index_below(&mut random, 10)), [7, 1, 5, 2, 8, 3, 2, 8]);
        assert_eq!(random.next_u64(), 0x9afe_3131_38b3_4508);
        let mut items: Vec<u32> = (0..10).collect();
        shuffle(&mut items, &mut stream(7, "calibration share"));
        assert_eq!(items, [5, 7, 2, 9, 0, 3, 6, 4, 8, 1]);
    }
}
