//! Results of the run of an audit, which with its request determine its report.

use super::columns::{Column, ErrorReason, ErrorReasons, RowError, in_words, is_known, listed_label};
use super::error::AuditFailure;
use super::evidence::controls_itself;
use super::findings::{BlindFindings, CalibratedResults, SplitOutcome};
use super::selected_tokens::SelectedTokens;
use crate::datasets::{Sample, SampleDigest, SampleId};
use crate::pool::ModelInfo;
use crate::scorer::{Overflow, TextError, TextResult, Usage};
use attestation::{LeafOpening, LeafSalts};
use indexmap::IndexMap;
use mia::methods::LabelledMethod;
use mia::statistics::{AuditSample, CONTROL_MEASURES, Comparability, PositionRows, PriorTest};
use mia::texts::{TextDigest, hexadecimal};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Maximum number of samples without a score that a report lists; all of them are counted.
pub const MAX_NAMED: usize = 1_000;

/// The scores of an audit, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditResults {
    /// Computed columns, the listed ones first.
    pub columns: Vec<Column>,
    /// One row a sample, in order.
    pub rows: Vec<SampleScores>,
    /// Why scores are missing; the errors of the rows name the places.
    #[serde(default)]
    pub error_reasons: Vec<ErrorReason>,
    /// SHA-256 of the samples, as provenance describes it.
    pub dataset_digest: String,
    /// Means by position over the samples that the request's profile covers.
    pub profile: PositionRows,
    /// The same by group, where it was asked for.
    pub group_profiles: BTreeMap<String, PositionRows>,
    /// The tokens selected most often, where they were asked for.
    pub selected_tokens: Vec<SelectedTokens>,
    pub usage: Usage,
    /// Sequences that ran a second time, since the cache did not hold their statistics any more.
    pub repeated_passes: usize,
    /// Results of the tunings on shares of the samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<SplitOutcome>,
    /// The control model, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ModelInfo>,
    /// Separation of the classes by the texts alone; `None` without labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blind: Option<BlindFindings>,
    /// Comparability of the classes in everything that can be computed without the model; `None` without labels, or if they are
    /// too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparability: Option<Comparability>,
    /// Test of whether early positions separate the classes better than late ones; `None` without labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior_test: Option<PriorTest>,
    /// Results against the calibration, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibratedResults>,
    /// The distance of the n-grams that the rows keep, where they keep some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ngram_step: Option<usize>,
    /// Treatment of texts longer than the model's context.
    pub overflow: Overflow,
    /// Everything besides the request that the bits of the scores depend on: an entry for the program and for each model,
    /// separated by "; ".
    pub numerics: String,
    /// The model that is asked about.
    pub model: ModelInfo,
    /// The other models that took part: reference models and those that made neighbours.
    pub other_models: Vec<ModelInfo>,
}

/// The scores of one sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleScores {
    pub id: Option<SampleId>,
    pub text: TextDigest,
    /// True if the sample is a member; `None` without a label.
    pub member: Option<bool>,
    pub scored_tokens: usize,
    pub truncated: bool,
    pub group: Option<String>,
    /// Id of the document that the text is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<SampleId>,
    /// Windows that the text was read in, where that was asked for.
    pub windows: Option<usize>,
    /// The alphas of methods weighted by `slope`, by label.
    pub alpha_used: Vec<(Arc<str>, f64)>,
    /// One place for each column.
    pub scores: Vec<Option<f64>>,
    /// One place for each column, under the control model; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<Option<f64>>,
    /// The control model's own measures of the text, as `TextFacts::control` has them; `None` if there is no control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_measures: Option<[Option<f64>; CONTROL_MEASURES]>,
    /// The log-odds, by the texts of the other folds, that the text is a member, as far as it shows without the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_odds: Option<f64>,
    /// Texts of one cluster are drawn, permuted and split together. Counted from 0 by first appearance; none in scores that an
    /// earlier version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<usize>,
    /// The digest of the text's normalized form, equal for texts that differ by case and white space alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalized: Option<TextDigest>,
    /// Hashes of some of the text's n-grams, by which a calibration recognises text that other works share.
    #[serde(default, skip_serializing_if = "<[u64]>::is_empty")]
    pub ngrams: Box<[u64]>,
    /// The digest of the sample; none in scores that an earlier version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleDigest>,
    /// Why scores are missing.
    #[serde(default, rename = "failed", skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<RowError>,
    /// The same as an earlier version stored it.
    #[serde(default, rename = "errors", skip_serializing)]
    pub errors_in_words: Vec<TextError>,
    /// The probability that the text is a member by its score of the primary method, where the request states a prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posterior: Option<f64>,
    /// By label of a method: the p-value of the text's cluster against known non-members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p_values: Vec<(Arc<str>, f64)>,
    /// That of the method that decides, adjusted for the number of texts tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// True if the text is on the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flagged: Option<bool>,
}

