//! Why a method has no score for a text.

use crate::methods::auxiliary_pass::AuxiliaryPassError;
use std::borrow::Cow;
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
