//! A weighted mean over some of a sequence's tokens.

use super::{Explanation, ScoreError};
use crate::methods::base::Base;
use crate::methods::method::Method;
use crate::methods::min_k::lowest;
use crate::methods::pdr::Select;
use crate::methods::weighting::Surroundings;
use crate::token_stats::TokenStats;

/// A mean before its division.
pub struct WeightedSum {
    /// Of each token; none where all weigh the same.
    weights: Option<Vec<f64>>,
    /// Index and weighted value of each selected token, in order.
    terms: Vec<(usize, f64)>,
    /// Never 0.
    divisor: f64,
}

impl WeightedSum {
    /// Selects among the `values` of the `tokens` and weights them, as the method says. Both have the same length, at
    /// least 1, except for methods that take no weights, whose values may be fewer.
    pub fn new(
        method: &Method,
        values: &[f64],
        tokens: &[TokenStats],
        around: &Surroundings,
    ) -> Result<WeightedSum, ScoreError> {
        let weights = method.pdr.map(|pdr| pdr.weighting.weights(tokens, around));
        let weighted = match &weights {
            Some(weights) => &weights.iter().zip(values).map(|(weight, value)| weight * value).collect::<Vec<_>>()[..],
            None => values,
        };
        // Selection looks at the raw values: a decay reweights what the method found, at its original position.
        let before = method.pdr.is_some_and(|pdr| pdr.select == Select::Before);
        let selected = selected(&method.base, if before { weighted } else { values }, tokens)?;
        let divisor = match (&weights, method.pdr) {
            (Some(weights), Some(pdr)) if pdr.normalize => selected.iter().map(|&index| weights[index]).sum(),
            _ => selected.len() as f64,
        };
        if divisor == 0.0 {
            return Err(ScoreError::ZeroWeight);
        }
        let terms = selected.into_iter().map(|index| (index, weighted[index])).collect();
        Ok(WeightedSum { weights, terms, divisor })
    }

    /// The mean over one more number, which is not 0.
    pub fn divided_by(self, number: f64) -> WeightedSum {
        WeightedSum { divisor: self.divisor * number, ..self }
    }

    /// The mean, which is finite.
    pub fn quotient(&self) -> Result<f64, ScoreError> {
        let sum: f64 = self.terms.iter().map(|(_, term)| term).sum();
        let quotient = sum / self.divisor;
        if quotient.is_finite() { Ok(quotient) } else { Err(ScoreError::NonFinite) }
    }

    /// How the mean comes about, over n tokens. `selects`: whether the method looks at some of them only.
    pub fn explanation(self, n: usize, selects: bool) -> Explanation {
        let mut contributions = vec![0.0; n];
        let mut selected = if selects { vec![false; n] } else { Vec::new() };
        for (index, term) in self.terms {
            // Adding 0 turns a negative zero, from a weight of 0, into a plain one.
            contributions[index] = term / self.divisor + 0.0;
            if selects {
                selected[index] = true;
            }
        }
        Explanation { contributions, selected, weights: self.weights.unwrap_or_default() }
    }
}

/// Indices of the values that the method looks at, ascending; at least one.
fn selected(base: &Base, values: &[f64], tokens: &[TokenStats]) -> Result<Vec<usize>, ScoreError> {
    let mut selected = lowest(values, base.k().map_or(values.len(), |k| k.of(values.len())));
    if let Base::Surp { max_entropy, .. } = *base {
        selected.retain(|&index| tokens[index].entropy() < max_entropy);
    }
    if selected.is_empty() { Err(ScoreError::NothingSelected) } else { Ok(selected) }
}
