//! Building blocks of the formulas of the methods.
//!
//! Every method is made of means over tokens, each one weighted sum divided by one number ([`WeightedSum`]): most methods
//! are one such mean, some a difference or a ratio of means over several texts. So one path serves them all with and
//! without weights, and an alpha of 0 gives the base score bit for bit: it multiplies the same terms by exactly 1 and
//! adds them in the same order.
//!
//! The values that a method gives tokens are finite: NaN has no place in an order and would quietly stay unselected.

use super::auxiliary_pass::{AuxiliaryPass, AuxiliaryPassError, AuxiliaryStats};
use super::pdr::{Pdr, Select, WeightContext};
use super::range::Fraction;
use super::token_counts::{NamedCounts, TokenCounts};
use crate::TokenStats;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// Why a method has no score for a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScoreError {
    /// n = 0.
    #[error("the text has no scored token: nothing precedes its first token, so it takes at least two")]
    TooShort,
    /// The text of an auxiliary pass has no scored token.
    #[error("another text that the method scores, made from this one, has no scored token")]
    AuxiliaryTooShort,
    /// The sum of weights to divide by is 0.
    #[error("`normalize` divides by the sum of the selected tokens' weights, which is 0")]
    ZeroWeight,
    /// The method's denominator is 0.
    #[error("the score's denominator, {0}, is 0")]
    ZeroDenominator(&'static str),
    /// The method selects no token of the text.
    #[error("no token is both unlikely and at a position where the model was sure")]
    NothingSelected,
    /// NaN or an infinity, in the token statistics or in the result.
    #[error("a log-probability, a moment or the score is not a finite number")]
    NonFinite,
    /// An auxiliary pass of the text has no statistics.
    #[error("{}", .0.detail)]
    AuxiliaryPass(AuxiliaryPassError),
    /// A broken invariant of the service itself.
    #[error("internal error: {0}")]
    Internal(&'static str),
}

impl ScoreError {
    /// The code that clients see.
    pub fn code(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            ScoreError::TooShort | ScoreError::AuxiliaryTooShort => "too_short",
            ScoreError::ZeroWeight => "zero_weight",
            ScoreError::ZeroDenominator(_) => "zero_denominator",
            ScoreError::NothingSelected => "nothing_selected",
            ScoreError::NonFinite => "non_finite",
            ScoreError::AuxiliaryPass(error) => return error.code.clone(),
            ScoreError::Internal(_) => "internal",
        })
    }
}

/// The statistics of one text, and all else that scores are computed from.
#[derive(Clone, Copy)]
pub struct TextStats<'a> {
    /// The scored tokens in order, n of them.
    pub tokens: &'a [TokenStats],
    /// Their ids, n of them. Read only by `dc_pdd`.
    pub ids: &'a [u32],
    /// [`zlib_bytes`](crate::methods::zlib_bytes) of the *full* text, whatever was cut off before scoring. Called only by
    /// `zlib`, which may do so several times.
    pub zlib_bytes: &'a dyn Fn() -> usize,
    /// The statistics of the auxiliary passes that the methods need.
    pub passes: &'a [(AuxiliaryPass, AuxiliaryStats)],
    pub token_counts: &'a [NamedCounts],
    /// Context of the weights.
    pub context: WeightContext<'a>,
}

/// Outcome of a formula.
#[derive(Debug)]
pub enum Outcome {
    /// A sum over the text's own scored tokens, so that each token contributes to the score.
    Sum(WeightedSum),
    /// Another number, such as a ratio of means over several texts.
    Value(f64),
}

/// A text, with the truncation and the weights of the method that scores it.
#[derive(Clone, Copy)]
pub struct FormulaInput<'a> {
    pub text: &'a TextStats<'a>,
    /// Share of the scored tokens, from the first, that is used; `None`: all of them.
    pub truncate: Option<Fraction>,
    pub pdr: Option<Pdr>,
}

