//! Text that two works share, however each was cut: runs of 13 words.
//!
//! The length is that of GPT-3's decontamination (Brown et al. 2020, appendix C, <https://arxiv.org/abs/2005.14165>), which many
//! have taken over since. One side keeps every 8th of its n-grams, the other looks all of its own up: so a run of 20 words that
//! both have is always recognised, and two n-grams are only mistaken for each other where their hashes of 64 bits are equal.

use super::digest::normalized;
use super::shingles::{hash_bytes, hash_numbers};
use super::words::words;

/// The number of words in an n-gram.
pub const NGRAM_WORDS: usize = 13;

/// The distance between two n-grams that are kept, unless there are too many.
const FIRST_STEP: usize = 8;

/// Maximum number of n-grams that are kept, 32 MB of hashes: of 33 million words at the first step.
const MOST_KEPT: usize = 1 << 22;

/// The hash of each word of a text: in lower case after NFKC, without punctuation.
#[must_use]
pub fn word_hashes(text: &str) -> Vec<u64> {
    words(&normalized(text)).map(|word| hash_bytes(word.as_bytes())).collect()
}

/// The hash of every n-gram of words with these hashes, in order.
pub fn ngram_hashes(words: &[u64]) -> impl Iterator<Item = u64> {
    words.windows(NGRAM_WORDS).map(hash_numbers)
}

/// The number of words in a run of `ngrams` sampled n-grams, each `step` words after the one before; 0 for no n-gram.
#[must_use]
pub fn words_of_run(ngrams: usize, step: usize) -> usize {
    if ngrams == 0 { 0 } else { (ngrams - 1) * step + NGRAM_WORDS }
}

/// Every 8th n-gram of some texts, or every 16th, 32nd, ... where these would be more than four million.
#[derive(Clone, Debug)]
pub struct NgramSamples {
    step: usize,
    most: usize,
    kept: usize,
    texts: Vec<Box<[u64]>>,
}

impl Default for NgramSamples {
    fn default() -> Self {
        Self { step: FIRST_STEP, most: MOST_KEPT, kept: 0, texts: Vec::new() }
    }
}

impl NgramSamples {
    /// Adds a text whose words have these hashes.
    pub fn add(&mut self, words: &[u64]) {
        let sample: Box<[u64]> = ngram_hashes(words).step_by(self.step).collect();
        self.kept += sample.len();
        self.texts.push(sample);
        while self.kept > self.most {
            self.step *= 2;
            for text in &mut self.texts {
                *text = text.iter().step_by(2).copied().collect();
            }
            let kept = self.texts.iter().map(|text| text.len()).sum();
            // One n-gram of each text stays in any case.
            if kept == self.kept {
                break;
            }
            self.kept = kept;
        }
    }

    /// The distance of n-grams that are kept, and those of each text.
    #[must_use]
    pub fn finish(self) -> (usize, Vec<Box<[u64]>>) {
        (self.step, self.texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn numbered(words: impl Iterator<Item = usize>) -> String {
        words.map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn case_width_and_punctuation_do_not_count() {
        let [one, other] = ["\u{201c}Don\u{2019}t,\u{201d} she said \u{2014} twice.", "don't SHE said (Twice)"];
        assert_eq!(word_hashes(one), word_hashes(other));
        assert_ne!(word_hashes(one), word_hashes("don't she twice said"));
        assert!(word_hashes(" -- \u{2026}").is_empty());
    }

    #[test]
    fn a_run_is_as_long_as_its_words() {
        assert_eq!([0, 1, 2, 12].map(|ngrams| words_of_run(ngrams, 8)), [0, 13, 21, 101]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut samples = NgramSamples { most: 40, ..NgramSamples::default() };
        let text = word_hashes(&numbered(0..128));
        (0..9).for_each(|_| samples.add(&text));
        let (step, texts) = samples.finish();
        // 116 n-grams a text: 15 at step 8, 8 at 16, 4 at 32.
        assert_eq!((step, texts.len()), (32, 9));
        let expected: Vec<u64> = ngram_hashes(&text).step_by(32).collect();
        assert!(texts.iter().all(|kept| **kept == *expected), "{texts:?}");
        // More texts than n-grams that may be kept: one each.
        let mut samples = NgramSamples { most: 2, ..NgramSamples::default() };
        (0..3).for_each(|_| samples.add(&text));
        assert!(samples.finish().1.iter().all(|kept| kept.len() == 1));
    }

    proptest! {
        /// A run of 20 words is recognised wherever it is in either text.
        #[test]
        fn a_shared_run_of_twenty_words_is_recognised(before in 0_usize..40, after in 0_usize..40, other in 0_usize..40) {
            let run = || 1_000..1_020;
            let known = numbered((0..before).chain(run()).chain(2_000..2_000 + after));
            let tested = numbered((3_000..3_000 + other).chain(run()).chain(4_000..4_000 + before));
            let mut samples = NgramSamples::default();
            samples.add(&word_hashes(&known));
            let all: HashSet<u64> = ngram_hashes(&word_hashes(&tested)).collect();
            prop_assert_eq!(samples.finish().1[0].iter().filter(|hash| all.contains(hash)).count(), 1);
        }
    }
}
