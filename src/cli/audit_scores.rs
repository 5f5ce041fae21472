//! The scores of an audit's samples, one row each, with what they mean at each false-positive rate.

use super::export;
use crate::audits::{AuditReport, AuditResults, SampleScores};
use crate::samples::Fields;
use crate::table::ResultRow;
use anyhow::Result;
use attestation::{LeafOpening, LeafSalts, SampleTrees, TreeBuilder};
use mia::texts::hexadecimal;
use serde_json::{Map, Value, json};
use std::path::Path;

/// An audit whose scores are written: a row for each sample.
#[derive(Clone, Copy)]
pub struct ScoreRows<'a> {
    pub report: &'a AuditReport,
    pub results: &'a AuditResults,
    /// The fields that came with each sample, in order.
    pub others: &'a [Fields],
    /// The salts of the signed report; `None` if the report is not signed.
    pub salts: Option<&'a LeafSalts>,
}

impl<'a> ScoreRows<'a> {
    /// The rows: the fields that came with each sample, then its scores and, where the audit has labels, for each method and
    /// false-positive rate the threshold and whether the score reaches it.
    fn rows(self) -> impl Iterator<Item = Result<ResultRow>> + 'a {
        let rows = self.results.rows.iter().zip(self.others).enumerate();
        rows.map(move |(index, (scores, others))| row(self, index, others, scores))
    }

    /// Writes the rows to a file, as its name asks for.
    pub fn write(self, target: &Path) -> Result<()> {
        let labels: Vec<String> = self.results.listed().map(|(_, column)| column.method.label.to_string()).collect();
        export::write(target, &labels, || Ok(self.rows()))
    }

    /// The trees over the samples and over the rows as lines of NDJSON, and the SHA-256 of these.
    pub fn trees(self) -> Result<(SampleTrees, String)> {
        let mut trees = TreeBuilder::default();
        for (index, row) in self.rows().enumerate() {
            let opening = self.salts.map(|salts| self.results.rows[index].opening(salts, index));
            trees.add(&serde_json::to_vec(&row?)?, &opening.unwrap_or_default());
        }
        Ok(trees.finish())
    }
}

fn row(
    ScoreRows { report, results, salts, .. }: ScoreRows,
    index: usize,
    others: &Fields,
    row: &SampleScores,
) -> Result<ResultRow> {
    let mut fields = Fields::from_iter([("index".to_owned(), index.into())]);
    fields.extend(others.clone());
    // The label as it was understood, whatever it was called.
    fields.extend(row.member.map(|member| ("label".to_owned(), u8::from(member).into())));
    fields.extend(row.cluster.map(|cluster| ("cluster".to_owned(), cluster.into())));
    fields.insert("scored_tokens".to_owned(), row.scored_tokens.into());
    fields.insert("truncated".to_owned(), row.truncated.into());
    fields.extend(row.windows.map(|windows| ("windows".to_owned(), windows.into())));
    let scores = results.listed().filter_map(|(place, column)| Some((&column.method.label, row.scores[place]?)));
    let scores: Map<String, Value> = scores.map(|(label, score)| (label.to_string(), score.into())).collect();
    let thresholds = thresholds(report, &scores);
    let p_values: Map<String, Value> =
        row.p_values.iter().map(|(label, p_value)| (label.to_string(), (*p_value).into())).collect();
    if !p_values.is_empty() {
        fields.insert("p_values".to_owned(), Value::Object(p_values));
    }
    fields.extend(row.p_value_adjusted.map(|p_value| ("p_value_adjusted".to_owned(), p_value.into())));
    fields.extend(row.flagged.map(|flagged| ("flagged".to_owned(), flagged.into())));
    fields.extend(row.posterior.map(|posterior| ("posterior".to_owned(), posterior.into())));
    let control = results.listed().filter_map(|(place, column)| {
        Some((column.method.label.to_string(), Value::from((*row.control.get(place)?)?)))
    });
    let measures = row.named_control_measures().map(|(name, measure)| (name.to_owned(), Value::from(measure)));
    let baselines = results.columns.iter().zip(&row.scores).filter(|(column, _)| !column.listed);
    let baselines = baselines.filter_map(|(column, score)| Some((column.method.label.to_string(), (*score)?.into())));
    let beside: [(&str, Map<String, Value>); 3] = [
        ("control_scores", control.collect()),
        ("control_measures", measures.collect()),
        ("baseline_scores", baselines.collect()),
    ];
    for (name, values) in beside.into_iter().filter(|(_, values)| !values.is_empty()) {
        fields.insert(name.to_owned(), Value::Object(values));
    }
    fields.extend(row.log_odds.map(|log_odds| ("log_odds".to_owned(), log_odds.into())));
    fields.insert("text_digest".to_owned(), hexadecimal(row.text.as_bytes()).into());
    if let Some(salts) = salts {
        let LeafOpening { salt, sample_digest } = row.opening(salts, index);
        fields.extend(salt.map(|salt| ("salt".to_owned(), salt.into())));
        fields.extend(sample_digest.map(|digest| ("sample_digest".to_owned(), digest.into())));
    }
    fields.insert("errors".to_owned(), serde_json::to_value(results.errors(row).collect::<Vec<_>>())?);
    fields.insert("scores".to_owned(), Value::Object(scores));
    if !thresholds.is_empty() {
        fields.insert("thresholds".to_owned(), Value::Object(thresholds));
    }
    Ok(fields)
}

/// By label of the method, for each false-positive rate that was asked for: the threshold, and whether the score is at or above it.
/// Both are null where no threshold stays within the rate, or there is no score.
fn thresholds(report: &AuditReport, scores: &Map<String, Value>) -> Map<String, Value> {
    let mut thresholds = Map::new();
    for method in &report.methods {
        let label = method.method.label.to_string();
        let score = scores.get(&label).and_then(Value::as_f64);
        let points = method.findings.separation.iter().flat_map(|separation| &separation.tpr_at_fpr);
        let point = |point: &mia::statistics::TprAtFpr| {
            let above = point.threshold.zip(score).map(|(threshold, score)| score >= threshold);
            json!({ "fpr": point.fpr, "threshold": point.threshold, "above": above })
        };
        let points: Vec<Value> = points.map(point).collect();
        if !points.is_empty() {
            thresholds.insert(label, points.into());
        }
    }
    thresholds
}
