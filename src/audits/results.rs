//! What the run of an audit leaves behind: with the request, all that its report is made of.

use super::columns::Column;
use super::selected_tokens::SelectedTokens;
use super::tuned_splits::SplitOutcome;
use crate::datasets::{Sample, SampleId};
use crate::pool::ModelInfo;
use crate::scorer::{TextError, TextResult, Usage};
use crate::statistics::PositionRows;
use crate::texts::TextDigest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The scores of an audit, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditResults {
    /// What was computed; the listed columns come first.
    pub columns: Vec<Column>,
    /// One row a sample, in order.
    pub rows: Vec<SampleScores>,
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
    /// What became of the tunings on shares of the samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<SplitOutcome>,
    /// The model that is asked about.
    pub model: ModelInfo,
    /// The other models that took part: reference models and those that made neighbours.
    pub other_models: Vec<ModelInfo>,
}

/// The scores of one sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleScores {
    pub id: Option<SampleId>,
    pub text: TextDigest,
    /// Whether the sample is a member, where that was said.
    pub member: Option<bool>,
    pub scored_tokens: usize,
    pub truncated: bool,
    pub group: Option<String>,
    /// Windows that the text was read in, where that was asked for.
    pub windows: Option<usize>,
    /// The alphas of methods weighted by `slope`, by label.
    pub alpha_used: Vec<(Arc<str>, f64)>,
    /// One place for each column.
    pub scores: Vec<Option<f64>>,
    pub errors: Vec<TextError>,
}

impl AuditResults {
    /// The columns of the request's own methods, with their places.
    pub fn listed(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.listed)
    }
}

impl SampleScores {
    /// The row of a sample before it is scored, with a place for each of so many columns.
    pub fn unknown(sample: &Sample, columns: usize) -> Self {
        Self {
            id: sample.id.clone(),
            text: TextDigest::new(&sample.text),
            member: sample.is_member(),
            scored_tokens: 0,
            truncated: false,
            group: sample.group.clone(),
            windows: None,
            alpha_used: Vec::new(),
            scores: vec![None; columns],
            errors: Vec::new(),
        }
    }

    /// Puts the scores of a text in their columns. Both are in the same order, and a score may be missing.
    pub fn keep(&mut self, result: TextResult, columns: &[Column]) {
        let mut scores = result.scores.into_iter().peekable();
        for (place, column) in self.scores.iter_mut().zip(columns) {
            if let Some((_, score)) = scores.next_if(|(label, _)| *label == column.method.label) {
                *place = Some(score);
            }
        }
        self.scored_tokens = result.scored_tokens;
        self.truncated = result.truncated;
        self.windows = result.windows;
        self.alpha_used.extend(result.alpha_used);
        for error in result.errors {
            self.fail(error);
        }
    }

    /// Notes an error. What concerns the whole text comes again in every round, and is kept once.
    pub fn fail(&mut self, error: TextError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }
}
