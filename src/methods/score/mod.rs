//! From a text's statistics to a score, and to what each token contributes to it.
//!
//! Every method is made of means over tokens, each one weighted sum divided by one number ([`sum`]): most methods are
//! one such mean, some a difference or a ratio of means over views of the text. So one path serves them all with and
//! without weights, and an alpha of 0 gives the base score bit for bit: it multiplies the same terms by exactly 1 and
//! adds them in the same order.

mod sum;
mod values;

use super::base::{Align, Base, Reading};
use super::method::Method;
use super::slope::slope;
use super::view::{Seen, Unseen, View};
use super::weighting::{Surroundings, Weighting};
use crate::token_stats::TokenStats;
use std::borrow::Cow;
use std::sync::Arc;
use sum::WeightedSum;
use thiserror::Error;

/// What scoring needs to know of one text.
#[derive(Clone, Copy, Debug)]
pub struct TextStats<'a> {
    /// The scored tokens in order, n of them.
    pub tokens: &'a [TokenStats],
    /// Their ids, n of them. Read only by `dc_pdd`.
    pub ids: &'a [u32],
    /// [`zlib_bytes`](super::zlib_bytes) of the *full* text, whatever was cut off before scoring. Read only by
    /// methods that [need it](Method::needs_zlib).
    pub zlib_bytes: usize,
    /// What methods look at beside the text itself, by [`Base::views`].
    pub views: &'a [(View, Seen)],
    /// What weights may depend on.
    pub around: Surroundings<'a>,
}

/// Why a method has no score for a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScoreError {
    /// n = 0.
    #[error("the text has no scored token: nothing precedes its first token, so it takes at least two")]
    TooShort,
    /// A view of the text has no scored token.
    #[error("what the method makes of the text has no scored token")]
    ViewTooShort,
    /// The sum of weights to divide by is 0.
    #[error("`normalize` divides by the sum of the selected tokens' weights, which is 0")]
    ZeroWeight,
    /// The method's denominator is 0.
    #[error("the score's denominator, {0}, is 0")]
    ZeroDenominator(&'static str),
    /// No token is what the method looks at.
    #[error("no token is both unlikely and at a position where the model was sure")]
    NothingSelected,
    /// NaN or an infinity, in the token statistics or in the result.
    #[error("a log-probability, a moment or the score is not a finite number")]
    NonFinite,
    /// A view of the text has no statistics.
    #[error("{}", .0.detail)]
    Unseen(Unseen),
}

impl ScoreError {
    /// The code that clients see.
    pub fn code(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            ScoreError::TooShort | ScoreError::ViewTooShort => "too_short",
            ScoreError::ZeroWeight => "zero_weight",
            ScoreError::ZeroDenominator(_) => "zero_denominator",
            ScoreError::NothingSelected => "nothing_selected",
            ScoreError::NonFinite => "non_finite",
            ScoreError::Unseen(unseen) => return unseen.code.clone(),
        })
    }
}

/// The score of a text, always finite; higher: more likely a member.
///
/// `loss`, `ref`, `neighbor`, `min_k` and `surp` are in nats, `zlib` in nats per byte; the others have no unit.
///
/// # Errors
///
/// See [`ScoreError`].
pub fn score(method: &Method, text: &TextStats) -> Result<f64, ScoreError> {
    let score = match &method.base {
        Base::Ref { reading: Reading::OwnIds, .. } => {
            let reference = view_means(method, text, 0)?;
            mean(method, text, text.tokens)? - reference[0]
        }
        Base::Lowercase => {
            let lower = view_means(method, text, 0)?;
            lower[0] / denominator(mean(method, text, text.tokens)?)?
        }
        Base::Neighbor { .. } => {
            let neighbors = view_means(method, text, 0)?;
            mean(method, text, text.tokens)? - neighbors.iter().sum::<f64>() / neighbors.len() as f64
        }
        Base::Recall { align, .. } => {
            let given = given(method, text, 0, *align)?;
            given / denominator(mean(method, text, text.tokens)?)?
        }
        Base::ConRecall { gamma, .. } => {
            let given = |index| given(method, text, index, Align::Official);
            let (non_members, members) = (given(0)?, given(1)?);
            (non_members - gamma * members) / denominator(mean(method, text, text.tokens)?)?
        }
        _ => own_sum(method, text)?.quotient()?,
    };
    if score.is_finite() { Ok(score) } else { Err(ScoreError::NonFinite) }
}

/// How a text's tokens make up a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What each of the n scored tokens adds to the score: they sum to it up to rounding; 0 for a token that is not
    /// selected or is truncated away.
    pub contributions: Vec<f64>,
    /// Whether each was selected; empty for a method that uses every token.
    pub selected: Vec<bool>,
    /// The weight of each, truncated ones left out; empty where all weigh the same.
    pub weights: Vec<f64>,
}

