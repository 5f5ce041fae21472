//! Greedy continuation of a text from a seed passage, and how much of the text it gives back near-verbatim.

use super::extraction::{TextContinuation, TextExtraction, VerbatimBlock, WindowPlace};
use super::passes::WindowShape;
use crate::scorer::TextError;
use crate::wire::number_of;
use lm::models::{Continuation, Ending};
use lm::tokenizer::Encoded;
use mia::methods::Fault;
use mia::texts::{ComparedWords, MergeAndFilter, NEAR_VERBATIM_PASSES, NearVerbatimBlock, near_verbatim};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use std::ops::Range;
use std::sync::Arc;
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// Maximum number of tokens of a continuation; the model's context may have room for fewer.
const MOST_TOKENS: usize = 10_000;
/// Maximum number of tokens of all continuations of a job: each may take a pass.
const MOST_WRITTEN: usize = 200_000;

/// Greedy continuation of each text and of each text of the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContinuationSettings {
    /// Tokens to write, if the model does not end the text before.
    #[default = 200]
    #[schema(minimum = 1, maximum = 10_000)]
    pub tokens: usize,
    /// Window whose prefix is continued.
    pub from: SeedPassage,
    /// Least number of matching words of a near-verbatim block, at most `tokens`; 100, or `tokens` if they are fewer, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub least_words: Option<usize>,
}

/// Passage of a text that a model continues: the prefix of one of its windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SeedPassage {
    /// The window with the largest `log_p` among those that are given `prefix` tokens.
    #[default]
    MostProbable,
    /// The first window.
    Start,
}

/// A passage to be continued, and what follows it in its text.
pub struct Seed {
    /// Ids that are continued: those that the tokenizer puts before a text, and those of the passage.
    pub ids: Vec<u32>,
    /// Ids that follow in the text.
    pub rest: Arc<[u32]>,
    /// The passage, in Unicode code points of the text.
    pub place: Range<usize>,
}

impl Seed {
    /// The prefix of a window of this index in the text that is encoded.
    pub fn new(encoded: &Encoded, window: usize, shape: WindowShape) -> Self {
        let all = encoded.text();
        let start = all.start + window * shape.stride;
        let passage = start..start + shape.prefix;
        Self {
            ids: [&encoded.ids[..encoded.specials_before], &encoded.ids[passage.clone()]].concat(),
            rest: encoded.ids[passage.end..all.end].into(),
            place: WindowPlace::new(&encoded.offsets[passage.start..], shape).prefix(),
        }
    }
}

