//! Numbers computed for a window.
//!
//! A window is extractable where the model, given the prefix, writes the suffix: always, if it is what greedy decoding gives
//! (Carlini et al. 2021 and 2023), or with the probability `p` that sampling gives it (Hayes et al. 2025), so that n tries give
//! it at least once with probability `1 - (1 - p)^n`.

use super::greedy_run::GreedyRun;
use super::passes::WindowShape;
use crate::datasets::SampleId;
use crate::scorer::TextError;
use mia::TokenStats;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use utoipa::ToSchema;

/// The probability from which a window counts in the coverage.
pub const LEAST_PROBABILITY: f64 = 0.001;

/// The largest number of tries that is told: up to it every whole number is one that a double holds.
const MOST_TRIES: f64 = 9_007_199_254_740_992.0;

/// A window of a text: a prefix, and how likely the model is to continue it with the suffix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExtractionWindow {
    /// Start of the window, prefix and suffix, in Unicode code points of the text.
    pub start: usize,
    /// Start of the suffix.
    pub suffix_start: usize,
    /// End of the window, exclusive.
    pub end: usize,
    /// Tokens that the model was given before the suffix, where they are more than `prefix`, since the window shares a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<usize>,
    /// The log-probability of the suffix given the tokens before it, in nats: that with which sampling at temperature 1 gives it.
    pub log_p: f64,
    /// True if every token of the suffix is the most probable one, or as probable.
    pub greedy: bool,
    /// Number of samples after which the suffix has occurred with probability one half; absent above 2^53.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries_for_half: Option<u64>,
}

/// Where a window is in its text, in Unicode code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPlace {
    pub start: usize,
    pub suffix_start: usize,
    pub end: usize,
    /// Tokens given before the suffix, where they are more than the prefix.
    pub given: Option<usize>,
}

impl WindowPlace {
    /// The place of the window that begins at the first of these tokens, in the code points that they stand for. Tokens that stand
    /// for none have no place.
    pub fn new(offsets: &[(usize, usize)], shape: WindowShape) -> Self {
        let (prefix, suffix) = offsets.split_at(shape.prefix.min(offsets.len()));
        let suffix = &suffix[..shape.suffix.min(suffix.len())];
        let end = end(suffix).or_else(|| end(prefix)).unwrap_or(0);
        let suffix_start = start(suffix).unwrap_or(end);
        Self { start: start(prefix).unwrap_or(suffix_start), suffix_start, end, given: None }
    }

    /// The code points before the suffix.
    pub fn prefix(&self) -> Range<usize> {
        self.start..self.suffix_start
    }
}

/// Start of the first token that stands for characters.
pub fn start(offsets: &[(usize, usize)]) -> Option<usize> {
    offsets.iter().find(|(start, end)| start < end).map(|(start, _)| *start)
}

/// End of the last token that stands for characters.
pub fn end(offsets: &[(usize, usize)]) -> Option<usize> {
    offsets.iter().rfind(|(start, end)| start < end).map(|(_, end)| *end)
}

impl ExtractionWindow {
    /// Creates the window at `place`, whose suffix has these statistics; `None` if they are no finite numbers.
    pub fn new(place: WindowPlace, suffix: &[TokenStats]) -> Option<Self> {
        let WindowPlace { start, suffix_start, end, given } = place;
        let log_p: f64 = suffix.iter().map(|token| token.lp).sum();
        let greedy = suffix.iter().all(is_greedy);
        let tries_for_half = tries_for_half(log_p);
        log_p.is_finite().then_some(Self { start, suffix_start, end, given, log_p, greedy, tries_for_half })
    }

    /// Returns true if the suffix is probable enough for the window to count in the coverage.
    pub fn is_covered(&self) -> bool {
        self.log_p >= LEAST_PROBABILITY.ln()
    }
}

/// Returns true if the token is the most probable one, or as probable.
pub fn is_greedy(token: &TokenStats) -> bool {
    token.lp == token.max_lp
}

/// The smallest n with `1 - (1 - p)^n >= 1/2`, which is `ln(1/2) / ln(1 - p)` rounded up; none above 2^53.
pub fn tries_for_half(log_p: f64) -> Option<u64> {
    let p = log_p.exp();
    if p >= 0.5 {
        return Some(1);
    }
    // Of a p below the last digit of 1, `1 - p` would be 1. Of p = 0 this is infinite.
    let tries = (0.5f64.ln() / (-p).ln_1p()).ceil();
    (tries <= MOST_TRIES).then_some(tries as u64)
}

