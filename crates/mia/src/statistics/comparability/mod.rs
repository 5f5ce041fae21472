//! Comparison of two lists of texts in everything that can be computed without the model that is asked about.
//!
//! If they differ, a score may respond to the difference instead of to the training. One classifier combines all
//! measures, and each text is scored by the classifier that was fitted on the other folds.

mod characters;
mod measures;
mod word_pairs;

pub use characters::{CharacterNgrams, CharacterTable};
pub use measures::{CONTROL_MEASURES, ComparedTexts, Measure, TextFacts};
pub use word_pairs::WordPairTable;

use super::clusters::{ClusteredTexts, FOLDS};
use super::delong::PairedScore;
use super::logistic::LogisticFit;
use super::ngrams::SeparatingNgram;
use super::stratified::{StratifiedDifference, stratified_delong};
use measures::{Measures, standardised_rows};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use strum::Display;
use utoipa::ToSchema;

/// Maximum excess over one half of the upper bound of the classifier's AUROC for the lists to count as comparable.
const COMPARABILITY_MARGIN: f64 = 0.15;

/// The 95 % quantile of the normal distribution, for a one-sided bound.
const NORMAL_QUANTILE: f64 = 1.644_853_626_951_472_7;

/// Measures that are named.
const NAMED: usize = 3;

/// Separation of the two lists by a classifier that knows nothing of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Comparability {
    pub state: ComparabilityState,
    /// AUROC of the classifier's log-odds over clusters, within groups where there are any.
    pub auroc: f64,
    /// By DeLong.
    pub standard_error: f64,
    /// One-sided bound of the AUROC at 95 %.
    pub upper_bound: f64,
    /// The lists are comparable where `upper_bound` is at most one half and this.
    pub margin: f64,
    /// The three measures by which the lists differ most, the largest difference first.
    pub measures: Vec<MeasureDifference>,
}

/// Result of the comparison by the classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ComparabilityState {
    /// The upper bound is within the margin.
    Comparable,
    /// The classifier tells the lists apart: the lower bound of its AUROC is above one half as well.
    ListsDiffer,
    /// Neither is shown: the lists are too short.
    TooFew,
}

/// Separation of the lists by one measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MeasureDifference {
    pub measure: Measure,
    /// AUROC of the measure over clusters, within groups where there are any. Below one half non-members have more of
    /// it.
    pub auroc: f64,
    /// For `words` and `characters`, those in which the lists differ most; absent if texts are not retained.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(required = false)]
    pub separating: Vec<SeparatingNgram>,
}

/// The classifier's scores of the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparabilityFit {
    /// The log-odds, out of fold, that each text is of the first list.
    pub log_odds: Vec<f64>,
    measures: Measures,
}

impl ComparabilityFit {
    /// Fits the classifier: a logistic regression with a ridge penalty on the standardised measures and their squares,
    /// over the folds of [`super::folds`]. `words` and `characters` are log-odds of naive Bayes over the set of a text's words
    /// and over that of its character n-grams. The log-odds that a regression is fitted on come from texts of neither the fold
    /// that it scores nor the text's own, so that no label of a scored text has a part in its score. Means are subtracted within
    /// each group.
    ///
    /// `None` if a label has fewer than three clusters, if the lists differ in length, or once `keep_going` returns false.
    /// Runs on rayon's pool, with the same result on any number of threads.
    #[must_use]
    pub fn new(texts: &ComparedTexts, keep_going: &dyn Fn() -> bool) -> Option<Self> {
        let ComparedTexts { labels, clusters, strata, words, characters, word_pairs, facts } = *texts;
        let lengths =
            [clusters.len(), strata.len(), words.texts(), characters.sets.texts(), word_pairs.texts(), facts.len()];
        if lengths.iter().any(|length| *length != labels.len()) {
            return None;
        }
        let measures = Measures::new(texts)?;
        if !keep_going() {
            return None;
        }
        let log_odds = out_of_fold(measures.folds(), |held, training, scored| {
            let rows = standardised_rows(&measures, held, training, strata);
            LogisticFit::new(&rows, labels, training).log_odds(&rows, scored)
        });
        Some(Self { log_odds, measures })
    }

