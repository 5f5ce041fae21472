//! Greedy continuation of a text from a seed passage, and how much of the text it gives back near-verbatim.

use super::extraction::{ExtractionWindow, TextExtraction};
use super::request::WindowShape;
use crate::scorer::TextError;
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
const MOST_TOKENS: usize = 100_000;
/// Maximum number of texts that are continued, those of the control included.
pub const MOST_CONTINUED: usize = 1_000;

/// Greedy continuation of each text and of each text of the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContinuationSettings {
    /// Tokens to write, if the model does not end the text before.
    #[default = 200]
    #[schema(minimum = 1, maximum = 100_000)]
    pub tokens: usize,
    /// Passage that is continued.
    pub seed: SeedPassage,
    /// Least number of matching words of a near-verbatim block.
    #[default = 100]
    #[schema(minimum = 1)]
    pub least_words: usize,
}

/// Passage of a text that a model continues: the prefix of one of its windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SeedPassage {
    /// The window with the largest `log_p`.
    #[default]
    MostProbable,
    /// The first window.
    Start,
}

/// Greedy continuation of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TextContinuation {
    /// Start of the seed passage, in Unicode code points of the text.
    pub seed_start: usize,
    /// End of the seed passage, exclusive.
    pub seed_end: usize,
    /// Tokens that the model wrote.
    pub tokens: usize,
    /// Tokens from the first on that are those of the text.
    pub verbatim_tokens: usize,
    /// True if the model ended the text.
    pub end_of_text: bool,
    /// The text that the model wrote.
    pub text: String,
    /// Words of it.
    pub words: usize,
    /// Words of the text behind the seed passage that near-verbatim blocks give back.
    pub matching_words: usize,
    /// Their share of all words behind the seed passage (`nv-recall` of arXiv 2601.02671); absent without such words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// Near-verbatim blocks, in order.
    pub blocks: Vec<VerbatimBlock>,
    /// Reason why the tokens are no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TextError>,
}

/// A part of a text that a continuation has near-verbatim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerbatimBlock {
    /// Start of the part, in Unicode code points of the text.
    pub start: usize,
    /// End of the part, exclusive.
    pub end: usize,
    /// Its start in the continuation.
    pub written_start: usize,
    /// Its end in the continuation, exclusive.
    pub written_end: usize,
    /// Words that both have.
    pub matching_words: usize,
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
        check("/least_words", self.least_words, MOST_TOKENS);
        faults
    }

    /// The passage of a text that is continued; `None` for a text without windows.
    pub fn seed(&self, text: &TextExtraction, encoded: &Encoded, shape: WindowShape) -> Option<Seed> {
        let by_probability = |one: &usize, other: &usize| {
            let log_p = |window: usize| text.windows[window].log_p;
            // Of equally probable windows the first.
            log_p(*one).total_cmp(&log_p(*other)).then(other.cmp(one))
        };
        let windows = 0..text.windows.len();
        let window = match self.seed {
            SeedPassage::MostProbable => windows.max_by(by_probability)?,
            SeedPassage::Start => windows.min()?,
        };
        let all = encoded.text();
        let start = all.start + window * shape.stride;
        let passage = start..start + shape.prefix;
        let ExtractionWindow { start, suffix_start, .. } = text.windows[window];
        Some(Seed {
            ids: [&encoded.ids[..encoded.specials_before], &encoded.ids[passage.clone()]].concat(),
            rest: encoded.ids[passage.end..all.end].into(),
            place: start..suffix_start,
        })
    }

    /// The passes of near-verbatim blocks: those of the paper, with a least number of words of their own.
    fn passes(&self) -> [MergeAndFilter; 2] {
        let [first, second] = NEAR_VERBATIM_PASSES;
        let least = first.least.min(self.least_words);
        [MergeAndFilter { least, ..first }, MergeAndFilter { least: self.least_words, ..second }]
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

    fn window(start: usize, log_p: f64) -> ExtractionWindow {
        let (suffix_start, end) = (start + 4, start + 8);
        ExtractionWindow { start, suffix_start, end, given: None, log_p, greedy: false, tries_for_half: None }
    }

    #[test]
    fn the_seed_is_the_prefix_of_the_most_probable_window_or_of_the_first() {
        let offsets = (0..12).map(|token| (token, token + 1)).collect();
        let ids: Arc<[u32]> = (100..112).collect();
        let encoded = Encoded { ids, offsets, specials_before: 1, specials_after: 1 };
        let windows = vec![window(0, -9.0), window(2, -3.0), window(4, -3.0)];
        let text = TextExtraction { windows, ..TextExtraction::default() };
        let shape = WindowShape { prefix: 2, suffix: 2, stride: 2, ..WindowShape::default() };
        let seed = |seed: SeedPassage| {
            let settings = ContinuationSettings { seed, ..ContinuationSettings::default() };
            settings.seed(&text, &encoded, shape).map(|seed| (seed.ids, seed.rest.to_vec(), seed.place))
        };
        // The first id and the last one are special.
        assert_eq!(seed(SeedPassage::Start), Some((vec![100, 101, 102], (103..111).collect(), 0..4)));
        assert_eq!(seed(SeedPassage::MostProbable), Some((vec![100, 103, 104], (105..111).collect(), 2..6)));
        let none = TextExtraction::default();
        assert!(ContinuationSettings::default().seed(&none, &encoded, shape).is_none());
    }

    #[test]
    fn a_continuation_is_compared_with_the_text_behind_the_seed() {
        let text = "Seed here: the clock struck nine in the hall and then went on.";
        let seed = Seed { ids: vec![1], rest: Arc::new([7, 8, 9, 10]), place: 0..10 };
        let continuation = Continuation { ids: vec![7, 8, 3, 10], ended: Ending::EndToken };
        let settings = ContinuationSettings { least_words: 3, ..ContinuationSettings::default() };
        let written = " the clock struck ten in the hall and nobody came".to_owned();
        let compared = settings.compare(text, &seed, &continuation, Ok(written));
        assert_eq!((compared.tokens, compared.verbatim_tokens, compared.end_of_text), (4, 2, true));
        // "the clock struck" and "in the hall and", a word apart in both.
        assert_eq!((compared.words, compared.matching_words), (10, 7));
        assert_eq!(compared.recall, Some(7.0 / 11.0));
        let expected = VerbatimBlock { start: 11, end: 48, written_start: 1, written_end: 37, matching_words: 7 };
        assert_eq!(compared.blocks, [expected]);
        assert_eq!(text.get(11..48), Some("the clock struck nine in the hall and"));
        let strict = ContinuationSettings { least_words: 8, ..settings };
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
        assert_eq!(faults(r#"{"tokens": 100001}"#), ["/tokens"]);
        assert!(serde_json::from_str::<ContinuationSettings>(r#"{"seed": "end"}"#).is_err());
    }
}