/// Result of a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TextExtraction {
    /// Its place, from 0.
    pub index: usize,
    /// The id that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SampleId>,
    /// Unicode code points.
    pub characters: usize,
    /// Tokens, without special ones; absent where it could not be tokenized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Number of its windows that are greedy.
    pub greedy_windows: usize,
    /// The share of its characters that are in a window, prefix or suffix, whose suffix is at least as probable as
    /// `least_probability`; absent without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// The largest of its windows' `log_p`; absent without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_log_p: Option<f64>,
    /// The longest passage whose every token is the most probable one after the tokens before it in its pass, at least `prefix`
    /// many; absent without such a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_run: Option<GreedyRun>,
    /// The share of the works, this one and those of the control, whose largest `log_p` over `known_works.windows_per_work`
    /// disjoint windows is at least as large as that of this text; absent in the control and without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The text continued greedily; absent unless the request has `continuation`, and without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<TextContinuation>,
    /// In order of the text.
    pub windows: Vec<ExtractionWindow>,
    /// Why it has no windows: `too_short`, `too_long`, `untokenizable` or `non_finite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TextError>,
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
    /// Words of the text behind the seed passage.
    pub following_words: usize,
    /// Words of these that near-verbatim blocks give back.
    pub matching_words: usize,
    /// Their share (`nv-recall` of arXiv 2601.02671); absent if no words follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<f64>,
    /// Near-verbatim blocks, in order.
    pub blocks: Vec<VerbatimBlock>,
    /// Reason why there is no text: `undecodable`, or `model_failed` if the model gave no finite numbers.
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

impl TextExtraction {
    /// Adds a window whose suffix has these statistics. Where they are no finite numbers, the text has no windows but an error.
    pub fn add(&mut self, place: WindowPlace, suffix: &[TokenStats]) {
        match ExtractionWindow::new(place, suffix) {
            _ if self.error.is_some() => {}
            Some(window) => self.windows.push(window),
            None => {
                let detail = format!("the suffix at character {} has no finite probability", place.suffix_start);
                self.error = Some(TextError::whole("non_finite", detail));
                self.windows = Vec::new();
            }
        }
    }

    /// The text with what its windows come to together.
    #[must_use]
    pub fn summed_up(self) -> Self {
        let greedy_windows = self.windows.iter().filter(|window| window.greedy).count();
        let largest_log_p = self.windows.iter().map(|window| window.log_p).reduce(f64::max);
        let coverage = share(covered_characters(&self.windows), self.characters).filter(|_| !self.windows.is_empty());
        Self { greedy_windows, largest_log_p, coverage, ..self }
    }
}

/// Counts the characters in at least one window, prefix or suffix, that counts. The windows begin one after another.
pub fn covered_characters(windows: &[ExtractionWindow]) -> usize {
    let (mut covered, mut reached) = (0, 0);
    for window in windows.iter().filter(|window| window.is_covered()) {
        covered += window.end.saturating_sub(window.start.max(reached));
        reached = reached.max(window.end);
    }
    covered
}