impl AuditResults {
    /// The columns of the request's own methods, with their places.
    pub fn listed(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.listed)
    }

    /// The errors of a row in words, without those of baselines that the request does not list.
    pub fn errors<'a>(&'a self, row: &'a SampleScores) -> impl Iterator<Item = TextError> + 'a {
        row.errors(&self.columns, &self.error_reasons)
    }

    /// The column of the method with this label.
    pub fn place(&self, label: Option<&Arc<str>>) -> Option<usize> {
        self.columns.iter().position(|column| Some(&column.method.label) == label)
    }

    /// The errors that concern listed methods or whole texts, each with its row.
    pub fn listed_errors(&self) -> impl Iterator<Item = (usize, RowError)> {
        let rows = self.rows.iter().enumerate();
        let errors = rows.flat_map(|(row, scores)| scores.errors.iter().map(move |error| (row, *error)));
        errors.filter(|(_, error)| listed_label(&self.columns, error).is_some())
    }

    /// The label and the code of an error.
    pub fn label_and_code(&self, error: RowError) -> (Option<Arc<str>>, Cow<'static, str>) {
        let label = listed_label(&self.columns, &error).flatten();
        (label, self.error_reasons[error.reason as usize].code.clone())
    }

    /// Counts errors by label and code, in the order in which they first appear.
    pub fn exclusions(&self, errors: impl Iterator<Item = RowError>) -> Vec<ExclusionCount> {
        // The words of a reason may say a number that differs from text to text, so several reasons share a code.
        let mut by_reason = IndexMap::<RowError, usize>::new();
        errors.for_each(|error| *by_reason.entry(error).or_default() += 1);
        let mut counts = IndexMap::<_, usize>::new();
        for (error, samples) in by_reason {
            *counts.entry(self.label_and_code(error)).or_default() += samples;
        }
        counts.into_iter().map(|((label, code), samples)| ExclusionCount { label, code, samples }).collect()
    }

    /// Returns true if each row fits the columns and there is a column for each baseline.
    pub fn fit(&self) -> bool {
        let columns = self.columns.len();
        self.rows.iter().all(|row| row.fits(&self.columns, &self.error_reasons))
            && self.columns.iter().all(|column| column.baseline.is_none_or(|baseline| baseline < columns))
    }

    /// Returns the label of each row, true for members; `None` unless all rows have labels.
    pub fn labels(&self) -> Option<Vec<bool>> {
        let labels: Option<Vec<bool>> = self.rows.iter().map(|row| row.member).collect();
        labels.filter(|labels| !labels.is_empty())
    }
}

/// Number of samples that a method (every method, without a label) could not score for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExclusionCount {
    /// Label of the method; absent where no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Arc<str>>,
    /// As in the errors of a text.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    pub samples: usize,
}

/// The names of the measures of the control model, in the order of `TextFacts::control`.
const CONTROL_MEASURE_NAMES: [&str; CONTROL_MEASURES] = ["loss", "min_k_plus_plus_20", "min_k_5", "min_k_20"];

