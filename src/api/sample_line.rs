//! One line of the scores of an audit.

use crate::audits::{ScoreHeader, ScoredRow};
use crate::datasets::{ColumnText, SampleId};
use crate::scorer::TextError;
use crate::table::{ColumnKind, ResultRow};
use attestation::{LeafOpening, LeafSalts};
use mia::texts::hexadecimal;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use utoipa::ToSchema;

/// The columns of a table before those of the methods; ids are text, since each may be a string or an integer.
pub const LEADING: [(&str, ColumnKind); 9] = [
    ("index", ColumnKind::Integer),
    ("id", ColumnKind::Text),
    ("label", ColumnKind::Integer),
    ("group", ColumnKind::Text),
    ("document", ColumnKind::Text),
    ("cluster", ColumnKind::Integer),
    ("scored_tokens", ColumnKind::Integer),
    ("truncated", ColumnKind::Boolean),
    ("windows", ColumnKind::Integer),
];
/// The columns of a table after those of the methods.
pub const TRAILING: [(&str, ColumnKind); 11] = [
    ("alpha_used", ColumnKind::Text),
    ("errors", ColumnKind::Text),
    ("posterior", ColumnKind::Float),
    ("p_values", ColumnKind::Text),
    ("p_value_adjusted", ColumnKind::Float),
    ("flagged", ColumnKind::Boolean),
    ("control_scores", ColumnKind::Text),
    ("control_measures", ColumnKind::Text),
    ("log_odds", ColumnKind::Float),
    ("text_digest", ColumnKind::Text),
    ("baseline_scores", ColumnKind::Text),
];

/// One sample.
#[derive(Serialize, ToSchema)]
pub struct SampleLine<'a> {
    /// Place among the samples, from 0.
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a SampleId>,
    /// 1 for a member, 0 for a non-member; absent where the audit has no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<u8>,
    /// The group that the sample names.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    /// Id of the document that the sample names.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'a SampleId>,
    /// Texts of one cluster are permuted and drawn together; numbered from 0 by first appearance.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<usize>,
    scored_tokens: usize,
    truncated: bool,
    /// In how many windows the text was read, where the audit asks for windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<usize>,
    /// Score by label of the method.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    scores: Vec<(&'a str, f64)>,
    /// The alpha of methods weighted by `slope`, by label.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    alpha_used: Vec<(&'a str, f64)>,
    /// The probability that the text is a member, by its score of the primary method and the prior that the audit states.
    #[serde(skip_serializing_if = "Option::is_none")]
    posterior: Option<f64>,
    /// Faults of what could not be computed.
    errors: Vec<TextError>,
    /// By label of a method: the p-value of the text's cluster against known non-members, where the audit has a calibration.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    p_values: Vec<(&'a str, f64)>,
    /// That of the method that decides, adjusted for the number of texts tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    p_value_adjusted: Option<f64>,
    /// True if the text is on the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    flagged: Option<bool>,
    /// Score under the control model by label of the method, where the audit has a control.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    control_scores: Vec<(&'a str, f64)>,
    /// Measures of the text under the control model alone, for the classifier that compares the lists.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    control_measures: Vec<(&'a str, f64)>,
    /// The log-odds that the text is a member by that classifier, which was fitted on other texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_odds: Option<f64>,
    /// The first 16 bytes of the SHA-256 of the text, in hexadecimal digits: the texts of a cluster count in this order.
    text_digest: String,
    /// Score of each baseline that the request does not list, by label.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    baseline_scores: Vec<(&'a str, f64)>,
    /// Salt of the sample in the signed report, in hexadecimal digits; absent without a signing key.
    #[serde(skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    /// SHA-256 of the sample as a line of JSON; absent without a signing key.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_digest: Option<String>,
    /// Other columns of the sample, as long as the samples are kept.
    #[serde(skip_serializing_if = "ColumnText::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>, required = false)]
    columns: &'a ColumnText,
}

impl<'a> SampleLine<'a> {
    /// `salts` are those of the signed report; `None` for a line that no report commits to.
    pub fn new(
        header: &'a ScoreHeader,
        salts: Option<&LeafSalts>,
        index: usize,
        ScoredRow { scores: row, columns }: &'a ScoredRow,
    ) -> Self {
        let LeafOpening { salt, sample_digest } = salts.map(|salts| row.opening(salts, index)).unwrap_or_default();
        Self {
            index,
            id: row.id.as_ref(),
            label: row.member.map(u8::from),
            group: row.group.as_deref(),
            document: row.document.as_ref(),
            cluster: row.cluster,
            scored_tokens: row.scored_tokens,
            truncated: row.truncated,
            windows: row.windows,
            alpha_used: row.alpha_used.iter().map(|(label, alpha)| (&**label, *alpha)).collect(),
            scores: header
                .listed()
                .filter_map(|(place, column)| Some((&*column.method.label, row.scores[place]?)))
                .collect(),
            posterior: row.posterior,
            errors: header.errors(row).collect(),
            p_values: row.p_values.iter().map(|(label, p_value)| (&**label, *p_value)).collect(),
            p_value_adjusted: row.p_value_adjusted,
            flagged: row.flagged,
            control_scores: header
                .listed()
                .filter_map(|(place, column)| Some((&*column.method.label, (*row.control.get(place)?)?)))
                .collect(),
            control_measures: row.named_control_measures().collect(),
            log_odds: row.log_odds,
            text_digest: hexadecimal(row.text.as_bytes()),
            baseline_scores: header
                .columns
                .iter()
                .zip(&row.scores)
                .filter(|(column, _)| !column.listed)
                .filter_map(|(column, score)| Some((&*column.method.label, (*score)?)))
                .collect(),
            salt,
            sample_digest,
            columns,
        }
    }

    /// The line as an object.
    pub fn row(&self) -> serde_json::Result<ResultRow> {
        match serde_json::to_value(self)? {
            Value::Object(row) => Ok(row),
            other => Err(serde::ser::Error::custom(format!("a line of scores is {other}, not an object"))),
        }
    }
}

/// The name in a table of what came along with samples: another one where a column of results is called so.
pub fn column_name<'n>(header: &ScoreHeader, name: &'n str) -> Cow<'n, str> {
    let is_label = || header.listed().any(|(_, column)| *column.method.label == *name);
    let is_result = || LEADING.iter().chain(&TRAILING).any(|(column, _)| *column == name);
    if is_result() || is_label() { Cow::Owned(format!("{name} (input)")) } else { Cow::Borrowed(name) }
}

fn as_map<S: Serializer>(scores: &[(&str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(scores.iter().copied())
}
