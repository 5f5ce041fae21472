//! Scores that are missing, counted by method and reason.

use super::results::AuditResults;
use super::row_error::{RowError, listed_label};
use indexmap::IndexMap;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// Maximum number of samples without a score that a report lists; all of them are counted.
pub const MAX_NAMED: usize = 1_000;

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

/// The errors that concern listed methods or whole texts, each with its row.
pub fn listed_errors(results: &AuditResults) -> impl Iterator<Item = (usize, RowError)> {
    let is_listed = |error: &RowError| listed_label(&results.columns, error).is_some();
    let errors =
        results.rows.iter().enumerate().flat_map(|(row, scores)| scores.errors.iter().map(move |error| (row, *error)));
    errors.filter(move |(_, error)| is_listed(error))
}

/// The label and the code of an error of the results.
pub fn label_and_code(results: &AuditResults, error: RowError) -> (Option<Arc<str>>, Cow<'static, str>) {
    let label = listed_label(&results.columns, &error).flatten();
    (label, results.error_reasons[error.reason as usize].code.clone())
}

/// Counts errors by label and code, in the order in which they first appear.
pub fn count(results: &AuditResults, errors: impl Iterator<Item = RowError>) -> Vec<ExclusionCount> {
    // The words of a reason may say a number that differs from text to text, so several reasons share a code.
    let mut by_reason = IndexMap::<RowError, usize>::new();
    errors.for_each(|error| *by_reason.entry(error).or_default() += 1);
    let mut counts = IndexMap::<_, usize>::new();
    for (error, samples) in by_reason {
        *counts.entry(label_and_code(results, error)).or_default() += samples;
    }
    counts.into_iter().map(|((label, code), samples)| ExclusionCount { label, code, samples }).collect()
}
