//! Rejection rate of a test under the null hypothesis, for the tests of the tests.

use crate::random::stream;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::f64::consts::TAU;

const DRAWS: usize = 400;
const LEVEL: f64 = 0.05;
/// Two standard errors of a rate of 0.05 among 400.
const TOLERANCE: f64 = 0.0218;

/// Values of the standard normal distribution (Box and Muller 1958).
pub fn normals(random: &mut ChaCha8Rng, count: usize) -> Vec<f64> {
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..count).map(|_| (-2.0 * (1.0 - uniform()).ln()).sqrt() * (TAU * uniform()).cos()).collect()
}

/// The share of 400 draws under the null hypothesis whose p-value is at most 0.05.
fn rejection_rate(purpose: &str, mut p_value: impl FnMut(&mut ChaCha8Rng) -> f64) -> f64 {
    let mut random = stream(0, purpose);
    let rejected = (0..DRAWS).filter(|_| p_value(&mut random) <= LEVEL).count();
    rejected as f64 / DRAWS as f64
}

/// Asserts that a test whose p-value is uniform under the null hypothesis rejects as often as it should.
#[track_caller]
pub fn assert_exact_level(purpose: &str, p_value: impl FnMut(&mut ChaCha8Rng) -> f64) {
    let rate = rejection_rate(purpose, p_value);
    assert!((rate - LEVEL).abs() <= TOLERANCE, "{purpose}: rejects {rate} of the draws");
}

/// Asserts that a conservative test does not reject more often than it should.
#[track_caller]
pub fn assert_level_is_kept(purpose: &str, p_value: impl FnMut(&mut ChaCha8Rng) -> f64) {
    let rate = rejection_rate(purpose, p_value);
    assert!(rate <= LEVEL + TOLERANCE, "{purpose}: rejects {rate} of the draws");
}
