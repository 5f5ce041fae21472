//! Divides products into tiles and distributes them over threads.

use super::amx::{self, by_machine};
use super::isa::Isa;
use super::matrix::{CHAIN, PackedLine, ROWS, blocks};
use super::pack::{Packed, PackedLayout, Storage};
use super::panels::lines_of_pair;
use super::rows::{Rows, Tile, Values};
use super::scalar;
use super::target::Target;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::activation;
use crate::activation::Activation;
use crate::shared_mut::SharedMut;
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

/// Bytes of activations that stay in the L2 cache while panels are multiplied.
const ACTIVATIONS: usize = 512 << 10;
/// Parts per thread, so that no thread waits long for the last one.
const PARTS: usize = 16;
/// Minimum number of rows that weights in blocks are converted for, unless there are fewer.
const ROWS_PER_CONVERSION: usize = 64;

thread_local! {
    /// The weights of a panel that were converted to f32 for the steps of a chain.
    static CONVERTED: RefCell<Vec<PackedLine>> = const { RefCell::new(Vec::new()) };
}

/// Rows of activations and panels of weights to be multiplied.
struct ProductPart {
    rows: Range<usize>,
    panels: Range<usize>,
}

/// Bytes that each thread keeps for products with up to `n` outputs, without the 96 KiB of a panel of converted blocks.
pub fn scratch_bytes(n: usize, isa: Isa) -> usize {
    if isa.is_tiled() { amx::scratch_bytes(n) } else { 0 }
}