/// How the score comes about. None for a method that is [no sum](Base::is_a_sum) over the text's own tokens.
///
/// # Errors
///
/// Those of [`score()`], in the same cases; and [`ScoreError::NonFinite`] where a weight is not finite.
pub fn explain(method: &Method, text: &TextStats) -> Result<Option<Explanation>, ScoreError> {
    if !method.base.is_a_sum() {
        return Ok(None);
    }
    let sum = own_sum(method, text)?;
    sum.quotient()?;
    let explanation = sum.explanation(text.tokens.len(), method.base.k().is_some());
    // The score does not know the weights of tokens that are not selected.
    let numbers = explanation.contributions.iter().chain(&explanation.weights);
    if numbers.copied().all(f64::is_finite) { Ok(Some(explanation)) } else { Err(ScoreError::NonFinite) }
}

/// The alpha that the weighting `slope` used on this text; None for any other weighting.
pub fn alpha_used(method: &Method, text: &TextStats) -> Option<f64> {
    method.pdr.filter(|pdr| pdr.weighting == Weighting::Slope)?;
    Some(slope(kept(method, text.tokens))).filter(|slope| slope.is_finite())
}

/// The tokens that `truncate` leaves.
fn kept<'a>(method: &Method, tokens: &'a [TokenStats]) -> &'a [TokenStats] {
    match method.truncate {
        Some(share) => &tokens[..share.of(tokens.len()).min(tokens.len())],
        None => tokens,
    }
}

/// The sum that a method over the text's own tokens is.
fn own_sum(method: &Method, text: &TextStats) -> Result<WeightedSum, ScoreError> {
    let tokens = kept(method, text.tokens);
    if tokens.is_empty() {
        return Err(ScoreError::TooShort);
    }
    let values = values::of(method, text, tokens)?;
    let sum = WeightedSum::new(method, &values, tokens, &text.around)?;
    match method.base {
        Base::Zlib if text.zlib_bytes == 0 => Err(ScoreError::ZeroDenominator("the bytes of the compressed text")),
        Base::Zlib => Ok(sum.divided_by(text.zlib_bytes as f64)),
        _ => Ok(sum),
    }
}

/// The weighted mean of the log-probabilities of a sequence, with its own n.
fn mean(method: &Method, text: &TextStats, tokens: &[TokenStats]) -> Result<f64, ScoreError> {
    let tokens = kept(method, tokens);
    if tokens.is_empty() {
        return Err(if text.tokens.is_empty() { ScoreError::TooShort } else { ScoreError::ViewTooShort });
    }
    let values = values::log_probabilities(tokens)?;
    WeightedSum::new(method, &values, tokens, &text.around)?.quotient()
}

fn denominator(mean: f64) -> Result<f64, ScoreError> {
    if mean == 0.0 { Err(ScoreError::ZeroDenominator("the mean log-probability of the text")) } else { Ok(mean) }
}

/// The statistics of the method's view at `index`.
fn view<'a>(method: &Method, text: &TextStats<'a>, index: usize) -> Result<&'a [Arc<[TokenStats]>], ScoreError> {
    let wanted = method.base.views().into_iter().nth(index);
    match text.views.iter().find(|(view, _)| Some(view) == wanted.as_ref()) {
        Some((_, Ok(seen))) if !seen.is_empty() => Ok(seen),
        Some((_, Err(unseen))) => Err(ScoreError::Unseen(unseen.clone())),
        // Whoever asks for a score gives what its views are.
        Some((_, Ok(_))) | None => Err(ScoreError::ViewTooShort),
    }
}

/// The means of the sequences of the method's view at `index`; at least one.
fn view_means(method: &Method, text: &TextStats, index: usize) -> Result<Vec<f64>, ScoreError> {
    if text.tokens.is_empty() {
        return Err(ScoreError::TooShort);
    }
    view(method, text, index)?.iter().map(|tokens| mean(method, text, tokens)).collect()
}

/// The mean of the text's tokens given the texts of the method's view at `index`.
fn given(method: &Method, text: &TextStats, index: usize, align: Align) -> Result<f64, ScoreError> {
    if text.tokens.is_empty() {
        return Err(ScoreError::TooShort);
    }
    let tokens = view(method, text, index)?.first().map_or(&[][..], |tokens| tokens);
    // What the prefix alone gives a probability to stands at the front.
    let more = match align {
        Align::Shared => tokens.len().saturating_sub(text.tokens.len()),
        Align::Official => 0,
    };
    mean(method, text, &tokens[more..])
}
