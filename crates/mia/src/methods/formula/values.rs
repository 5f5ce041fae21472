//! The value that a method gives each token, before selection and weights.
//!
//! Values are finite: NaN has no place in an order and would quietly stay unselected.

use super::error::ScoreError;
use crate::TokenStats;

/// The log-probabilities.
///
/// # Errors
/// [`ScoreError::NonFinite`].
pub fn log_probabilities(tokens: &[TokenStats]) -> Result<Vec<f64>, ScoreError> {
    finite(tokens.iter().map(|token| token.lp))
}

/// The values, all of them finite.
///
/// # Errors
/// [`ScoreError::NonFinite`].
pub fn finite(values: impl Iterator<Item = f64>) -> Result<Vec<f64>, ScoreError> {
    values.map(|value| if value.is_finite() { Ok(value) } else { Err(ScoreError::NonFinite) }).collect()
}

/// A value over sigma, unless an infinite variance would make 0 of it.
pub fn finite_variance(token: &TokenStats, value: f64) -> f64 {
    if token.var.is_infinite() { f64::NAN } else { value }
}
