//! Texts together.

use super::coverage::{covered_characters, share};
use super::extraction::tries_for_half;
use super::text_extraction::TextExtraction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Texts together. Those that have no window play no part but in `without_windows`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExtractionSummary {
    /// Texts that have windows.
    pub texts: usize,
    /// Texts that have none; each says why.
    pub without_windows: usize,
    /// Characters of the texts that have windows.
    pub characters: usize,
    pub windows: usize,
    /// Windows whose suffix is what greedy decoding gives.
    pub greedy_windows: usize,
    /// Their share; absent without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greedy_share: Option<f64>,
    /// The share of the characters that are in a window whose suffix is at least as probable as `least_probability`; absent
    /// without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// The largest of the windows' `log_p`; absent without windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_log_p: Option<f64>,
    /// That window's `tries_for_half`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries_for_half: Option<u64>,
}

impl ExtractionSummary {
    /// These texts together.
    pub fn new(texts: &[TextExtraction]) -> Self {
        let looked_at = || texts.iter().filter(|text| !text.windows.is_empty());
        let count = looked_at().count();
        let characters = looked_at().map(|text| text.characters).sum();
        let windows = looked_at().map(|text| text.windows.len()).sum();
        let greedy_windows = looked_at().map(|text| text.greedy_windows).sum();
        let covered = looked_at().map(|text| covered_characters(&text.windows)).sum();
        let largest_log_p = looked_at().filter_map(|text| text.largest_log_p).reduce(f64::max);
        Self {
            texts: count,
            without_windows: texts.len() - count,
            characters,
            windows,
            greedy_windows,
            greedy_share: share(greedy_windows, windows),
            coverage: share(covered, characters),
            largest_log_p,
            tries_for_half: largest_log_p.and_then(tries_for_half),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memorization::extraction::WindowPlace;
    use mia::TokenStats;

    fn token(lp: f64) -> TokenStats {
        TokenStats { lp, mu: -1.0, var: 1.0, max_lp: -0.5 }
    }

    fn text(index: usize, characters: usize, windows: &[(usize, usize, f64)]) -> TextExtraction {
        let mut text = TextExtraction { index, characters, ..TextExtraction::default() };
        for &(start, end, lp) in windows {
            text.add(WindowPlace { start, suffix_start: start + 1, end }, &[token(lp)]);
        }
        text.summed_up()
    }

    #[test]
    fn a_summary_weights_texts_by_their_characters() {
        let texts = [
            text(0, 20, &[(0, 10, -0.5), (5, 15, -30.0)]),
            text(1, 60, &[(0, 10, -3.0), (5, 15, -2.0), (10, 20, -9.0)]),
            text(2, 1_000, &[]),
        ];
        let alone = |text: &TextExtraction| (text.coverage, text.greedy_windows, text.largest_log_p);
        assert_eq!(alone(&texts[0]), (Some(0.5), 1, Some(-0.5)));
        assert_eq!(alone(&texts[1]), (Some(0.25), 0, Some(-2.0)));
        assert_eq!(alone(&texts[2]), (None, 0, None));
        let summary = ExtractionSummary::new(&texts);
        // 10 + 15 of 80 characters.
        assert_eq!((summary.coverage, summary.characters), (Some(0.3125), 80));
        assert_eq!((summary.texts, summary.without_windows, summary.windows), (2, 1, 5));
        assert_eq!((summary.greedy_windows, summary.greedy_share), (1, Some(0.2)));
        assert_eq!((summary.largest_log_p, summary.tries_for_half), (Some(-0.5), Some(1)));
        let none = ExtractionSummary::new(&texts[2..]);
        assert_eq!(none, ExtractionSummary { without_windows: 1, ..ExtractionSummary::default() });
    }
}
