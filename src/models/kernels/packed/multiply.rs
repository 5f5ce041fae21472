//! Divides products into tiles and distributes them over threads.

use super::amx;
#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::blocking::{ROWS, blocks};
use super::isa::Isa;
use super::pack::{Layout, Packed};
use super::rows::{Rows, Values};
use super::scalar;
use super::tile::{Target, Tile};
use crate::models::kernels::shared_mut::SharedMut;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of activations that stay in the L2 cache while panels are multiplied.
const ACTIVATIONS: usize = 512 << 10;
/// Parts per thread, so that no thread waits long for the last one.
const PARTS: usize = 16;

/// Evaluates an expression for the tile registers of an instruction set that has some.
macro_rules! by_machine {
    ($isa:expr, $machine:ident => $result:expr) => {
        match $isa {
            #[cfg(target_arch = "x86_64")]
            $crate::models::kernels::packed::Isa::Amx => {
                type $machine = $crate::models::kernels::packed::amx::Tiles;
                $result
            }
            _ => {
                type $machine = $crate::models::kernels::packed::amx::Emulated;
                $result
            }
        }
    };
}
pub(super) use by_machine;

/// Rows of activations and panels of weights to be multiplied.
struct ProductPart {
    rows: Range<usize>,
    panels: Range<usize>,
}

impl Packed {
    /// `out = x w^T` or, with `accumulate`, `out += x w^T`, for x `[m, k]` and out `[m, n]`, on the threads of the
    /// pool.
    ///
    /// # Panics
    /// If x or out does not have that shape: an error of the caller, never of a request.
    pub fn multiply(&self, out: &mut [f32], x: &[f32], accumulate: bool) {
        let k = self.k.max(1);
        assert!(x.len().is_multiple_of(k) && out.len() == x.len() / k * self.n, "packed: shape beyond its data");
        let target = Target { out: SharedMut(out.as_mut_ptr()), stride: self.n, accumulate };
        if let Layout::Tiles(_) = self.layout {
            // SAFETY: the assertion keeps all rows and columns inside `out`, which is borrowed mutably; packing refuses
            // instructions that are not available.
            return by_machine!(self.isa, M => unsafe { amx::multiply::<M>(self, target, x) });
        }
        let x = &self.rows(x);
        // SAFETY: the parts are disjoint, and the assertion keeps all of their rows and columns inside `out`.
        self.parts(x.count()).into_par_iter().with_max_len(1).for_each(|part| unsafe { self.fill(target, x, &part) });
    }

    /// Like [`Packed::multiply`] for some of the panels, on this thread: out is `[m, columns of the panels]`.
    ///
    /// # Panics
    /// As for [`Packed::multiply`].
    pub fn multiply_panels(&self, out: &mut [f32], x: &Rows, panels: Range<usize>, accumulate: bool) {
        let columns = self.columns(panels.clone());
        assert!(x.fits(self) && out.len() == x.count() * columns.len(), "packed: shape beyond its data");
        // The columns of a target are those of all weights; `out` begins at the first of these panels.
        let first = SharedMut(out.as_mut_ptr().wrapping_sub(columns.start));
        let target = Target { out: first, stride: columns.len(), accumulate };
        if let Values::Strips(strips) = &x.values {
            // SAFETY: `out` has room for every row and column, as asserted, and is borrowed mutably; packing refuses
            // instructions that are not available.
            return by_machine!(self.isa, M => unsafe { amx::multiply_panels::<M>(self, target, strips, x.count(), panels) });
        }
        for rows in blocks(x.count(), self.rows_in_cache()) {
            // SAFETY: `out` has room for every row and column, as asserted, and is borrowed mutably.
            unsafe { self.fill(target, x, &ProductPart { rows, panels: panels.clone() }) };
        }
    }

    /// Disjoint parts that make up a product of `rows` rows, enough of them to keep every thread busy.
    fn parts(&self, rows: usize) -> Vec<ProductPart> {
        let row_blocks: Vec<_> = blocks(rows, self.rows_in_cache()).collect();
        let cuts = (PARTS * rayon::current_num_threads()).div_ceil(row_blocks.len().max(1));
        let width = self.panels().div_ceil(cuts).max(1);
        let with_panels = |rows: Range<usize>| {
            blocks(self.panels(), width).map(move |panels| ProductPart { rows: rows.clone(), panels })
        };
        row_blocks.into_iter().flat_map(with_panels).collect()
    }

    /// Rows of activations that fit in the L2 cache, in whole tiles.
    fn rows_in_cache(&self) -> usize {
        (ACTIVATIONS / (4 * ROWS * self.k.max(1))).clamp(1, 16) * ROWS
    }

    /// # Safety
    /// The results of the part are inside the allocation of `target`, and no other thread accesses them.
    unsafe fn fill(&self, target: Target, x: &Rows, part: &ProductPart) {
        for panel in part.panels.clone() {
            let columns = self.columns(panel..panel + 1);
            for row in part.rows.clone().step_by(ROWS) {
                let rows = row..(row + ROWS).min(part.rows.end);
                let out = SharedMut(target.out.0.wrapping_add(row * target.stride + columns.start));
                let tile = Tile { weights: self, x, rows, panel, columns: columns.len() };
                // SAFETY: the caller guarantees the rows and columns of the tile.
                unsafe { self.fill_tile(Target { out, ..target }, &tile) };
            }
        }
    }

    /// # Safety
    /// As for [`Packed::fill`], where the target begins at the first result of the tile.
    unsafe fn fill_tile(&self, target: Target, tile: &Tile) {
        match self.isa {
            // SAFETY: guaranteed by the caller; packing refuses instructions that are not available.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::fill(target, tile) },
            // SAFETY: guaranteed by the caller.
            _ => unsafe { scalar::fill(target, tile) },
        }
    }
}
