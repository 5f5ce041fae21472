//! The definition of the products, for any machine.

use super::machine::{StripProduct, TileMachine};
use super::terms::{Terms, widened};
use super::{COLUMNS, STRIP, TILE_ROWS, strips};
use crate::models::kernels::packed::flushed::{flushed, fused, is_tiny};
use crate::models::kernels::packed::matrix::{LANES, PackedLine};
use crate::models::kernels::packed::target::Target;
use crate::models::kernels::simd::vectorised;
use std::ops::Range;
use std::slice;

/// Tile registers that exist in memory only.
pub struct Emulated;

impl TileMachine for Emulated {
    unsafe fn configured(_rows: usize) -> Self {
        Self
    }

    fn configure(&mut self, _rows: usize) {}

    unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>, terms: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { strips::convert(lines, x, k, steps, terms) };
    }

    unsafe fn multiply(&mut self, terms: Terms, product: &StripProduct) {
        let tiles = product.rows.div_ceil(TILE_ROWS);
        let (x_step, w_step) = (tiles * TILE_ROWS * terms.activation(), 2 * TILE_ROWS * terms.weight());
        // SAFETY: guaranteed by the caller.
        let (w, sums) = unsafe {
            (
                slice::from_raw_parts(product.w, product.steps * w_step),
                slice::from_raw_parts_mut(product.sums, STRIP * COLUMNS),
            )
        };
        // SAFETY: guaranteed by the caller for each row of the strip; others may not be there.
        let x_line = |index: usize| unsafe { &*product.x.add(index) };
        if product.first {
            sums[..product.rows * COLUMNS].fill(0.0);
        }
        for (step, w) in w.chunks_exact(w_step).enumerate() {
            for &(i, j) in terms.products() {
                let (x_tile, w) = (step * x_step + i * tiles * TILE_ROWS, &w[j * 2 * TILE_ROWS..]);
                for (row, sums) in sums.chunks_exact_mut(COLUMNS).enumerate().take(product.rows) {
                    let (left, right) = sums.split_at_mut(LANES);
                    let PackedLine(x) = x_line(x_tile + row);
                    vectorised!(dot_pairs(left, x, &w[..TILE_ROWS]));
                    vectorised!(dot_pairs(right, x, &w[TILE_ROWS..2 * TILE_ROWS]));
                }
            }
        }
    }

    unsafe fn store(target: Target, sums: *const f32, rows: usize, columns: usize, _stream: bool) {
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            // SAFETY: guaranteed by the caller.
            unsafe { target.write(row, column, *sums.add(row * COLUMNS + column)) };
        }
    }
}

/// One row of `tdpbf16ps`, as the manual defines it: subnormal inputs and results count as zero, the products of even and of
/// odd places are summed apart from zero with fused multiply-adds, then together, and then with what is there.
#[inline(always)]
fn dot_pairs(sums: &mut [f32], x: &[u32; TILE_ROWS], w: &[PackedLine]) {
    let mut tiny = false;
    let mut pairs = pair_sums(x, w, |x, w, sum| {
        let sum = flushed(x).mul_add(flushed(w), sum);
        tiny |= is_tiny(sum);
        sum
    });
    // Rare, and slow since it does not vectorise.
    if tiny {
        pairs = pair_sums(x, w, fused);
    }
    let [even, odd] = pairs;
    for lane in 0..LANES {
        sums[lane] = flushed(flushed(sums[lane]) + flushed(even[lane] + odd[lane]));
    }
}

/// The sums of the even places and of the odd ones, for each column.
#[inline(always)]
fn pair_sums(x: &[u32; TILE_ROWS], w: &[PackedLine], mut add: impl FnMut(f32, f32, f32) -> f32) -> [[f32; LANES]; 2] {
    let [mut even, mut odd] = [[0f32; LANES]; 2];
    for (&x, w) in x.iter().zip(w) {
        let (x_even, x_odd) = (widened(x as u16), widened((x >> 16) as u16));
        for lane in 0..LANES {
            even[lane] = add(x_even, widened(w.0[lane] as u16), even[lane]);
            odd[lane] = add(x_odd, widened((w.0[lane] >> 16) as u16), odd[lane]);
        }
    }
    [even, odd]
}
