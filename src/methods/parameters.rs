//! The parameters of each method: names, ranges and defaults, for whoever checks a request and for whoever lists them.

use super::name::MethodName;
use super::range::Range;

/// Weight of what members do to the text, in `con_recall`.
pub const GAMMA: Number = Number { range: Range::from_zero(), default: 0.5 };
/// Entropy in nats below which the model is sure, in `surp`.
pub const MAX_ENTROPY: Number = Number { range: Range::above_zero(), default: 2.0 };
/// The most that a token contributes, in `dc_pdd`.
pub const A: Number = Number { range: Range::above_zero(), default: 0.01 };
/// Tokens in a moving average, in `gap_k`; a whole number.
pub const WINDOW: Number = Number { range: Range::between(1.0, 64.0), default: 3.0 };
/// The most neighbours of a text; a whole number.
pub const COUNT: Number = Number { range: Range::between(1.0, MOST_NEIGHBORS as f64), default: 25.0 };
/// The most neighbours that a request may ask for.
pub const MOST_NEIGHBORS: usize = 200;
/// The most texts that may stand before a text.
pub const MAX_PREFIX_TEXTS: usize = 256;

/// What a number may be, and what it is if it is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// The values accepted.
    pub range: Range,
    /// The value if none is given.
    pub default: f64,
}

/// The parameters that a method takes beside those that all take (`truncate`, `pdr`, `label`).
pub fn of(name: MethodName) -> &'static [&'static str] {
    match name {
        MethodName::Loss | MethodName::Zlib | MethodName::Lowercase => &[],
        MethodName::Ref => &["reference"],
        MethodName::Neighbor => &["generator"],
        MethodName::MinK | MethodName::MinKPlusPlus => &["k"],
        MethodName::Recall => &["prefix", "align"],
        MethodName::ConRecall => &["non_members", "members", "gamma"],
        MethodName::GapK => &["k", "window"],
        MethodName::Surp => &["k", "max_entropy"],
        MethodName::DcPdd => &["counts", "a"],
    }
}
