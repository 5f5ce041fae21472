//! Interface of the tile registers that compute products of tiles.

use crate::packed::matrix::PackedLine;
use crate::packed::target::Target;
use crate::packed::terms::Terms;
use std::ops::Range;

/// Tile registers of this thread, from their configuration until they are dropped.
pub trait TileMachine {
    /// Configures the registers for strips of `rows` rows, at most 32.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn configured(rows: usize) -> Self;

    /// Configures them anew, which clears them.
    fn configure(&mut self, rows: usize);

    /// Converts whole rows of k through some steps to strips. Rows that a tile lacks keep what is there; no result depends
    /// on them.
    ///
    /// # Safety
    /// The machine has the instructions, `lines` has room for the strips, and no other thread accesses them.
    unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>, terms: usize);

    /// Adds the products of a strip and a panel to sums.
    ///
    /// # Safety
    /// The pointers of the product reach as far as it says, and the registers are configured for its rows.
    unsafe fn multiply(&mut self, terms: Terms, product: &StripProduct);

    /// Writes the sums `[rows, 32]` of some columns to the target; past the caches if `stream`.
    ///
    /// # Safety
    /// The rows and columns are inside the allocation of the target, and no other thread accesses them. Results are
    /// streamed only where `target.out` and the rows are aligned to 64 bytes, and replace what is there.
    unsafe fn store(target: Target, sums: *const f32, rows: usize, columns: usize, stream: bool);
}

/// The product of a strip and a panel through some steps of k.
pub struct StripProduct<'a> {
    /// The strip at the first step.
    pub x: *const PackedLine,
    /// The panel at the first step.
    pub w: *const PackedLine,
    /// Sums `[rows, 32]` with room for 32 rows.
    pub sums: *mut f32,
    /// At least one.
    pub steps: usize,
    pub rows: usize,
    /// True if the sums begin with zero instead of with the existing values.
    pub first: bool,
    /// Where the sums will be stored next, if they are.
    pub results: Option<Target<'a>>,
    /// Lines to prefetch into the L2 cache meanwhile, `lines_ahead` at each step.
    pub ahead: *const PackedLine,
    pub lines_ahead: usize,
}
