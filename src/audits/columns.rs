//! The methods that an audit computes: those of the request and the baselines that they are compared with.

use mia::methods::LabelledMethod;
use serde::{Deserialize, Serialize};

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
