//! The value that a method gives each token, before selection and weights.
//!
//! Values are finite: NaN has no place in an order and would quietly stay unselected.

use super::{ScoreError, TextStats, view};
use crate::methods::base::{Base, NamedCounts};
use crate::methods::method::Method;
use crate::token_stats::TokenStats;
use std::collections::HashSet;

/// The values of the first `tokens` of a text: one each, or fewer for `gap_k` (moving averages) and `dc_pdd` (first
/// occurrences).
pub fn of(method: &Method, text: &TextStats, tokens: &[TokenStats]) -> Result<Vec<f64>, ScoreError> {
    match &method.base {
        Base::Ref { .. } => {
            let reference = view(method, text, 0)?.first().map_or(&[][..], |tokens| tokens);
            finite(tokens.iter().zip(reference).map(|(token, reference)| token.lp - reference.lp))
        }
        Base::MinKPlusPlus { .. } => finite(tokens.iter().map(|token| guarded(token, token.z()))),
        Base::GapK { window, .. } => {
            let gaps = tokens.iter().map(|token| guarded(token, (token.lp - token.max_lp) / token.sigma()));
            Ok(moving_average(finite(gaps)?, *window))
        }
        Base::Surp { .. } if tokens.iter().any(|token| !token.mu.is_finite()) => Err(ScoreError::NonFinite),
        Base::DcPdd { counts, a } => calibrated(tokens, text.ids, counts, *a),
        _ => log_probabilities(tokens),
    }
}

/// The log-probabilities.
pub fn log_probabilities(tokens: &[TokenStats]) -> Result<Vec<f64>, ScoreError> {
    finite(tokens.iter().map(|token| token.lp))
}

fn finite(values: impl Iterator<Item = f64>) -> Result<Vec<f64>, ScoreError> {
    values.map(|value| if value.is_finite() { Ok(value) } else { Err(ScoreError::NonFinite) }).collect()
}

/// A value over sigma, unless an infinite variance would make 0 of it.
fn guarded(token: &TokenStats, value: f64) -> f64 {
    if token.var.is_infinite() { f64::NAN } else { value }
}

/// The mean of every `window` values in a row; the values themselves where there are fewer.
fn moving_average(values: Vec<f64>, window: usize) -> Vec<f64> {
    if values.len() < window {
        return values;
    }
    values.windows(window).map(|values| values.iter().sum::<f64>() / window as f64).collect()
}

/// `min(p_t ln(1 / f_t), a)` for the first occurrence of each id.
fn calibrated(tokens: &[TokenStats], ids: &[u32], counts: &NamedCounts, a: f64) -> Result<Vec<f64>, ScoreError> {
    let mut seen = HashSet::with_capacity(tokens.len());
    let first = tokens.iter().zip(ids).filter(|(_, id)| seen.insert(**id));
    finite(first.map(|(token, &id)| {
        let value = token.lp.exp() * -counts.table.frequency(id).ln();
        // Not `min`, which would make a of NaN.
        if value > a { a } else { value }
    }))
}
