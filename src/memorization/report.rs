//! Report of a memorization job.

use super::continuation::{ContinuationSettings, SeedPassage};
use super::extraction::{
    LEAST_PROBABILITY, TextContinuation, TextExtraction, covered_characters, share, tries_for_half,
};
use super::known_works::ControlWorks;
use super::passes::{PassCost, WindowPasses, WindowShape};
use super::request::MemorizationRequest;
use crate::pool::ModelInfo;
use crate::wire::number_of;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use utoipa::ToSchema;

/// Report of a memorization job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemorizationReport {
    /// The model that was asked.
    pub model: ModelInfo,
    /// Windows of the texts.
    pub windows: WindowShape,
    /// Passes that score them.
    pub cost: PassCost,
    /// Greedy continuation of the texts; absent unless the request has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationSettings>,
    /// The probability from which a window counts in `coverage`.
    pub least_probability: f64,
    /// The texts and the control beside each other.
    pub summary: ExtractionSummaries,
    /// Each text, in order.
    pub texts: Vec<TextExtraction>,
    /// Each text of the control, in order; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Vec<TextExtraction>>,
}

/// The texts and the control beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExtractionSummaries {
    /// All texts together.
    pub texts: ExtractionSummary,
    /// All texts of the control together; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ExtractionSummary>,
    /// The texts of the control as works that the texts' `p_value` is computed among; absent without windows of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_works: Option<ControlWorks>,
    /// Reading of these numbers: what they show, and what they do not.
    pub reading: String,
}

impl MemorizationReport {
    /// The report of a request's texts, and of the control where there is one.
    #[must_use]
    pub fn new(
        model: ModelInfo,
        request: &MemorizationRequest,
        cost: PassCost,
        mut texts: Vec<TextExtraction>,
        control: Option<Vec<TextExtraction>>,
    ) -> Self {
        let MemorizationRequest { windows, continuation, .. } = *request;
        let known_works =
            ControlWorks::compare(&mut texts, control.as_deref().unwrap_or_default(), windows, cost.windows_per_pass);
        let (of_texts, of_control) = (ExtractionSummary::new(&texts), control.as_deref().map(ExtractionSummary::new));
        let mut reading = reading(&of_texts, of_control.as_ref(), windows);
        for sentence in known_works
            .map(standing)
            .into_iter()
            .chain(continuation.map(|settings| continued(settings, &texts, control.as_deref())))
        {
            let _ = write!(reading, " {sentence}");
        }
        let summary = ExtractionSummaries { texts: of_texts, control: of_control, known_works, reading };
        Self { model, windows, cost, continuation, least_probability: LEAST_PROBABILITY, summary, texts, control }
    }
}

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
    /// Tokens of the longest `longest_run`; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_run: Option<usize>,
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
        let longest_run = looked_at().filter_map(|text| Some(text.longest_run.as_ref()?.tokens)).max();
        let largest_log_p = looked_at().filter_map(|text| text.largest_log_p).reduce(f64::max);
        Self {
            texts: count,
            without_windows: texts.len() - count,
            characters,
            windows,
            greedy_windows,
            greedy_share: share(greedy_windows, windows),
            coverage: share(covered, characters),
            longest_run,
            largest_log_p,
            tries_for_half: largest_log_p.and_then(tries_for_half),
        }
    }
}

/// Reading of these numbers: what they show, and what they do not.
pub fn reading(texts: &ExtractionSummary, control: Option<&ExtractionSummary>, shape: WindowShape) -> String {
    let (Some(shown), WindowShape { prefix, suffix, .. }) = (shown(texts), shape) else {
        return "No text has a window, so nothing is known of them.".to_owned();
    };
    let given = match shape.passes {
        WindowPasses::Shared => format!("{prefix} tokens or some more"),
        WindowPasses::Separate => number_of(prefix, "token"),
    };
    let begin = format!("Given {given}, the model completes {suffix} more word by word in {shown}.");
    let compared = match control.map(self::shown) {
        None => {
            "Without a control, how much of this the model would do on a text that it has not seen is not known: what is easy to \
             predict is completed as well."
                .to_owned()
        }
        Some(None) => "No text of the control has a window, so there is nothing to compare this with.".to_owned(),
        Some(Some(control)) => format!(
            "In the control, which is assumed not to be in its training data, it does so in {control}. Only what the texts have beyond that speaks for memorization, \
             and only if the control is like them in kind, language and style. It does not tell where the model has them from: \
             quotations and copies count as well."
        ),
    };
    let absence = "What is not completed may have been in the training data all the same: most of what a model is trained on cannot be \
                   extracted.";
    format!("{begin} {compared} {absence}")
}