/// The share of a part; none of nothing.
pub fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(p: f64) -> Option<u64> {
        tries_for_half(p.ln())
    }

    #[test]
    fn tries_are_those_of_the_formula() {
        // ln(1/2) / ln(0.999) = 692.80; 0.9^6 = 0.531 and 0.9^7 = 0.478; 0.51^1 = 0.51 and 0.51^2 = 0.26.
        assert_eq!([0.001, 0.1, 0.49].map(tries), [Some(693), Some(7), Some(2)]);
        assert_eq!([0.5, 0.6, 1.0].map(tries), [Some(1); 3]);
        // Rounding may leave a probability of 1 a little above it.
        assert_eq!(tries_for_half(1e-9), Some(1));
    }

    #[test]
    fn tiny_probabilities_are_exact_or_absent() {
        // For small p the number is ln 2 / p, to more digits than these numbers have.
        assert_eq!(tries(1e-9), Some(693_147_181));
        assert_eq!(tries(1e-14).map(|tries| tries / 10_000), Some(6_931_471_805));
        // 2^53 = 9.007e15 lies between ln 2 / 7.7e-17 and ln 2 / 7.6e-17.
        assert!(tries(7.7e-17).is_some() && tries(7.6e-17).is_none());
        assert_eq!([-745.0, -1e4, f64::NEG_INFINITY, f64::NAN].map(tries_for_half), [None; 4]);
    }

    fn token(lp: f64, max_lp: f64) -> TokenStats {
        TokenStats { lp, mu: -1.0, var: 1.0, max_lp }
    }

    #[test]
    fn a_window_is_greedy_where_every_token_is_the_most_probable_one() {
        let place = WindowPlace { start: 3, suffix_start: 7, end: 9, given: None };
        let window = |tokens: &[TokenStats]| ExtractionWindow::new(place, tokens);
        let greedy = window(&[token(-0.5, -0.5), token(-0.25, -0.25)]).unwrap();
        assert_eq!((greedy.log_p, greedy.greedy, greedy.tries_for_half), (-0.75, true, Some(2)));
        assert_eq!((greedy.start, greedy.suffix_start, greedy.end), (3, 7, 9));
        let other = window(&[token(-0.5, -0.5), token(-0.25, -0.249_999)]).unwrap();
        assert!(!other.greedy);
        assert_eq!(window(&[token(f64::NAN, -0.5)]), None);
        assert_eq!(window(&[token(f64::NEG_INFINITY, -0.5)]), None);
    }

    #[test]
    fn a_window_is_where_its_tokens_stand_for_characters() {
        let shape = WindowShape { prefix: 2, suffix: 2, ..WindowShape::default() };
        for (offsets, expected) in [
            ([(3, 4), (4, 6), (6, 7), (7, 9)], (3, 6, 9)),
            // Tokens without characters at the edges.
            ([(0, 0), (4, 6), (0, 0), (7, 9)], (4, 7, 9)),
            ([(3, 4), (4, 6), (0, 0), (0, 0)], (3, 6, 6)),
            ([(0, 0), (0, 0), (6, 7), (7, 9)], (6, 6, 9)),
            ([(0, 0); 4], (0, 0, 0)),
        ] {
            let WindowPlace { start, suffix_start, end, .. } = WindowPlace::new(&offsets, shape);
            assert_eq!((start, suffix_start, end), expected);
        }
    }

    #[test]
    fn a_window_counts_from_one_in_a_thousand_on() {
        let place = WindowPlace { start: 0, suffix_start: 1, end: 2, given: None };
        let covered = |lp| ExtractionWindow::new(place, &[token(lp, -0.1)]).unwrap().is_covered();
        assert_eq!([0.001f64.ln(), -6.9, -6.91, -7.0].map(covered), [true, true, false, false]);
    }

    #[test]
    fn no_number_that_is_none_leaves_a_text() {
        let mut text = TextExtraction { characters: 20, ..TextExtraction::default() };
        for lp in [-0.5, f64::NAN, -0.5] {
            let token = TokenStats { lp, mu: -1.0, var: 1.0, max_lp: -0.5 };
            text.add(WindowPlace { start: 0, suffix_start: 5, end: 10, given: None }, &[token]);
        }
        let text = text.summed_up();
        assert_eq!((text.windows.len(), text.coverage, text.largest_log_p), (0, None, None));
        assert_eq!(text.error.unwrap().code, "non_finite");
    }

    #[test]
    fn characters_in_several_windows_count_once() {
        let window = |start, end, log_p| ExtractionWindow {
            start,
            suffix_start: start,
            end,
            given: None,
            log_p,
            greedy: false,
            tries_for_half: None,
        };
        let (likely, unlikely) = (-1.0, -20.0);
        // 0 to 15 from the first two, 25 to 35 from the fourth; the third does not count, the last lies within the fourth.
        let windows = [
            window(0, 10, likely),
            window(5, 15, likely),
            window(15, 25, unlikely),
            window(25, 35, likely),
            window(26, 30, likely),
        ];
        assert_eq!(covered_characters(&windows), 25);
        assert_eq!(covered_characters(&windows[2..3]), 0);
        assert_eq!(covered_characters(&[]), 0);
    }
}
