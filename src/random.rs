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

/// Independent uniform numbers, each below its bound, all of one draw of 64 bits: Brackett-Rozinsky and Lemire 2024. The bounds are
/// positive and their product is less than 2^64.
pub fn indices_below<const N: usize>(random: &mut ChaCha8Rng, bounds: [u32; N]) -> [u32; N] {
    let product: u64 = bounds.iter().map(|&bound| u64::from(bound)).product();
    loop {
        let mut low = random.next_u64();
        let drawn = bounds.map(|bound| {
            let scaled = u128::from(low) * u128::from(bound);
            low = scaled as u64;
            (scaled >> 64) as u32
        });
        // The division is rarely necessary.
        if low >= product || product.wrapping_neg().checked_rem(product).is_none_or(|rejected| low >= rejected) {
            return drawn;
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
    use super::{indices_below, stream};

    /// The 60 triples below (3, 4, 5) are equally frequent: chi-squared with 59 degrees of freedom exceeds 98.3 in one of a
    /// thousand draws.
    #[test]
    fn several_numbers_of_one_draw_are_independent_and_uniform() {
        let (mut random, mut counts) = (stream(1, "triples"), [0_u32; 60]);
        for _ in 0..60_000 {
            let [a, b, c] = indices_below(&mut random, [3, 4, 5]);
            counts[(a * 20 + b * 5 + c) as usize] += 1;
        }
        let chi_squared: f64 = counts.iter().map(|&count| (f64::from(count) - 1_000.0).powi(2) / 1_000.0).sum();
        assert!(chi_squared < 98.3, "{chi_squared}");
    }

    /// Where every other product of a draw would be rejected, the numbers are below their bounds all the same.
    #[test]
    fn bounds_may_be_large() {
        let mut random = stream(2, "large");
        let bounds = [u32::MAX, u32::MAX / 2 + 2];
        let mut largest = [0; 2];
        for _ in 0..1_000 {
            let drawn = indices_below(&mut random, bounds);
            assert!(drawn.iter().zip(&bounds).all(|(drawn, bound)| drawn < bound));
            largest = [largest[0].max(drawn[0]), largest[1].max(drawn[1])];
        }
        assert!(largest.iter().zip(&bounds).all(|(drawn, &bound)| f64::from(*drawn) > 0.99 * f64::from(bound)));
        assert_eq!(indices_below(&mut random, [1, 1]), [0, 0]);
    }
}