impl Packed {
    /// The rows of x `[m, k]`, in the form that these weights are multiplied with.
    ///
    /// # Panics
    /// If x is not a whole number of rows: an error of the caller, never of a request.
    pub fn rows<'a>(&self, x: &'a [f32]) -> Rows<'a> {
        Rows::new(self, x)
    }

    /// `x w^T`, or `bias + x w^T`, for x `[m, k]` and bias `[n]`, with an activation applied to it: `[m, n]`, on the threads
    /// of the pool.
    ///
    /// # Panics
    /// If x or the bias does not have that shape: an error of the caller, never of a request.
    pub fn multiply(&self, x: &[f32], bias: Option<&[f32]>, activation: Option<Activation>) -> Vec<f32> {
        let length = x.len() / self.k.max(1) * self.n;
        let mut out = Vec::with_capacity(length);
        // SAFETY: the products write each of the results, for which there is room.
        unsafe {
            self.fill_all(out.as_mut_ptr(), length, x, false, bias, activation);
            out.set_len(length);
        }
        out
    }

    /// `out + x w^T`, or `out + bias + x w^T`, in place of out `[m, n]`, on the threads of the pool.
    ///
    /// # Panics
    /// As for [`Packed::multiply`].
    pub fn multiply_onto(&self, out: &mut [f32], x: &[f32], bias: Option<&[f32]>) {
        // SAFETY: `out` is borrowed mutably.
        unsafe { self.fill_all(out.as_mut_ptr(), out.len(), x, true, bias, None) };
    }

    /// Like [`Packed::multiply`] for some of the rows, at most as many as [`Packed::rows_in_cache`] says and a multiple of it
    /// after the first, and some of the panels, on this thread: out becomes `[rows, columns of the panels]`.
    ///
    /// # Panics
    /// If the rows or panels are not there or not such rows, or the rows were made for other weights: errors of the caller,
    /// never of a request.
    pub fn multiply_panels(
        &self,
        out: &mut Vec<f32>,
        x: &Rows,
        rows: Range<usize>,
        panels: Range<usize>,
        bias: Option<&[f32]>,
    ) {
        let columns = self.columns(panels.clone());
        let block = self.rows_in_cache();
        let whole = rows.len() == block || rows.end == x.count();
        assert!(x.fits(self), "packed: rows for other weights");
        assert!(!rows.is_empty() && rows.end <= x.count() && panels.end <= self.panels(), "packed: beyond its data");
        assert!(rows.start.is_multiple_of(block) && rows.len() <= block && whole, "packed: {rows:?} are no block");
        assert!(bias.is_none_or(|bias| bias.len() == self.n), "packed: {} outputs have another bias", self.n);
        let length = rows.len() * columns.len();
        out.clear();
        out.reserve(length);
        // The rows and columns of a target are those of all; `out` begins at the first of these.
        let first = rows.start * columns.len() + columns.start;
        let out_of_all = SharedMut(out.as_mut_ptr().wrapping_sub(first));
        let target = Target { out: out_of_all, stride: columns.len(), accumulate: false, bias };
        // SAFETY: `out` has room for every row and column, and is borrowed mutably; packing refuses instructions that are not
        // available. All results are written.
        unsafe {
            match &x.values {
                Values::Strips(strips) => {
                    by_machine!(self.isa, M => amx::multiply_panels::<M>(self, target, strips, rows, panels));
                }
                Values::F32(_) | Values::Pairs(_) => self.fill(target, x, &ProductPart { rows, panels }, None),
            }
            out.set_len(length);
        }
    }

    /// # Safety
    /// `out` has room for `length` results, is accessed by no other thread and, to accumulate, initialised.
    unsafe fn fill_all(
        &self,
        out: *mut f32,
        length: usize,
        x: &[f32],
        accumulate: bool,
        bias: Option<&[f32]>,
        activation: Option<Activation>,
    ) {
        let k = self.k.max(1);
        assert!(x.len().is_multiple_of(k) && length == x.len() / k * self.n, "packed: shape beyond its data");
        assert!(bias.is_none_or(|bias| bias.len() == self.n), "packed: {} outputs have another bias", self.n);
        let target = Target { out: SharedMut(out), stride: self.n, accumulate, bias };
        if let PackedLayout::Tiles(_) = self.layout {
            // SAFETY: the assertions keep all rows and columns inside `out`; packing refuses instructions that are not
            // available.
            return by_machine!(self.isa, M => unsafe { amx::multiply::<M>(self, target, x, activation) });
        }
        let x = &self.rows(x);
        let parts = self.parts(x.count()).into_par_iter().with_max_len(1);
        // SAFETY: the parts are disjoint, and the assertions keep all of their rows and columns inside `out`.
        parts.for_each(|part| unsafe { self.fill(target, x, &part, activation) });
    }

    /// Disjoint parts that make up a product of `rows` rows, enough of them to keep every thread busy.
    fn parts(&self, rows: usize) -> Vec<ProductPart> {
        let row_blocks: Vec<_> = blocks(rows, self.rows_of_part(rows)).collect();
        let cuts = (PARTS * rayon::current_num_threads()).div_ceil(row_blocks.len().max(1));
        let width = self.panels().div_ceil(cuts).max(1);
        let with_panels = |rows: Range<usize>| {
            blocks(self.panels(), width).map(move |panels| ProductPart { rows: rows.clone(), panels })
        };
        row_blocks.into_iter().flat_map(with_panels).collect()
    }

    /// Rows of a part of a product of `rows` rows. Few panels of weights in blocks are shared by several parts, which convert
    /// them each, so that threads end at about the same time.
    fn rows_of_part(&self, rows: usize) -> usize {
        let block = self.rows_in_cache();
        if let Storage::Panels(_) = self.weights {
            return block;
        }
        let parts = (PARTS / 2 * rayon::current_num_threads()).div_ceil(self.panels().max(1));
        let rows = rows.div_ceil(parts).next_multiple_of(ROWS);
        rows.clamp(ROWS_PER_CONVERSION, block)
    }

    /// Rows of activations that fit in the L2 cache, in whole tiles: their steps of a chain where the weights are converted
    /// chain by chain, so that each conversion serves many rows.
    pub fn rows_in_cache(&self) -> usize {
        match (self.layout, &self.weights) {
            (PackedLayout::Tiles(_), _) => amx::ROWS,
            (PackedLayout::Vectors, Storage::Panels(_)) => {
                (ACTIVATIONS / (4 * ROWS * self.k.max(1))).clamp(1, 16) * ROWS
            }
            (PackedLayout::Vectors, Storage::Blocks(_)) => ACTIVATIONS / (4 * CHAIN),
        }
    }

    /// # Safety
    /// The results of the part are inside the allocation of `target`, and no other thread accesses them.
    unsafe fn fill(&self, target: Target, x: &Rows, part: &ProductPart, activation: Option<Activation>) {
        for panel in part.panels.clone() {
            let columns = self.columns(panel..panel + 1);
            let row_tiles = || part.rows.clone().step_by(ROWS).map(|row| row..(row + ROWS).min(part.rows.end));
            let fill_tile = |rows: Range<usize>, steps: Range<usize>, lines: &[PackedLine]| {
                let target = target.from(rows.start, columns.start);
                let target = if steps.start > 0 { target.further() } else { target };
                let (k, element, columns) = (self.k, self.element, columns.len());
                // SAFETY: the caller guarantees the rows and columns of the tile.
                unsafe { self.fill_tile(target, &Tile { x, rows, k, steps, lines, element, columns }) };
            };
            match &self.weights {
                Storage::Panels(_) => {
                    let lines = self.panel(panel);
                    for rows in row_tiles() {
                        for steps in blocks(self.k, CHAIN) {
                            let first = steps.start / 2 * lines_of_pair(self.element);
                            fill_tile(rows.clone(), steps, &lines[first..]);
                        }
                    }
                }
                Storage::Blocks(weights) => CONVERTED.with_borrow_mut(|lines| {
                    for steps in blocks(self.k, CHAIN) {
                        let lines = weights.panel(lines, panel, steps.clone());
                        row_tiles().for_each(|rows| fill_tile(rows, steps.clone(), lines));
                    }
                }),
            }
            if let Some(activation) = activation {
                let Target { out, stride, .. } = target.from(part.rows.start, columns.start);
                // SAFETY: these results were written by this thread, and are accessed by no other.
                unsafe { activation::apply_to_block(activation, out.0, stride, [part.rows.len(), columns.len()]) };
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
            // SAFETY: as above; only weights in blocks, which become f32, run on AVX2.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::fill(target, tile) },
            // SAFETY: guaranteed by the caller.
            _ => unsafe { scalar::fill(target, tile) },
        }
    }
}
