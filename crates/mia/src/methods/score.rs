//! From a text's statistics to a score, and to what each token contributes to it.

use super::formula::{Explanation, FormulaInput, Outcome, ScoreError, TextStats};
use super::method::Method;
use super::pdr::{Weighting, slope};

/// The score of a text, always finite; higher: more likely a member.
///
/// `loss`, `ref`, `neighbor`, `min_k` and `surp` are in nats, `zlib` in nats per byte; the others have no unit.
pub fn score(method: &Method, text: &TextStats) -> Result<f64, ScoreError> {
    let score = match method.base.evaluate(&input(method, text))? {
        Outcome::Sum(sum) => sum.quotient()?,
        Outcome::Value(value) => value,
    };
    if score.is_finite() { Ok(score) } else { Err(ScoreError::NonFinite) }
}

/// Breaks the score down by token. `None` for a method that is no sum over the text's own tokens.
///
/// # Errors
///
/// Those of [`score()`], in the same cases; and [`ScoreError::NonFinite`] where a weight is not finite.
pub fn explain(method: &Method, text: &TextStats) -> Result<Option<Explanation>, ScoreError> {
    let Outcome::Sum(sum) = method.base.evaluate(&input(method, text))? else { return Ok(None) };
    sum.quotient()?;
    let explanation = sum.explanation(text.tokens.len());
    // The score does not know the weights of tokens that are not selected.
    let numbers = explanation.contributions.iter().chain(&explanation.weights);
    if numbers.copied().all(f64::is_finite) { Ok(Some(explanation)) } else { Err(ScoreError::NonFinite) }
}

/// The alpha that the weighting `slope` used on this text; None for any other weighting.
pub fn alpha_used(method: &Method, text: &TextStats) -> Option<f64> {
    method.pdr.filter(|pdr| pdr.weighting == Weighting::Slope)?;
    Some(slope(input(method, text).truncated(text.tokens))).filter(|slope| slope.is_finite())
}

fn input<'a>(method: &Method, text: &'a TextStats<'a>) -> FormulaInput<'a> {
    FormulaInput { text, truncate: method.truncate, pdr: method.pdr }
}
