//! Products with weights that were packed once, when they were loaded.
//!
//! `gemm` packs both matrices at every call, which is most of the work where a text of a few dozen tokens is multiplied.
//! Here the weights lie as the kernel reads them, in the type they were saved in: f16 and bf16 become f32 in registers,
//! exactly, so that they take half the memory and give the very bits that f32 weights would.
//!
//! There are two kinds of [`Products`]: f32, and bf16 by the instruction that AVX512-BF16 has for it, at twice the rate.
//! f32 made of bf16 products (each activation split into two terms) is *not* among them: it takes two instructions of twice
//! the rate, gains nothing where weights are packed, and gives less exact results. No library does this: oneDNN must be
//! installed beside the program, and the crates pack at every call and do not know AVX512-BF16.
//!
//! Every result is made of chains of sums over `CHAIN` steps of k, from first to last, whatever rows, columns and threads
//! are computed beside it, with the same bits in `avx512` and `scalar`. In f32 they are of fused multiply-adds.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod pack;
mod rows;
mod scalar;
#[cfg(test)]
mod tests;

pub use pack::{Matrix, Packed, packed_bytes};
pub use rows::Rows;

use super::SharedMut;
use super::simd::Level;
use rayon::prelude::*;
use std::ops::Range;

/// Columns of a panel, three vectors of AVX-512. With `ROWS` the sums of a tile fill 24 of its 32 registers.
pub const COLUMNS: usize = 48;
/// Most rows of a tile. Rows of activations often stand a power of two apart; 8 of them still share the nearest cache.
const ROWS: usize = 8;
/// Steps of k that are summed before they are added to the result: shorter chains round less. An even number.
const CHAIN: usize = 512;
/// Bytes of activations that stay in the second cache while panels pass by.
const ACTIVATIONS: usize = 512 << 10;
/// Parts for each thread, so that none waits long for the last.
const PARTS: usize = 16;

/// How products are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// In f32, with weights as they are.
    F32,
    /// Of activations and weights rounded to bf16, summed in f32.
    Bf16,
}

/// The instructions that a product runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512, and AVX512-BF16 for [`Products::Bf16`].
    Avx512,
    /// Any machine's: the definition, too slow for more than tests.
    Scalar,
}

impl Isa {
    /// The fastest that this machine has within a level; none where packing does not pay.
    pub fn best(products: Products, level: Level) -> Option<Self> {
        (level >= Level::Avx512 && Self::Avx512.runs(products)).then_some(Self::Avx512)
    }

    /// Those of this machine, from the slowest.
    pub fn available(products: Products) -> Vec<Self> {
        [Self::Scalar, Self::Avx512].into_iter().filter(|isa| isa.runs(products)).collect()
    }

    /// Whether this machine has them.
    pub fn runs(self, products: Products) -> bool {
        match (self, products) {
            (Self::Scalar, _) => true,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, Products::F32) => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, Products::Bf16) => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16")
            }
            #[cfg(not(target_arch = "x86_64"))]
            (Self::Avx512, _) => false,
        }
    }
}

/// Where results go: rows `stride` apart, added to what is there or not.
#[derive(Clone, Copy)]
struct Target {
    out: SharedMut,
    stride: usize,
    accumulate: bool,
}

/// Rows of activations and panels of weights to be multiplied.
struct Part {
    rows: Range<usize>,
    panels: Range<usize>,
}

/// At most [`ROWS`] rows against one panel, whose first `columns` results are wanted.
struct Tile<'a> {
    weights: &'a Packed,
    x: &'a Rows<'a>,
    rows: Range<usize>,
    panel: usize,
    columns: usize,
}

impl Packed {
    /// `out = x w^T` or, with `accumulate`, `out += x w^T`, for x `[m, k]` and out `[m, n]`, on the threads of the pool.
    ///
    /// # Panics
    /// Where x or out has not that shape: a mistake in this layer, not in a request.
    pub fn multiply(&self, out: &mut [f32], x: &[f32], accumulate: bool) {
        let x = &self.rows(x);
        assert!(out.len() == x.count() * self.n, "packed: shape beyond its data");
        let target = Target { out: SharedMut(out.as_mut_ptr()), stride: self.n, accumulate };
        // SAFETY: the parts are disjoint, and the assertion keeps every row and column of them inside `out`.
        self.parts(x.count()).into_par_iter().with_max_len(1).for_each(|part| unsafe { self.fill(target, x, &part) });
    }

    /// As [`Packed::multiply`] for some of the panels, on this thread: out is `[m, columns of the panels]`.
    ///
    /// # Panics
    /// As [`Packed::multiply`].
    pub fn multiply_panels(&self, out: &mut [f32], x: &Rows, panels: Range<usize>, accumulate: bool) {
        let columns = self.columns(panels.clone());
        assert!(x.fits(self) && out.len() == x.count() * columns.len(), "packed: shape beyond its data");
        // The columns of a target are those of all weights; `out` begins at the first of these panels.
        let first = SharedMut(out.as_mut_ptr().wrapping_sub(columns.start));
        let target = Target { out: first, stride: columns.len(), accumulate };
        for rows in blocks(x.count(), self.rows_in_cache()) {
            // SAFETY: `out` has a place for every row and column, as asserted, and is borrowed mutably.
            unsafe { self.fill(target, x, &Part { rows, panels: panels.clone() }) };
        }
    }

    /// Disjoint parts that make up a product of so many rows, enough of them to keep every thread busy.
    fn parts(&self, rows: usize) -> Vec<Part> {
        let of_rows: Vec<_> = blocks(rows, self.rows_in_cache()).collect();
        let cuts = (PARTS * rayon::current_num_threads()).div_ceil(of_rows.len().max(1));
        let width = self.panels().div_ceil(cuts).max(1);
        let with_panels =
            |rows: Range<usize>| blocks(self.panels(), width).map(move |panels| Part { rows: rows.clone(), panels });
        of_rows.into_iter().flat_map(with_panels).collect()
    }

    /// Rows of activations that fit the second cache, in whole tiles.
    fn rows_in_cache(&self) -> usize {
        (ACTIVATIONS / (4 * ROWS * self.k.max(1))).clamp(1, 16) * ROWS
    }

    /// # Safety
    /// The results of the part lie inside the allocation of `target`, and no other thread touches them.
    unsafe fn fill(&self, target: Target, x: &Rows, part: &Part) {
        for panel in part.panels.clone() {
            let columns = self.columns(panel..panel + 1);
            for row in part.rows.clone().step_by(ROWS) {
                let rows = row..(row + ROWS).min(part.rows.end);
                let out = SharedMut(target.out.0.wrapping_add(row * target.stride + columns.start));
                let tile = Tile { weights: self, x, rows, panel, columns: columns.len() };
                // SAFETY: the caller's promise covers the rows and columns of the tile.
                unsafe { self.fill_tile(Target { out, ..target }, &tile) };
            }
        }
    }

    /// # Safety
    /// As [`Packed::fill`], where the target begins at the first result of the tile.
    unsafe fn fill_tile(&self, target: Target, tile: &Tile) {
        match self.isa {
            // SAFETY: the caller's promise; packing refuses instructions that are not there.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::fill(target, tile) },
            // SAFETY: the caller's promise.
            _ => unsafe { scalar::fill(target, tile) },
        }
    }
}

/// `0..count` in ranges of at most `step`.
fn blocks(count: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(step).map(move |start| start..(start + step).min(count))
}