    /// Computes the separation of the lists over the texts that are `compared`; `None` if there is no pair to compare.
    #[must_use]
    pub fn comparability(
        &self,
        texts: &ComparedTexts,
        clustered: &ClusteredTexts,
        compared: impl Fn(usize) -> bool,
        retained: bool,
    ) -> Option<Comparability> {
        let separation = Comparability::of_log_odds(&self.log_odds, clustered, &compared)?;
        let area = |values: &dyn Fn(usize) -> Option<f64>| separation_by(values, clustered, &compared);
        let mut differences: Vec<(Measure, f64)> =
            (self.measures.iter()).filter_map(|(measure, value)| Some((measure, 0.5 + area(&value)?.delta))).collect();
        differences.sort_by(|(_, a), (_, b)| (b - 0.5).abs().total_cmp(&(a - 0.5).abs()));
        let separating = |measure| match measure {
            Measure::Words if retained => texts.words.separating(texts.labels),
            Measure::Characters if retained => texts.characters.separating(texts.labels),
            _ => Vec::new(),
        };
        let named = |(measure, auroc)| MeasureDifference { measure, auroc, separating: separating(measure) };
        Some(Comparability { measures: differences.into_iter().take(NAMED).map(named).collect(), ..separation })
    }
}

impl Comparability {
    /// Computes the separation of the lists from the log-odds of each text, without measures; `None` if there is no pair to compare.
    #[must_use]
    pub fn of_log_odds(log_odds: &[f64], clustered: &ClusteredTexts, compared: &dyn Fn(usize) -> bool) -> Option<Self> {
        let separation = separation_by(&|text| log_odds.get(text).copied(), clustered, compared)?;
        let StratifiedDifference { delta, standard_error } = separation;
        let auroc = 0.5 + delta;
        let upper_bound = (auroc + NORMAL_QUANTILE * standard_error).min(1.0);
        let state = if upper_bound <= 0.5 + COMPARABILITY_MARGIN {
            ComparabilityState::Comparable
        } else if auroc - NORMAL_QUANTILE * standard_error <= 0.5 {
            ComparabilityState::TooFew
        } else {
            ComparabilityState::ListsDiffer
        };
        Some(Self { state, auroc, standard_error, upper_bound, margin: COMPARABILITY_MARGIN, measures: Vec::new() })
    }
}

/// The excess over one half of the AUROC of a measure over clusters, within groups, of the texts that are compared.
fn separation_by(
    values: &dyn Fn(usize) -> Option<f64>,
    clustered: &ClusteredTexts,
    compared: &dyn Fn(usize) -> bool,
) -> Option<StratifiedDifference> {
    let scores = clustered.scores(|text| values(text).filter(|_| compared(text)).map(|value| [value]));
    let pairs = scores.values.iter().zip(clustered.labels()).zip(clustered.strata());
    let (samples, strata): (Vec<PairedScore>, Vec<usize>) = pairs
        .filter_map(|((value, &member), &stratum)| {
            Some((PairedScore { member, first: 0.0, second: (*value)?[0] }, stratum))
        })
        .unzip();
    stratified_delong(&samples, &strata)
}

/// Scores each text by what `score` makes of its fold, of the texts of the other folds and of the texts of its fold.
fn out_of_fold(folds: &[usize], score: impl Fn(usize, &[usize], &[usize]) -> Vec<f64> + Sync) -> Vec<f64> {
    let scores: Vec<(Vec<usize>, Vec<f64>)> = (0..FOLDS)
        .into_par_iter()
        .map(|fold| {
            let (scored, training): (Vec<usize>, Vec<usize>) = (0..folds.len()).partition(|&text| folds[text] == fold);
            let scores = score(fold, &training, &scored);
            (scored, scores)
        })
        .collect();
    let mut all = vec![0.0; folds.len()];
    for (texts, scores) in scores {
        texts.into_iter().zip(scores).for_each(|(text, score)| all[text] = score);
    }
    all
}

#[cfg(test)]
mod tests;
