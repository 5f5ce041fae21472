//! Published texts against private rewrites, tested by permuting which of them was published.

use super::HypothesisError;
use super::student::{TTest, one_sample_t};
use crate::random::{index_below, stream};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Up to this many choices of the published texts, all are enumerated.
const MOST_ENUMERATED: usize = 1 << 16;
/// Choices that are drawn at random where there are more.
const PERMUTATIONS: usize = 9_999;

/// The scores of a document's texts.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentScores {
    pub published: f64,
    /// At least one.
    pub private: Vec<f64>,
}

/// The result of a permutation test that published texts score above their private rewrites.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublicationTest {
    pub documents: usize,
    /// The mean over the documents of the published text's score less the mean score of its private rewrites.
    pub mean: f64,
    /// One-sided: the share of the choices of one text per document whose mean is at least the observed one.
    pub p_value: f64,
    /// True if all choices were enumerated; otherwise a sample of them was drawn.
    pub exact: bool,
    /// The number of choices, without the observed one if they were drawn.
    pub permutations: usize,
    /// Student's test that the mean is greater than 0; absent for one document or constant differences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<TTest>,
}

impl DocumentScores {
    /// The published text's score less the mean of the others.
    pub fn difference(&self) -> f64 {
        self.published - self.private.iter().sum::<f64>() / self.private.len() as f64
    }

    /// The difference for each choice of the published text, the observed one first.
    fn differences(&self) -> Vec<f64> {
        let sum = self.published + self.private.iter().sum::<f64>();
        let others = self.private.len() as f64;
        let chosen = self.private.iter().map(|score| score - (sum - score) / others);
        std::iter::once(self.difference()).chain(chosen).collect()
    }
}

