//! Data and assertions that the tests of several statistics share.

use super::LabelledScore;
use crate::random::stream;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::f64::consts::TAU;

/// Ten texts of the worked examples, by members and non-members.
pub const TEXTS: [&str; 10] = [
    "The trial began in March",
    "A new trial in 2023",
    "March was cold",
    "The river was cold",
    "In 2023 the court met",
    "The boat on the river",
    "A trial court met",
    "Cold water and a boat",
    "The court in March",
    "Water on the boat",
];
pub const TEXT_LABELS: [bool; 10] = [true, true, false, false, true, false, true, false, true, false];

/// Ten samples with two scores, one with ties and one without.
pub const LABELS: [bool; 10] = [false, false, true, true, true, true, true, true, false, false];
pub const TIED: [f64; 10] = [0.5, 0.625, 0.0, 0.75, 0.875, 0.125, 0.875, 0.625, 0.0, 0.75];
pub const UNTIED: [f64; 10] = [0.5, 0.3, 0.6, 0.8, 0.9, 0.4, 0.7, 0.65, 0.1, 0.55];

/// Two groups of the worked examples of tests.
pub const SUSPECTS: [f64; 8] = [-1.8, -1.2, -2.0, -1.5, -1.1, -1.9, -1.3, -1.6];
pub const HELD_OUT: [f64; 8] = [-2.4, -1.9, -2.2, -2.6, -1.7, -2.1, -2.5, -2.0];
/// The differences of the worked example of paired texts.
pub const DIFFERENCES: [f64; 8] = [0.12, -0.03, 0.20, 0.05, 0.11, -0.01, 0.07, 0.16];

pub fn labelled(labels: &[bool], scores: &[f64]) -> Vec<LabelledScore> {
    labels.iter().zip(scores).map(|(&member, &score)| LabelledScore { score, member }).collect()
}

#[track_caller]
pub fn assert_within(actual: f64, expected: f64, tolerance: f64) {
    let error = (actual - expected).abs();
    assert!(error <= tolerance, "{actual} is not {expected}: off by {error}");
}

#[track_caller]
pub fn assert_close(actual: f64, expected: f64) {
    assert_within(actual, expected, 1e-9);
}

#[track_caller]
pub fn assert_relative(actual: f64, expected: f64) {
    assert_within(actual, expected, 1e-9 * expected.abs());
}

#[track_caller]
pub fn assert_all_within(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    actual.iter().zip(expected).for_each(|(actual, expected)| assert_within(*actual, *expected, tolerance));
}

/// The result of a computation on rayon pools of one thread and of four, which must be the same.
#[track_caller]
pub fn assert_same_on_any_threads<T: PartialEq + std::fmt::Debug + Send>(compute: impl Fn() -> T + Sync) -> T {
    let on = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(&compute);
    let one = on(1);
    assert_eq!(on(4), one);
    one
}

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