impl<'a> FormulaInput<'a> {
    /// The text's scored tokens that truncation leaves; at least one.
    pub fn tokens(&self) -> Result<&'a [TokenStats], ScoreError> {
        let tokens = self.truncated(self.text.tokens);
        if tokens.is_empty() { Err(ScoreError::TooShort) } else { Ok(tokens) }
    }

    /// The tokens that truncation leaves.
    pub fn truncated<'t>(&self, tokens: &'t [TokenStats]) -> &'t [TokenStats] {
        match self.truncate {
            Some(share) => &tokens[..share.count(tokens.len()).min(tokens.len())],
            None => tokens,
        }
    }

    /// The weighted mean over all `values` of the text's tokens.
    pub fn sum(&self, values: &[f64]) -> Result<WeightedSum, ScoreError> {
        WeightedSum::new(self.pdr, values, self.tokens()?, &self.text.context, None)
    }

    /// The weighted mean over those of the text's `values` whose indices `select` gives, in ascending order.
    pub fn sum_of_selected(
        &self,
        values: &[f64],
        select: impl Fn(&[f64]) -> Vec<usize>,
    ) -> Result<WeightedSum, ScoreError> {
        WeightedSum::new(self.pdr, values, self.tokens()?, &self.text.context, Some(&select))
    }

    /// The weighted mean over the lowest share `k` of the text's `values`.
    pub fn sum_of_lowest(&self, values: &[f64], k: Fraction) -> Result<WeightedSum, ScoreError> {
        self.sum_of_selected(values, |values| lowest(values, k.count(values.len())))
    }

    /// The weighted mean log-probability of the text.
    pub fn mean(&self) -> Result<f64, ScoreError> {
        self.mean_of(self.text.tokens)
    }

    /// The weighted mean log-probability of a sequence, with its own n.
    pub fn mean_of(&self, tokens: &[TokenStats]) -> Result<f64, ScoreError> {
        let tokens = self.truncated(tokens);
        if tokens.is_empty() {
            let short = self.text.tokens.is_empty();
            return Err(if short { ScoreError::TooShort } else { ScoreError::AuxiliaryTooShort });
        }
        let values = log_probabilities(tokens)?;
        WeightedSum::new(self.pdr, &values, tokens, &self.text.context, None)?.quotient()
    }

    /// The mean log-probability of the text, to divide by.
    pub fn denominator(&self) -> Result<f64, ScoreError> {
        let mean = self.mean()?;
        if mean == 0.0 { Err(ScoreError::ZeroDenominator("the mean log-probability of the text")) } else { Ok(mean) }
    }

    /// The statistics of the sequences of an auxiliary pass; at least one.
    pub fn pass(&self, pass: &AuxiliaryPass) -> Result<&'a [Arc<[TokenStats]>], ScoreError> {
        if self.text.tokens.is_empty() {
            return Err(ScoreError::TooShort);
        }
        match self.text.passes.iter().find(|(known, _)| known == pass) {
            Some((_, Ok(sequences))) if !sequences.is_empty() => Ok(sequences),
            Some((_, Ok(_))) => Err(ScoreError::AuxiliaryTooShort),
            Some((_, Err(error))) => Err(ScoreError::AuxiliaryPass(error.clone())),
            None => Err(ScoreError::Internal("an auxiliary pass of the method was not planned")),
        }
    }

    /// The statistics of an auxiliary pass over one sequence.
    pub fn sequence(&self, pass: &AuxiliaryPass) -> Result<&'a [TokenStats], ScoreError> {
        self.pass(pass)?.first().map(|tokens| &**tokens).ok_or(ScoreError::AuxiliaryTooShort)
    }

    /// The token counts of this id.
    pub fn token_counts(&self, id: &str) -> Result<&'a TokenCounts, ScoreError> {
        let counts = self.text.token_counts.iter().find(|counts| *counts.id == *id);
        counts
            .map(|counts| &*counts.table)
            .ok_or(ScoreError::Internal("the token counts of the method are not at hand"))
    }
}

/// The log-probabilities.
pub fn log_probabilities(tokens: &[TokenStats]) -> Result<Vec<f64>, ScoreError> {
    finite(tokens.iter().map(|token| token.lp))
}

/// The values, all of them finite.
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
