//! The methods that an audit computes, which are those of the request and the baselines that they are compared with, and why
//! samples have no scores of them.
//!
//! A reason is kept in words once; each row names those that hold for its columns. Ten million scores can fail as well as
//! succeed. A row that kept the words of each of its errors would take ten times the memory of its scores.

use super::error::AuditFailure;
use crate::scorer::TextError;
use indexmap::IndexSet;
use mia::methods::LabelledMethod;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// A method that an audit computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub method: LabelledMethod,
    /// True if the request lists it; the others are baselines that listed methods are compared with.
    pub listed: bool,
    /// The column that its scores are compared with: the same method without PDR, or what `fsd` compares.
    pub baseline: Option<usize>,
}

/// The methods of the request, then the baselines of those that have one, where the request does not list them itself.
pub fn columns(methods: &[LabelledMethod]) -> Vec<Column> {
    let column = |method: &LabelledMethod| Column { method: method.clone(), listed: true, baseline: None };
    let mut columns: Vec<Column> = methods.iter().map(column).collect();
    for place in 0..columns.len() {
        let Some(baseline) = columns[place].method.method.baseline() else { continue };
        let known = columns.iter().position(|column| column.method.method == baseline);
        columns[place].baseline = Some(known.unwrap_or(columns.len()));
        if known.is_none() {
            let method = with_unique_label(LabelledMethod::from(baseline), &columns);
            columns.push(Column { method, listed: false, baseline: None });
        }
    }
    columns
}

/// The method under a label that no column has: a client may have given the natural one to another method.
fn with_unique_label(mut method: LabelledMethod, columns: &[Column]) -> LabelledMethod {
    while columns.iter().any(|column| column.method.label == method.label) {
        method.label = format!("{} (baseline)", method.label).into();
    }
    method
}

/// Reason for a missing score, without its method.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ErrorReason {
    /// As in [`TextError`].
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

/// An error of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowError {
    /// The place of the column that has no score; `None` if no method could run.
    pub column: Option<u16>,
    /// The place of the reason among those of all rows.
    pub reason: u32,
}

/// The reasons that came up while samples are scored.
#[derive(Debug, Default)]
pub struct ErrorReasons(IndexSet<ErrorReason>);

impl ErrorReasons {
    /// Converts the errors of a text into those of its row. Both errors and columns are in the order of the methods.
    pub fn row_errors(&mut self, errors: Vec<TextError>, columns: &[Column]) -> Result<Vec<RowError>, AuditFailure> {
        let mut columns = (0u16..).zip(columns);
        let row_error = |TextError { label, code, detail }: TextError| {
            let mut place = |label: Arc<str>| {
                let column = columns.find(|(_, column)| column.method.label == label);
                column.map(|(place, _)| place).ok_or(AuditFailure::ForeignResults)
            };
            let column = label.map(&mut place).transpose()?;
            // An audit has at most `MAX_SCORES` errors.
            let reason = self.0.insert_full(ErrorReason { code, detail }).0 as u32;
            Ok(RowError { column, reason })
        };
        errors.into_iter().map(row_error).collect()
    }

    /// All of them, in the order of their places.
    pub fn into_list(self) -> Vec<ErrorReason> {
        self.0.into_iter().collect()
    }
}

/// Errors in words: those of the methods that the request lists, and those that concern the whole text.
pub fn in_words<'a>(
    columns: &'a [Column],
    reasons: &'a [ErrorReason],
    errors: &'a [RowError],
) -> impl Iterator<Item = TextError> + 'a {
    errors.iter().filter_map(|error| {
        let ErrorReason { code, detail } = reasons.get(error.reason as usize)?.clone();
        Some(TextError { label: listed_label(columns, error)?, code, detail })
    })
}

/// The label of the method that an error concerns, if the request lists it; `Some(None)` where it concerns the whole text.
pub fn listed_label(columns: &[Column], error: &RowError) -> Option<Option<Arc<str>>> {
    let Some(place) = error.column else { return Some(None) };
    let column = columns.get(usize::from(place)).filter(|column| column.listed)?;
    Some(Some(Arc::clone(&column.method.label)))
}

/// True if the column and the reason that an error names exist.
pub fn is_known(columns: &[Column], reasons: &[ErrorReason], error: &RowError) -> bool {
    error.column.is_none_or(|place| usize::from(place) < columns.len()) && (error.reason as usize) < reasons.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::methods::default_methods;

    fn error(label: Option<&Arc<str>>, detail: &str) -> TextError {
        TextError { label: label.cloned(), code: "too_short".into(), detail: detail.to_owned() }
    }

    #[test]
    fn a_reason_is_kept_once_and_comes_back_under_each_label() {
        let columns = columns(&default_methods());
        let labels: Vec<&Arc<str>> = columns.iter().map(|column| &column.method.label).collect();
        let mut reasons = ErrorReasons::default();
        let mut row_errors = |errors| reasons.row_errors(errors, &columns);
        let first = row_errors(vec![error(Some(labels[0]), "one"), error(Some(labels[2]), "one")]).unwrap();
        let second = row_errors(vec![error(None, "two")]).unwrap();
        let foreign = Arc::from("foreign");
        assert!(matches!(row_errors(vec![error(Some(&foreign), "one")]), Err(AuditFailure::ForeignResults)));
        assert_eq!(std::mem::size_of_val(&*first), 16);
        let reasons = reasons.into_list();
        assert_eq!(reasons.len(), 2);
        let words = |errors| in_words(&columns, &reasons, errors).collect::<Vec<_>>();
        assert_eq!(words(&first), [error(Some(labels[0]), "one"), error(Some(labels[2]), "one")]);
        assert_eq!(words(&second), [error(None, "two")]);
    }

    #[test]
    fn what_concerns_a_baseline_that_nobody_listed_is_not_said() {
        let weighted: Vec<LabelledMethod> =
            default_methods().into_iter().filter(|method| method.method.pdr.is_some()).collect();
        let columns = columns(&weighted);
        let unlisted = columns.iter().position(|column| !column.listed).unwrap();
        let mut reasons = ErrorReasons::default();
        let errors = vec![error(Some(&columns[unlisted].method.label), "one")];
        let errors = reasons.row_errors(errors, &columns).unwrap();
        assert_eq!(errors[0].column, Some(unlisted as u16));
        assert_eq!(in_words(&columns, &reasons.into_list(), &errors).count(), 0);
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let columns = columns(&default_methods());
        let reasons = [ErrorReason { code: "too_short".into(), detail: String::new() }];
        let known = |column, reason| is_known(&columns, &reasons, &RowError { column, reason });
        assert!(known(Some(0), 0) && known(None, 0));
        assert!(!known(Some(0), 1) && !known(Some(columns.len() as u16), 0));
    }
}