/// Tests whether the published texts of `documents` tend to score above their private rewrites: under the null
/// hypothesis, each text of a document is equally likely to be the published one. With one rewrite of each text this is
/// Fisher's test by flipping the signs of the differences (1935). With more it is not: the difference to the mean of
/// several rewrites is skewed where scores are, and flipped signs would give small p-values too often.
///
/// Exact over all choices of one text per document where there are at most 2^16. Otherwise 9,999 choices are drawn from
/// `seed`, and the p-value is `(1 + reached) / (1 + 9999)`; O(9999 n). Choices whose sum is within 1e-12 of the observed
/// one, relative to the sum of the largest magnitudes, count as equal to it. Once `keep_going` returns false, stops with
/// fewer permutations.
///
/// # Errors
///
/// If there are no documents, one has no private text, or a score or the sum of the magnitudes is not finite.
pub fn publication_test(
    documents: &[DocumentScores],
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Result<PublicationTest, HypothesisError> {
    if documents.is_empty() || documents.iter().any(|document| document.private.is_empty()) {
        return Err(HypothesisError::NoValues);
    }
    let choices: Vec<Vec<f64>> = documents.iter().map(DocumentScores::differences).collect();
    let magnitude: f64 = choices.iter().map(|choices| choices.iter().fold(0.0, |most, d| d.abs().max(most))).sum();
    if !magnitude.is_finite() || choices.iter().flatten().any(|difference| !difference.is_finite()) {
        return Err(HypothesisError::NonFinite);
    }
    let observed: Vec<f64> = choices.iter().map(|choices| choices[0]).collect();
    let sum: f64 = observed.iter().sum();
    let threshold = reached_from(sum, magnitude);
    let all = choices.iter().try_fold(1, |all: usize, choices| all.checked_mul(choices.len()));
    let exact = all.is_some_and(|all| all <= MOST_ENUMERATED);
    let (reached, permutations) =
        if exact { enumerate(&choices, threshold) } else { draw(&choices, threshold, seed, keep_going) };
    let p_value = if exact { reached as f64 / permutations as f64 } else { permutation_p_value(reached, permutations) };
    let mean = sum / documents.len() as f64;
    Ok(PublicationTest { documents: documents.len(), mean, p_value, exact, permutations, t: one_sample_t(&observed) })
}

/// Enumerates all choices of one text per document. Returns the number of choices whose sum is at least `threshold`, and
/// the number of all choices.
fn enumerate(choices: &[Vec<f64>], threshold: f64) -> (usize, usize) {
    let mut sums = vec![0.0];
    for differences in choices {
        sums = sums.iter().flat_map(|sum| differences.iter().map(move |difference| sum + difference)).collect();
    }
    (sums.iter().filter(|sum| **sum >= threshold).count(), sums.len())
}

/// Draws choices of one text per document from `seed`. Returns the number of choices whose sum is at least `threshold`,
/// and the number of choices drawn.
fn draw(choices: &[Vec<f64>], threshold: f64, seed: u64, keep_going: &dyn Fn() -> bool) -> (usize, usize) {
    let mut random = stream(seed, "published texts");
    let mut drawn = |differences: &Vec<f64>| differences[index_below(&mut random, differences.len() as u32) as usize];
    let (mut reached, mut permutations) = (0, 0);
    while permutations < PERMUTATIONS && keep_going() {
        reached += usize::from(choices.iter().map(&mut drawn).sum::<f64>() >= threshold);
        permutations += 1;
    }
    (reached, permutations)
}

/// Two sums count as equal if they differ by at most this share of the sum of the magnitudes of their terms.
///
/// Sums of n numbers that would be equal in exact arithmetic differ by less than n * 2.2e-16 of that sum (Higham 1993),
/// and typically by its square root, so this covers thousands of terms at worst and any number in practice. A
/// permutation that counts as equal counts against the hypothesis, so that the error of a p-value is on the safe side.
const EQUAL: f64 = 1e-12;

/// The least sum that counts as reaching `observed`, with `magnitude` the sum of the magnitudes of the terms.
pub(super) fn reached_from(observed: f64, magnitude: f64) -> f64 {
    observed - EQUAL * magnitude
}

/// The p-value where `reached` of `permutations` drawn at random are at least as extreme as the observed statistic:
/// `(1 + reached) / (1 + permutations)`, never 0 (Phipson and Smyth 2010).
pub(super) fn permutation_p_value(reached: usize, permutations: usize) -> f64 {
    (1 + reached) as f64 / (1 + permutations) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{DIFFERENCES, assert_exact_level, assert_level_is_kept, assert_within, normals};
    use proptest::prelude::*;

    /// Documents with one rewrite each, which scores 0.
    fn pairs(differences: &[f64]) -> Vec<DocumentScores> {
        differences.iter().map(|&published| DocumentScores { published, private: vec![0.0] }).collect()
    }

    fn test(differences: &[f64], seed: u64) -> PublicationTest {
        publication_test(&pairs(differences), seed, &|| true).expect("differences")
    }

    /// By hand: of the 2 * 3 choices, the differences of the first document are 1 and -1, of the second 3 - 1/2 = 5/2,
    /// 1 - 3/2 = -1/2 and 0 - 2 = -2, so that the observed sum of 7/2 is the largest.
    #[test]
    fn several_rewrites() {
        let document = |published: f64, private: &[f64]| DocumentScores { published, private: private.to_vec() };
        let first = [document(1.0, &[0.0]), document(3.0, &[1.0, 0.0])];
        let highest = publication_test(&first, 0, &|| true).unwrap();
        assert_eq!((highest.p_value, highest.permutations, highest.mean), (1.0 / 6.0, 6, 1.75));
        // Sums of 1 - 1/2 and of -1 + 5/2 reach 1/2 beside 7/2.
        let second = [document(1.0, &[0.0]), document(1.0, &[3.0, 0.0])];
        assert_eq!(publication_test(&second, 0, &|| true).unwrap().p_value, 0.5);
        assert_eq!(publication_test(&[document(1.0, &[])], 0, &|| true), Err(HypothesisError::NoValues));
    }

    /// Scores of the exponential distribution with the sign changed: the published ones less the mean of five are skewed.
    #[test]
    fn skewed_scores_with_several_rewrites_keep_the_level() {
        let skewed = |random: &mut rand_chacha::ChaCha8Rng| -> f64 {
            let [a, b] = [0, 1].map(|_| normals(random, 1)[0]);
            -(a * a + b * b) / 2.0
        };
        let p_value = |count: usize, random: &mut rand_chacha::ChaCha8Rng| {
            let documents: Vec<DocumentScores> = (0..count)
                .map(|_| DocumentScores {
                    published: skewed(random),
                    private: (0..5).map(|_| skewed(random)).collect(),
                })
                .collect();
            publication_test(&documents, 0, &|| true).unwrap().p_value
        };
        assert_level_is_kept("few documents", |random| p_value(6, random));
        assert_exact_level("twelve documents", |random| p_value(12, random));
    }

    #[test]
    fn the_worked_example() {
        let PublicationTest { documents, mean, p_value, exact, permutations, t } = test(&DIFFERENCES, 0);
        assert_eq!((documents, exact, permutations, p_value), (8, true, 256, 0.015625));
        assert_within(mean, 0.08375, 1e-15);
        assert_within(t.expect("variance").p_value, 0.0103342384687311, 1e-12);
    }

    #[test]
    fn few_or_constant_differences() {
        let p_values = |differences: &[f64]| test(differences, 0).p_value;
        assert_eq!([p_values(&[0.3]), p_values(&[-0.3]), p_values(&[0.0])], [0.5, 1.0, 1.0]);
        assert_eq!([p_values(&[0.0; 5]), p_values(&[0.1; 5]), p_values(&[0.0; 40])], [1.0, 1.0 / 32.0, 1.0]);
        // Exactly the observed combination of 2^16.
        assert_eq!(p_values(&[0.1; 16]), 1.0 / 65_536.0);
        assert_eq!(p_values(&[0.1; 50]), 1.0 / 10_000.0);
        assert_eq!(test(&[0.1; 5], 0).t, None);
        // The exact sum 0.1 + 0.2 - 0.3 is 0, which rounding misses; 5 of the 8 sums are at least 0.
        assert_eq!(p_values(&[0.1, 0.2, -0.3]), 0.625);
    }

    /// The expected p-value is exact: NumPy, over all 2^20 combinations of signs.
    #[test]
    fn drawn_permutations_approach_the_exact_p_value() {
        let differences: Vec<f64> = (0..20).map(|i| f64::from((i * 37 + 5) % 41 - 16) / 10.0).collect();
        let drawn = test(&differences, 1);
        assert_eq!((drawn.exact, drawn.permutations), (false, 9_999));
        // Four standard errors.
        assert!((drawn.p_value - 0.06605339050292969).abs() < 0.01, "{}", drawn.p_value);
        assert_eq!(drawn, test(&differences, 1));
        assert_ne!(drawn.p_value, test(&differences, 2).p_value);
    }

    #[test]
    fn what_cannot_be_tested() {
        let error = |differences: &[f64]| publication_test(&pairs(differences), 0, &|| true).unwrap_err();
        assert_eq!(error(&[]), HypothesisError::NoValues);
        assert_eq!(error(&[1.0, f64::NAN]), HypothesisError::NonFinite);
        assert_eq!(error(&[f64::MAX, f64::MIN]), HypothesisError::NonFinite);
        let stopped = publication_test(&pairs(&[1.0; 20]), 0, &|| false).expect("differences");
        assert_eq!((stopped.p_value, stopped.permutations), (1.0, 0));
    }

    #[test]
    fn type_one_error() {
        assert_level_is_kept("enumerated", |random| test(&normals(random, 8), 0).p_value);
        let mut seed = 0;
        assert_exact_level("drawn", |random| {
            seed += 1;
            test(&normals(random, 20), seed).p_value
        });
        assert_exact_level("t", |random| one_sample_t(&normals(random, 8)).expect("variance").p_value);
    }

    proptest! {
        #[test]
        fn sides_and_scales(differences in proptest::collection::vec(-9.0..9.0_f64, 1..12), scale in 1e-6..1e6_f64) {
            let one = test(&differences, 0);
            let scaled: Vec<f64> = differences.iter().map(|difference| scale * difference).collect();
            prop_assert_eq!(test(&scaled, 0).p_value, one.p_value);
            let opposite: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            // At least and at most the observed sum: the observed combination is in both.
            prop_assert!(one.p_value + test(&opposite, 0).p_value > 1.0);
            prop_assert!(one.p_value >= 0.5_f64.powi(differences.len() as i32));
        }
    }
}
