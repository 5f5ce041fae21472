//! Ranges that parameters must lie in, and the share of a sequence.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use utoipa::ToSchema;

/// An interval of finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct Range {
    /// Lower end.
    pub minimum: f64,
    /// True if the lower end is excluded.
    pub exclusive_minimum: bool,
    /// Upper end, always inside; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
}

impl Range {
    /// `[0, inf)`.
    pub(super) const fn from_zero() -> Range {
        Range { minimum: 0.0, exclusive_minimum: false, maximum: None }
    }

    /// `(0, inf)`.
    pub(super) const fn above_zero() -> Range {
        Range { minimum: 0.0, exclusive_minimum: true, maximum: None }
    }

    /// `[minimum, maximum]`.
    pub(super) const fn between(minimum: f64, maximum: f64) -> Range {
        Range { minimum, exclusive_minimum: false, maximum: Some(maximum) }
    }

    /// Returns true if `value` is finite and inside.
    pub fn contains(&self, value: f64) -> bool {
        let above = if self.exclusive_minimum { value > self.minimum } else { value >= self.minimum };
        above && value.is_finite() && self.maximum.is_none_or(|maximum| value <= maximum)
    }
}

/// Mathematical notation: `(0, 1]`, `[0, inf)`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.exclusive_minimum { '(' } else { '[' };
        match self.maximum {
            Some(maximum) => write!(f, "{open}{}, {maximum}]", self.minimum),
            None => write!(f, "{open}{}, inf)", self.minimum),
        }
    }
}

/// A share of a sequence, in (0, 1].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "f64")]
pub struct Fraction(f64);

// It is never NaN, and never a zero of either sign.
impl Eq for Fraction {}

impl Hash for Fraction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl TryFrom<f64> for Fraction {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        Fraction::new(value).ok_or_else(|| format!("{value:?} is outside {}", Fraction::RANGE))
    }
}

impl Fraction {
    /// Values that [`Fraction::new`] accepts.
    pub const RANGE: Range = Range { minimum: 0.0, exclusive_minimum: true, maximum: Some(1.0) };

    /// The default share of Min-K% and Min-K%++ (Shi et al. 2024).
    pub(super) const FIFTH: Fraction = Fraction(0.2);

    /// A share of Min-K% that tells how clean a text is.
    pub(super) const TWENTIETH: Fraction = Fraction(0.05);

    /// A share of Min-K% between the others that dataset inference combines.
    pub(super) const TENTH: Fraction = Fraction(0.1);

    /// The default share of SURP.
    pub(super) const TWO_FIFTHS: Fraction = Fraction(0.4);

    /// `None` if `value` is outside [`Fraction::RANGE`].
    pub fn new(value: f64) -> Option<Fraction> {
        Self::RANGE.contains(value).then_some(Fraction(value))
    }

    pub const fn get(self) -> f64 {
        self.0
    }

    /// Returns the number of tokens in this share of `n`: `max(1, int(n * ratio))`, as the reference implementation of
    /// Min-K%++ computes it. In `f64` throughout: an `f32` ratio gives another count for 0.7 and 0.9.
    pub fn count(self, n: usize) -> usize {
        ((n as f64 * self.0) as usize).max(1)
    }
}

/// A number as labels write it: its digits, with an exponent where there would be many zeros.
pub(super) fn format_number(number: f64) -> String {
    if number == 0.0 || (1e-5..1e16).contains(&number.abs()) { number.to_string() } else { format!("{number:e}") }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_number(self.0))
    }
}