impl SampleScores {
    /// Measures of the text under the control model alone, by name.
    pub fn named_control_measures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let measures = self.control_measures.unwrap_or_default();
        CONTROL_MEASURE_NAMES.into_iter().zip(measures).filter_map(|(name, measure)| Some((name, measure?)))
    }

    /// The measures of the control model by their names.
    pub fn measures(measure: impl Fn(&str) -> Option<f64>) -> [Option<f64>; CONTROL_MEASURES] {
        CONTROL_MEASURE_NAMES.map(measure)
    }

    /// Creates the row of a sample before it is scored, with `columns` places.
    pub fn unknown(sample: &Sample, columns: usize) -> Self {
        Self {
            id: sample.id.clone(),
            text: TextDigest::new(&sample.text),
            member: sample.is_member(),
            group: sample.group.clone(),
            document: sample.document.clone(),
            scores: vec![None; columns],
            ..Self::default()
        }
    }

    /// Puts the scores of a text in their columns; fails where an error is of a method that has no column.
    pub fn keep(
        &mut self,
        result: TextResult,
        columns: &[Column],
        reasons: &mut ErrorReasons,
    ) -> Result<(), AuditFailure> {
        put(&mut self.scores, result.scores, columns);
        self.scored_tokens = result.scored_tokens;
        self.truncated = result.truncated;
        self.windows = result.windows;
        self.alpha_used.extend(result.alpha_used);
        let errors = reasons.row_errors(result.errors, columns)?;
        self.errors.reserve_exact(errors.len());
        errors.into_iter().for_each(|error| self.fail(error));
        Ok(())
    }

    /// Puts what the control model makes of the text in the columns. Its own measures have the labels of `measures`.
    pub fn keep_control(&mut self, result: TextResult, columns: &[Column], measures: &[Arc<str>; CONTROL_MEASURES]) {
        self.control.resize(columns.len(), None);
        let score = |label: &Arc<str>| result.scores.iter().find(|(known, _)| known == label).map(|(_, score)| *score);
        self.control_measures = Some(measures.each_ref().map(score));
        put(&mut self.control, result.scores, columns);
    }

    /// The score of the method in this column under the control model: of a method that compares with a model itself, the
    /// control's `loss`.
    pub fn control_score(&self, place: usize, method: &LabelledMethod) -> Option<f64> {
        match controls_itself(method) {
            true => self.control_measures.and_then(|[loss, ..]| loss),
            false => *self.control.get(place)?,
        }
    }

    /// The opening of the sample's leaf in the trees of a signed report.
    pub fn opening(&self, salts: &LeafSalts, index: usize) -> LeafOpening {
        LeafOpening {
            salt: Some(hexadecimal(&salts.salt(index))),
            sample_digest: self.sample.map(|digest| digest.hexadecimal()),
        }
    }

    /// The sample as warnings are computed of it.
    pub fn as_sample(&self) -> AuditSample<'_> {
        let Self { text, member, scored_tokens, truncated, .. } = self;
        AuditSample { text: text.as_bytes(), member: *member, scored_tokens: *scored_tokens, truncated: *truncated }
    }

    /// The errors in words, without those of baselines that the request does not list.
    pub fn errors<'a>(
        &'a self,
        columns: &'a [Column],
        reasons: &'a [ErrorReason],
    ) -> impl Iterator<Item = TextError> + 'a {
        let is_listed = |label: &Arc<str>| columns.iter().any(|column| column.listed && column.method.label == *label);
        let earlier = self.errors_in_words.iter().filter(move |error| error.label.as_ref().is_none_or(is_listed));
        in_words(columns, reasons, &self.errors).chain(earlier.cloned())
    }

    /// True if there is a place for each column and the errors name existing columns and reasons.
    pub fn fits(&self, columns: &[Column], reasons: &[ErrorReason]) -> bool {
        let control_fits = self.control.is_empty() || self.control.len() == columns.len();
        let errors_fit = self.errors.iter().all(|error| is_known(columns, reasons, error));
        self.scores.len() == columns.len() && control_fits && errors_fit
    }

    /// Notes an error. What concerns the whole text comes again in every round, and is kept once.
    pub fn fail(&mut self, error: RowError) {
        if error.column.is_some() || !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }
}

/// Puts scores in their places. Both are in the order of the columns, and a score may be missing.
fn put(places: &mut [Option<f64>], scores: impl IntoIterator<Item = (Arc<str>, f64)>, columns: &[Column]) {
    let mut scores = scores.into_iter().peekable();
    for (place, column) in places.iter_mut().zip(columns) {
        if let Some((_, score)) = scores.next_if(|(label, _)| *label == column.method.label) {
            *place = Some(score);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::columns::columns;
    use mia::methods::default_methods;

    #[test]
    fn errors_that_an_earlier_version_stored_in_words_are_read() {
        let columns = columns(&default_methods());
        let label = Some(Arc::clone(&columns[0].method.label));
        let stored = TextError { label, code: "zero_weight".into(), detail: "why".to_owned() };
        let mut row = serde_json::to_value(SampleScores::unknown(&Sample::default(), columns.len())).unwrap();
        row["errors"] = serde_json::json!([stored]);
        let row: SampleScores = serde_json::from_value(row).unwrap();
        assert_eq!(row.errors(&columns, &[]).collect::<Vec<_>>(), [stored]);
    }

    #[test]
    fn a_row_fits_its_columns_alone() {
        let columns = columns(&default_methods());
        let row = |places| SampleScores::unknown(&Sample::default(), places);
        assert!(row(columns.len()).fits(&columns, &[]));
        assert!(!row(columns.len() + 1).fits(&columns, &[]));
        let controlled = SampleScores { control: vec![None], ..row(columns.len()) };
        assert!(!controlled.fits(&columns, &[]));
        let failed = SampleScores { errors: vec![RowError { column: None, reason: 0 }], ..row(columns.len()) };
        assert!(!failed.fits(&columns, &[]));
    }
}
