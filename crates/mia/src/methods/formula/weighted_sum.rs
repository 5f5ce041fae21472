//! A weighted mean over some of a sequence's tokens.

use super::error::ScoreError;
use crate::TokenStats;
use crate::methods::pdr::{Pdr, Select, WeightContext};

/// A mean before its division.
#[derive(Debug)]
pub struct WeightedSum {
    /// Weight of each token; `None` if all weigh the same.
    weights: Option<Vec<f64>>,
    /// Index and weighted value of each selected token, in order.
    terms: Vec<(usize, f64)>,
    /// Never 0.
    divisor: f64,
    selects: bool,
}

/// Which of some values count: their indices, in ascending order.
pub type Selection<'a> = &'a dyn Fn(&[f64]) -> Vec<usize>;

/// Breakdown of a score by the text's tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Contribution of each of the n scored tokens to the score: they sum to it up to rounding; 0 for a token that is not
    /// selected or is truncated away.
    pub contributions: Vec<f64>,
    /// True for each token that was selected; empty for a method that uses every token.
    pub selected: Vec<bool>,
    /// The weight of each, truncated ones left out; empty where all weigh the same.
    pub weights: Vec<f64>,
}

impl WeightedSum {
    /// Weights the `values` of the `tokens` as `pdr` says. Both have the same length, at least 1, except for methods that
    /// take no weights, whose values may be fewer. `select` gives the indices of the values that count, in ascending
    /// order; `None`: all of them.
    ///
    /// # Errors
    /// [`ScoreError::NothingSelected`] and [`ScoreError::ZeroWeight`].
    pub fn new(
        pdr: Option<Pdr>,
        values: &[f64],
        tokens: &[TokenStats],
        context: &WeightContext,
        select: Option<Selection>,
    ) -> Result<WeightedSum, ScoreError> {
        let weights = pdr.map(|pdr| pdr.weighting.weights(tokens, context));
        let weighted = match &weights {
            Some(weights) => &weights.iter().zip(values).map(|(weight, value)| weight * value).collect::<Vec<_>>()[..],
            None => values,
        };
        // Selection uses the raw values: a decay reweights what the method selected, at its original position.
        let before = pdr.is_some_and(|pdr| pdr.select == Select::Before);
        let selected = match select {
            Some(select) => select(if before { weighted } else { values }),
            None => (0..values.len()).collect(),
        };
        if selected.is_empty() {
            return Err(ScoreError::NothingSelected);
        }
        let divisor = match (&weights, pdr) {
            (Some(weights), Some(pdr)) if pdr.normalize => selected.iter().map(|&index| weights[index]).sum(),
            _ => selected.len() as f64,
        };
        if divisor == 0.0 {
            return Err(ScoreError::ZeroWeight);
        }
        let terms = selected.into_iter().map(|index| (index, weighted[index])).collect();
        Ok(WeightedSum { weights, terms, divisor, selects: select.is_some() })
    }

    /// The mean over one more number, which is not 0.
    pub fn divided_by(self, number: f64) -> WeightedSum {
        WeightedSum { divisor: self.divisor * number, ..self }
    }

    /// The mean, which is finite.
    ///
    /// # Errors
    /// [`ScoreError::NonFinite`].
    pub fn quotient(&self) -> Result<f64, ScoreError> {
        let sum: f64 = self.terms.iter().map(|(_, term)| term).sum();
        let quotient = sum / self.divisor;
        if quotient.is_finite() { Ok(quotient) } else { Err(ScoreError::NonFinite) }
    }

    /// Breaks the mean down over n tokens.
    pub fn explanation(self, n: usize) -> Explanation {
        let mut contributions = vec![0.0; n];
        let mut selected = if self.selects { vec![false; n] } else { Vec::new() };
        for (index, term) in self.terms {
            // Adding 0 turns a negative zero, from a weight of 0, into a plain one.
            contributions[index] = term / self.divisor + 0.0;
            if self.selects {
                selected[index] = true;
            }
        }
        Explanation { contributions, selected, weights: self.weights.unwrap_or_default() }
    }
}