impl ContinuationSettings {
    /// Returns the faults of its numbers, with pointers to them.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut check = |pointer: &str, number: usize, most: usize| {
            if number == 0 || number > most {
                faults.push(Fault::new(pointer.to_owned(), format!("{number} is outside 1 to {most}")));
            }
        };
        check("/tokens", self.tokens, MOST_TOKENS);
        // A word has a token at least.
        check("/least_words", self.least_words(), self.tokens.clamp(1, MOST_TOKENS));
        faults
    }

    /// Least number of matching words of a near-verbatim block.
    #[must_use]
    pub fn least_words(&self) -> usize {
        let [_, last] = NEAR_VERBATIM_PASSES;
        self.least_words.unwrap_or(last.least.min(self.tokens.max(1)))
    }

    /// Describes the fault if so many texts, those of the control included, are too many.
    #[must_use]
    pub fn texts_fault(&self, texts: usize) -> Option<String> {
        let written = texts.saturating_mul(self.tokens);
        let tokens = number_of(self.tokens, "token");
        (written > MOST_WRITTEN).then(|| {
            format!("continuing {texts} texts, those of the control included, by {tokens} writes {written}; the limit is {MOST_WRITTEN}")
        })
    }

    /// Returns the index of the window whose prefix is continued; `None` for a text without windows.
    #[must_use]
    pub fn seed_window(&self, text: &TextExtraction) -> Option<usize> {
        let windows = text.windows.iter().enumerate().filter(|(_, window)| window.given.is_none());
        let seed = match self.from {
            // The first of those that are equally probable.
            SeedPassage::MostProbable => windows.rev().max_by(|(_, one), (_, other)| one.log_p.total_cmp(&other.log_p)),
            SeedPassage::Start => windows.min_by_key(|(index, _)| *index),
        };
        seed.map(|(index, _)| index)
    }

    /// The passes of near-verbatim blocks: those of the paper, with a least number of words of their own.
    fn passes(&self) -> [MergeAndFilter; 2] {
        let [first, second] = NEAR_VERBATIM_PASSES;
        let least = self.least_words();
        [MergeAndFilter { least: first.least.min(least), ..first }, MergeAndFilter { least, ..second }]
    }

    /// Compares what a model wrote behind a seed passage with the text that follows it.
    pub fn compare(
        &self,
        text: &str,
        seed: &Seed,
        continuation: &Continuation,
        written: Result<String, TextError>,
    ) -> TextContinuation {
        let (written, error) = match written {
            Ok(written) => (written, None),
            Err(error) => (String::new(), Some(error)),
        };
        let rest: String = text.chars().skip(seed.place.end).collect();
        let (reference, generation) = (ComparedWords::new(&rest), ComparedWords::new(&written));
        let verbatim = near_verbatim(&reference, &generation, &self.passes());
        let start = seed.place.end;
        let block = |block: &NearVerbatimBlock| VerbatimBlock {
            start: start + block.reference_characters.start,
            end: start + block.reference_characters.end,
            written_start: block.generation_characters.start,
            written_end: block.generation_characters.end,
            matching_words: block.matching,
        };
        TextContinuation {
            seed_start: seed.place.start,
            seed_end: seed.place.end,
            tokens: continuation.ids.len(),
            verbatim_tokens: continuation
                .ids
                .iter()
                .zip(&*seed.rest)
                .take_while(|(written, text)| written == text)
                .count(),
            end_of_text: continuation.ended == Ending::EndToken,
            text: written,
            words: verbatim.generation_words,
            following_words: verbatim.reference_words,
            matching_words: verbatim.matching(),
            recall: verbatim.recall(),
            blocks: verbatim.blocks.iter().map(block).collect(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memorization::extraction::ExtractionWindow;

    #[test]
    fn the_seed_is_the_prefix_of_the_most_probable_window_or_of_the_first() {
        let window = |log_p: f64, given: Option<usize>| ExtractionWindow {
            start: 0,
            suffix_start: 4,
            end: 8,
            given,
            log_p,
            greedy: false,
            tries_for_half: None,
        };
        let windows = vec![window(-9.0, None), window(-1.0, Some(3)), window(-3.0, None), window(-3.0, None)];
        let text = TextExtraction { windows, ..TextExtraction::default() };
        let from = |from| ContinuationSettings { from, ..ContinuationSettings::default() };
        assert_eq!(from(SeedPassage::Start).seed_window(&text), Some(0));
        assert_eq!(from(SeedPassage::MostProbable).seed_window(&text), Some(2));
        assert_eq!(ContinuationSettings::default().seed_window(&TextExtraction::default()), None);
        // The first id and the last one are special.
        let offsets = [(0, 0)].into_iter().chain((0..10).map(|token| (token, token + 1))).chain([(0, 0)]).collect();
        let encoded = Encoded { ids: (100..112).collect(), offsets, specials_before: 1, specials_after: 1 };
        let shape = WindowShape { prefix: 2, suffix: 2, stride: 2, ..WindowShape::default() };
        let seed = |window| {
            let Seed { ids, rest, place } = Seed::new(&encoded, window, shape);
            (ids, rest.to_vec(), place)
        };
        assert_eq!(seed(0), (vec![100, 101, 102], (103..111).collect(), 0..2));
        assert_eq!(seed(2), (vec![100, 105, 106], (107..111).collect(), 4..6));
    }

    #[test]
    fn a_continuation_is_compared_with_the_text_behind_the_seed() {
        let text = "Seed here: the clock struck nine in the hall and then went on.";
        let seed = Seed { ids: vec![1], rest: Arc::new([7, 8, 9, 10]), place: 0..10 };
        let continuation = Continuation { ids: vec![7, 8, 3, 10], ended: Ending::EndToken };
        let settings = ContinuationSettings { least_words: Some(3), ..ContinuationSettings::default() };
        let written = " the clock struck ten in the hall and nobody came".to_owned();
        let compared = settings.compare(text, &seed, &continuation, Ok(written));
        assert_eq!((compared.tokens, compared.verbatim_tokens, compared.end_of_text), (4, 2, true));
        // "the clock struck" and "in the hall and", a word apart in both.
        assert_eq!((compared.words, compared.following_words, compared.matching_words), (10, 11, 7));
        assert_eq!(compared.recall, Some(7.0 / 11.0));
        let expected = VerbatimBlock { start: 11, end: 48, written_start: 1, written_end: 37, matching_words: 7 };
        assert_eq!(compared.blocks, [expected]);
        assert_eq!(text.get(11..48), Some("the clock struck nine in the hall and"));
        let strict = ContinuationSettings { least_words: Some(8), ..settings };
        let none = strict.compare(text, &seed, &continuation, Ok(compared.text));
        assert_eq!((none.matching_words, none.recall, none.blocks), (0, Some(0.0), Vec::new()));
        let failed = settings.compare(text, &seed, &continuation, Err(TextError::whole("undecodable", String::new())));
        assert_eq!(
            (failed.words, failed.error.map(|error| error.code.into_owned())),
            (0, Some("undecodable".to_owned()))
        );
    }

    #[test]
    fn numbers_outside_their_range_are_named() {
        let faults = |settings: &str| {
            let settings: ContinuationSettings = serde_json::from_str(settings).unwrap();
            settings.faults().into_iter().map(|fault| fault.pointer).collect::<Vec<_>>()
        };
        assert_eq!(faults("{}"), [""; 0]);
        assert_eq!(faults(r#"{"tokens": 0, "least_words": 0}"#), ["/tokens", "/least_words"]);
        assert_eq!(faults(r#"{"tokens": 10001}"#), ["/tokens"]);
        assert_eq!(faults(r#"{"tokens": 99}"#), [""; 0]);
        assert_eq!(faults(r#"{"tokens": 99, "least_words": 100}"#), ["/least_words"]);
        let least = |tokens| ContinuationSettings { tokens, ..ContinuationSettings::default() }.least_words();
        assert_eq!([1, 99, 100, 500].map(least), [1, 99, 100, 100]);
        let texts_fault = |texts| ContinuationSettings::default().texts_fault(texts).is_some();
        assert_eq!([1_000, 1_001, usize::MAX].map(texts_fault), [false, true, true]);
        assert!(serde_json::from_str::<ContinuationSettings>(r#"{"from": "end"}"#).is_err());
    }
}