/// States the test behind the p-values of texts, and its assumption.
fn standing(known: ControlWorks) -> String {
    let ControlWorks { works, windows_per_work, smallest_p_value } = known;
    let smallest =
        if smallest_p_value < 1e-4 { format!("{smallest_p_value:.1e}") } else { format!("{smallest_p_value:.4}") };
    format!(
        "The p-value of a text is the share of works, the text and {} of the control, whose most probable window, out of {}, is at \
         least as probable as the text's; it cannot be below {smallest}. It holds for each text alone, and if the text, had the model \
         not seen it, would be a work like those.",
        number_of(works, "work"),
        number_of(windows_per_work, "window"),
    )
}

/// Counts the texts that come back when they are continued greedily, among those that are long enough to.
fn continued(settings: ContinuationSettings, texts: &[TextExtraction], control: Option<&[TextExtraction]>) -> String {
    let ContinuationSettings { tokens, from, .. } = settings;
    let least_words = settings.least_words();
    let counts = |texts: &[TextExtraction]| {
        let long_enough = |continuation: &&TextContinuation| continuation.following_words >= least_words;
        let continuations = || texts.iter().filter_map(|text| text.continuation.as_ref()).filter(long_enough);
        let returned = continuations().filter(|continuation| continuation.matching_words > 0).count();
        format!("{returned} of {}", continuations().count())
    };
    let (tokens, words) = (number_of(tokens, "token"), number_of(least_words, "word"));
    let begin = format!(
        "Continued greedily by up to {tokens}, {} texts with at least {words} behind the seed passage come back near-verbatim",
        counts(texts)
    );
    let Some(control) = control else { return format!("{begin}.") };
    let caveat = match from {
        SeedPassage::MostProbable => " Longer texts have more windows to be continued from.",
        SeedPassage::Start => "",
    };
    format!("{begin}; of the control {}.{caveat}", counts(control))
}

/// Describes how much is completed; `None` without windows.
fn shown(summary: &ExtractionSummary) -> Option<String> {
    let ExtractionSummary { windows, greedy_windows, coverage, .. } = summary;
    let coverage = coverage.filter(|_| *windows > 0)? * 100.0;
    Some(format!(
        "{greedy_windows} of {windows} windows by greedy decoding, and {coverage:.1} % of the characters are in windows that it completes with a \
         probability of at least {LEAST_PROBABILITY}"
    ))
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
            text.add(WindowPlace { start, suffix_start: start + 1, end, given: None }, &[token(lp)]);
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

    #[test]
    fn what_is_not_known_is_said() {
        let texts =
            ExtractionSummary { windows: 8, greedy_windows: 2, coverage: Some(0.5), ..ExtractionSummary::default() };
        let control = ExtractionSummary { greedy_windows: 0, coverage: Some(0.0), ..texts.clone() };
        let none = ExtractionSummary::default();
        let shape = WindowShape::default();
        let alone = reading(&texts, None, shape);
        assert!(alone.contains("in 2 of 8 windows by greedy decoding, and 50.0 % of the characters"), "{alone}");
        assert!(alone.contains("Without a control"), "{alone}");
        let both = reading(&texts, Some(&control), shape);
        assert!(both.contains("it does so in 0 of 8 windows") && !both.contains("Without a control"), "{both}");
        assert!(reading(&texts, Some(&none), shape).contains("No text of the control has a window"));
        assert!(reading(&none, Some(&control), shape).starts_with("No text has a window"));
    }
}
