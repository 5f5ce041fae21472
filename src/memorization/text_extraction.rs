//! Result for one text.

use super::coverage::{covered_characters, share};
use super::extraction::{ExtractionWindow, WindowPlace};
use crate::datasets::SampleId;
use crate::scorer::TextError;
use mia::TokenStats;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// In order of the text.
    pub windows: Vec<ExtractionWindow>,
    /// Why it has no windows: `too_short`, `too_long`, `untokenizable` or `non_finite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TextError>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_that_is_none_leaves_a_text() {
        let mut text = TextExtraction { characters: 20, ..TextExtraction::default() };
        for lp in [-0.5, f64::NAN, -0.5] {
            let token = TokenStats { lp, mu: -1.0, var: 1.0, max_lp: -0.5 };
            text.add(WindowPlace { start: 0, suffix_start: 5, end: 10 }, &[token]);
        }
        let text = text.summed_up();
        assert_eq!((text.windows.len(), text.coverage, text.largest_log_p), (0, None, None));
        assert_eq!(text.error.unwrap().code, "non_finite");
    }
}
