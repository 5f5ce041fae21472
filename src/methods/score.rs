//! From a text's token statistics to a score, and to what each token contributes to it.
//!
//! Every method is one weighted sum over some of the tokens, divided by one number, so one path serves them all
//! with and without decay. That is why a decay of alpha 0 gives the base score bit for bit: it multiplies the
//! same terms by exactly 1 and adds them in the same order.

use super::method::{Base, Method};
use super::min_k::lowest;
use crate::token_stats::TokenStats;
use thiserror::Error;

/// What scoring needs to know of one text.
#[derive(Clone, Copy, Debug)]
pub struct TextStats<'a> {
    /// The scored tokens in order, n of them.
    pub tokens: &'a [TokenStats],
    /// [`zlib_bytes`](super::zlib_bytes) of the *full* text, whatever was cut off before scoring. Read only by
    /// methods that [need it](Method::needs_zlib).
    pub zlib_bytes: usize,
}

/// Why a method has no score for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ScoreError {
    /// n = 0.
    #[error("the text has no scored token: nothing precedes its first token, so it takes at least two")]
    TooShort,
    /// The sum of weights to divide by is 0.
    #[error("`normalize` divides by the sum of the selected tokens' weights, which is 0")]
    ZeroWeight,
    /// The method's denominator is 0.
    #[error("the score's denominator, the bytes of the compressed text, is 0")]
    ZeroDenominator,
    /// NaN or an infinity, in the token statistics or in the result.
    #[error("a log-probability, a moment or the score is not a finite number")]
    NonFinite,
}

impl ScoreError {
    /// The code that clients see.
    pub fn code(self) -> &'static str {
        match self {
            ScoreError::TooShort => "too_short",
            ScoreError::ZeroWeight => "zero_weight",
            ScoreError::ZeroDenominator => "zero_denominator",
            ScoreError::NonFinite => "non_finite",
        }
    }
}

/// The score of a text, always finite; higher: more likely a member.
///
/// For `loss` and `zlib` the unit is nats and nats per byte; `min_k` is in nats, `min_k_plus_plus` has none.
///
/// # Errors
///
/// See [`ScoreError`].
pub fn score(method: &Method, text: &TextStats) -> Result<f64, ScoreError> {
    WeightedSum::new(method, text)?.quotient()
}

/// What each scored token adds to the score: n numbers that sum to it up to rounding, 0 for a token that is not
/// selected or is truncated away.
///
/// # Errors
///
/// Those of [`score()`], in the same cases.
pub fn contributions(method: &Method, text: &TextStats) -> Result<Vec<f64>, ScoreError> {
    let sum = WeightedSum::new(method, text)?;
    sum.quotient()?;
    let mut contributions = vec![0.0; text.tokens.len()];
    for (index, term) in sum.terms {
        // Adding 0 turns a negative zero, from a weight of 0, into a plain one.
        contributions[index] = term / sum.divisor + 0.0;
    }
    Ok(contributions)
}

/// A score before its division.
struct WeightedSum {
    /// Index and weighted value of each selected token, in order.
    terms: Vec<(usize, f64)>,
    /// Never 0.
    divisor: f64,
}

impl WeightedSum {
    fn new(method: &Method, text: &TextStats) -> Result<WeightedSum, ScoreError> {
        let tokens = match method.truncate {
            Some(share) => &text.tokens[..share.of(text.tokens.len()).min(text.tokens.len())],
            None => text.tokens,
        };
        let n = tokens.len();
        if n == 0 {
            return Err(ScoreError::TooShort);
        }
        let values = raw_values(&method.base, tokens)?;
        // Selection looks at the raw values: a decay reweights what the method found, at its original position.
        let selected = lowest(&values, method.base.k().map_or(n, |k| k.of(n)));
        let weight = |index: usize| method.pdr.map_or(1.0, |pdr| pdr.weight(index + 1, n));
        let count = match method.pdr {
            Some(pdr) if pdr.normalize() => selected.iter().map(|&index| weight(index)).sum(),
            _ => selected.len() as f64,
        };
        if count == 0.0 {
            return Err(ScoreError::ZeroWeight);
        }
        let denominator = match method.base {
            Base::Zlib => text.zlib_bytes as f64,
            Base::Loss | Base::MinK { .. } | Base::MinKPlusPlus { .. } => 1.0,
        };
        if denominator == 0.0 {
            return Err(ScoreError::ZeroDenominator);
        }
        Ok(WeightedSum {
            terms: selected.into_iter().map(|index| (index, weight(index) * values[index])).collect(),
            divisor: count * denominator,
        })
    }

    fn quotient(&self) -> Result<f64, ScoreError> {
        let sum: f64 = self.terms.iter().map(|(_, term)| term).sum();
        let quotient = sum / self.divisor;
        if quotient.is_finite() { Ok(quotient) } else { Err(ScoreError::NonFinite) }
    }
}

/// The value that the method gives each token, before selection and weights; finite, because NaN has no place in
/// an order and would quietly stay unselected.
fn raw_values(base: &Base, tokens: &[TokenStats]) -> Result<Vec<f64>, ScoreError> {
    tokens
        .iter()
        .map(|token| {
            let value = match base {
                Base::Loss | Base::Zlib | Base::MinK { .. } => token.lp,
                // An infinite variance would pass for z = 0.
                Base::MinKPlusPlus { .. } if token.var.is_infinite() => f64::NAN,
                Base::MinKPlusPlus { .. } => token.z(),
            };
            if value.is_finite() { Ok(value) } else { Err(ScoreError::NonFinite) }
        })
        .collect()
}
