//! What scoring needs to know of one text.

use crate::TokenStats;
use crate::methods::auxiliary_pass::{AuxiliaryPass, AuxiliaryStats};
use crate::methods::pdr::WeightContext;
use crate::methods::token_counts::NamedCounts;

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
    /// The token counts that the methods name.
    pub token_counts: &'a [NamedCounts],
    /// What weights may depend on.
    pub context: WeightContext<'a>,
}
