//! One line of an audit's scores, as a file has it.

use super::columns::{Column, ErrorReasons};
use super::error::AuditFailure;
use super::results::{AuditResults, SampleScores};
use crate::datasets::{Label, SampleId};
use crate::scorer::TextError;
use indexmap::IndexMap;
use mia::texts::TextDigest;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// One line of an audit's scores.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ScoreLine {
    pub index: usize,
    pub id: Option<SampleId>,
    pub label: Option<Label>,
    pub group: Option<String>,
    pub document: Option<SampleId>,
    pub cluster: Option<usize>,
    pub scored_tokens: usize,
    pub truncated: bool,
    pub text_digest: TextDigest,
    pub scores: ScoresByLabel,
    #[serde(default)]
    pub baseline_scores: ScoresByLabel,
    #[serde(default)]
    pub control_scores: ScoresByLabel,
    #[serde(default)]
    pub control_measures: IndexMap<Cow<'static, str>, f64>,
    pub log_odds: Option<f64>,
    #[serde(default)]
    pub errors: Vec<TextError>,
    #[serde(default)]
    pub p_values: ScoresByLabel,
    pub p_value_adjusted: Option<f64>,
    pub flagged: Option<bool>,
    pub posterior: Option<f64>,
    pub sample_digest: Option<String>,
}

type ScoresByLabel = IndexMap<Arc<str>, f64>;

impl ScoreLine {
    /// The line of a row, without what the statistics of all rows add to it.
    pub fn new(index: usize, row: &SampleScores, results: &AuditResults) -> Self {
        let columns = || results.columns.iter().enumerate();
        let values = |scores: &[Option<f64>], listed: bool| {
            let places = columns().filter(|(_, column)| column.listed == listed);
            places
                .filter_map(|(place, column)| Some((Arc::clone(&column.method.label), (*scores.get(place)?)?)))
                .collect()
        };
        Self {
            index,
            scored_tokens: row.scored_tokens,
            truncated: row.truncated,
            text_digest: row.text,
            scores: values(&row.scores, true),
            baseline_scores: values(&row.scores, false),
            control_scores: values(&row.control, true),
            control_measures: row.named_control_measures().map(|(name, value)| (name.into(), value)).collect(),
            errors: results.errors(row).collect(),
            ..Self::default()
        }
    }

    /// The row of the line.
    pub fn into_row(self, columns: &[Column], reasons: &mut ErrorReasons) -> Result<SampleScores, AuditFailure> {
        let place = |column: &Column, scores: &ScoresByLabel| scores.get(&column.method.label).copied();
        let score = |column| place(column, &self.scores).or_else(|| place(column, &self.baseline_scores));
        let has_control = !self.control_measures.is_empty();
        let control =
            columns.iter().filter(|_| has_control).map(|column| place(column, &self.control_scores)).collect();
        let measure = |name: &str| self.control_measures.get(name).copied();
        Ok(SampleScores {
            text: self.text_digest,
            member: self.label.and_then(Label::is_member),
            scored_tokens: self.scored_tokens,
            truncated: self.truncated,
            scores: columns.iter().map(score).collect(),
            control,
            control_measures: has_control.then(|| SampleScores::measures(measure)),
            log_odds: self.log_odds,
            cluster: self.cluster,
            errors: reasons.row_errors(self.errors, columns)?,
            id: self.id,
            group: self.group,
            document: self.document,
            p_values: self.p_values.into_iter().collect(),
            p_value_adjusted: self.p_value_adjusted,
            flagged: self.flagged,
            posterior: self.posterior,
            ..SampleScores::default()
        })
    }

    /// Differences to the line of the same sample, scored again by some of the methods, in words. `is_close` compares two scores. The
    /// number of scores that were compared is added to `compared`.
    pub fn differences(
        &self,
        again: &Self,
        compared: &mut usize,
        mut is_close: impl FnMut(f64, f64) -> bool,
    ) -> Vec<String> {
        let mut differing = Vec::new();
        for (name, claimed, computed) in [
            ("scored_tokens", self.scored_tokens, again.scored_tokens),
            ("truncated", self.truncated.into(), again.truncated.into()),
        ] {
            if claimed != computed {
                differing.push(format!("`{name}` is {claimed}, scored again {computed}"));
            }
        }
        let mut compare = |name: &str, claimed: Option<f64>, computed: Option<f64>| {
            *compared += 1;
            let is_same = match (claimed, computed) {
                (Some(claimed), Some(computed)) => is_close(claimed, computed),
                (claimed, computed) => claimed == computed,
            };
            if !is_same {
                let number = |score: Option<f64>| score.map_or("no score".to_owned(), |score| score.to_string());
                differing.push(format!("{name}: {}, scored again {}", number(claimed), number(computed)));
            }
        };
        let value = |label: &Arc<str>, line: &Self| line.scores.get(label).or(line.baseline_scores.get(label)).copied();
        for label in again.scores.keys().chain(again.baseline_scores.keys()) {
            compare(&format!("`{label}`"), value(label, self), value(label, again));
        }
        for (label, computed) in &again.control_scores {
            let claimed = self.control_scores.get(label).copied();
            compare(&format!("`{label}` under the control"), claimed, Some(*computed));
        }
        for (name, computed) in &again.control_measures {
            compare(&format!("`{name}` of the control"), self.control_measures.get(name).copied(), Some(*computed));
        }
        // Scores that the line has and the model does not give are errors of the sample.
        for error in &again.errors {
            let is_known = |known: &TextError| known.label == error.label && known.code == error.code;
            if !self.errors.iter().any(is_known) {
                differing.push(format!("the error `{}` is missing", error.code));
            }
        }
        differing
    }
}
