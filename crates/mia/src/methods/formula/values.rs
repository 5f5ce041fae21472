//! The value that a method gives each token, before selection and weights, and which tokens are selected.
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

/// Indices of the `k` lowest of `values`, in ascending order of index; all of them if there are no more than `k`.
///
/// Ordered by (value, index), both ascending: a decay makes visible which of two equal values was taken.
pub fn lowest(values: &[f64], k: usize) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..values.len()).collect();
    if k < indices.len() {
        indices.select_nth_unstable_by(k, |&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
        indices.truncate(k);
        indices.sort_unstable();
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::lowest;

    #[test]
    fn lowest_values_in_order_of_position() {
        let values = [-2.3, -0.7, -5.1, -0.05, -1.9, -3.4, -0.3, -6.2, -0.9, -1.1];
        assert_eq!(lowest(&values, 2), [2, 7]);
        assert_eq!(lowest(&values, 3), [2, 5, 7]);
        assert_eq!(lowest(&values, 10), (0..10).collect::<Vec<_>>());
        assert_eq!(lowest(&values, 11), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn of_equal_values_the_earlier_is_taken() {
        assert_eq!(lowest(&[-5.0, -1.0, -5.0, -5.0, -0.1], 2), [0, 2]);
    }
}
