//! The sizes of blocks that products are divided into.

use std::ops::Range;

/// Maximum number of rows of a tile. Rows of activations are often a power of two apart; 8 of them still share the L1
/// cache.
pub(super) const ROWS: usize = 8;
/// Steps of k that are summed before they are added to the result: shorter chains round less. An even number.
pub(super) const CHAIN: usize = 512;

/// Splits `0..count` into ranges of at most `step`.
pub(super) fn blocks(count: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(step).map(move |start| start..(start + step).min(count))
}
