//! Products in the tile registers of AMX, f32 in and out.
//!
//! The tiles multiply bf16 only, at twenty times the rate of f32 in vectors. An f32 is a sum of bf16 terms, and a product of
//! two f32 a sum of products of terms ([`Terms`]), all of them added to the same sums in tile registers.
//!
//! - A *tile* is 16 rows of 64 bytes. A *step* is 32 of the k, one tile wide.
//! - A *panel* is 32 columns of the weights. For each step it has the terms, and for each term two tiles of 16 columns;
//!   a row of a tile holds two of the k, side by side for each column.
//! - A *strip* is 32 rows of activations, or 16 where no more are left. For each step it has the terms, and for each term a
//!   tile of every 16 rows; a row of a tile holds 32 of the k.
//! - A *piece* is the steps whose activations stay in the L2 cache, and a *cut* those whose weights stay in the L1 cache.
//!
//! Sums are f32 in registers as in memory, and are carried from cut to cut, so that blocking changes no bit. The results of a
//! row are independent of the rows, columns and threads that are computed with it, with the same bits on
//! [`Isa::Amx`](super::Isa::Amx) and [`Isa::AmxEmulated`](super::Isa::AmxEmulated). An infinite activation gives NaN where it is split, and so does one above 3.39e38, which bf16 rounds to
//! infinity; never a finite number.

#[cfg(any(test, feature = "emulated-tiles"))]
mod emulated;
#[cfg(target_arch = "x86_64")]
mod hardware;
#[cfg(target_arch = "x86_64")]
mod kernels;
mod machine;
mod machines;
mod multiply;
mod part;
mod strips;
mod terms;
#[cfg(test)]
mod tests;
mod weights;

#[cfg(any(test, feature = "emulated-tiles"))]
pub use emulated::Emulated;
#[cfg(target_arch = "x86_64")]
pub use hardware::Tiles;
pub(super) use machines::by_machine;
pub use multiply::{multiply, multiply_panels};
pub use strips::Strips;
pub use terms::Terms;
pub use weights::{lines_of_step, pack, value};

const TILE_ROWS: usize = 16;
/// The k of a step.
const STEP: usize = 32;
/// Columns of a panel of weights: two tiles.
pub const COLUMNS: usize = 32;
/// Rows of a strip of activations: two tiles.
const STRIP: usize = 32;
/// Maximum number of rows of a block: the weights are read from memory once for each block.
pub const ROWS: usize = 256;
/// Bytes of converted rows that stay in the L2 cache.
const ACTIVATIONS: usize = 1 << 20;

/// The steps of k; one of zeros where k is 0.
pub fn steps(k: usize) -> usize {
    k.div_ceil(STEP).max(1)
}

/// An upper bound of the bytes that a thread keeps for products with up to `n` outputs: converted rows, and sums of a block.
pub const fn scratch_bytes(n: usize) -> usize {
    ROWS.saturating_mul(n).saturating_mul(size_of::<f32>()).saturating_add(ACTIVATIONS)
}
