//! The definition of the products, for any machine.

use super::machine::{StripProduct, TileMachine};
use super::{STRIP, strips};
use crate::packed::flushed::{flushed, fused, is_tiny};
use crate::packed::matrix::{LANES, PackedLine};
use crate::packed::target::Target;
use crate::packed::terms::{Terms, widened};
use crate::packed::tile_panels::{COLUMNS, STEP, TILE_ROWS};
use crate::simd::vectorised;
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
        unsafe { convert(lines, x, k, steps, terms) };
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

/// The portable form of [`TileMachine::convert`], which rounds as `vcvtne2ps2bf16` does: numbers that are subnormal, before
/// or after, become zero.
///
/// # Safety
/// The same as for [`TileMachine::convert`], except that no instructions are required.
unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>, terms: usize) {
    for (row, values) in x.chunks_exact(k).enumerate() {
        for step in steps.clone() {
            let values = &values[(step * STEP).min(k)..((step + 1) * STEP).min(k)];
            let mut tile_rows = [[0u32; LANES]; 3];
            for (q, &value) in values.iter().enumerate() {
                for (tile_row, bits) in tile_rows.iter_mut().zip(flushed_terms(value)) {
                    tile_row[q / 2] |= u32::from(bits) << (16 * (q % 2));
                }
            }
            for (term, tile_row) in tile_rows.into_iter().enumerate().take(terms) {
                let line = strips::line(x.len() / k, row, step - steps.start, steps.len(), term, terms);
                // SAFETY: guaranteed by the caller.
                unsafe { *lines.add(line) = PackedLine(tile_row) };
            }
        }
    }
}

fn flushed_terms(mut rest: f32) -> [u16; 3] {
    std::array::from_fn(|_| {
        let term = half::bf16::from_f32(if rest.is_subnormal() { 0f32.copysign(rest) } else { rest });
        rest -= term.to_f32();
        term.to_bits()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::packed::amx::hardware;

    type Convert = unsafe fn(*mut PackedLine, &[f32], usize, Range<usize>, usize);

    /// Every conversion that runs here.
    fn conversions() -> Vec<(&'static str, Convert)> {
        let mut conversions: Vec<(&str, Convert)> = vec![("portable", convert)];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512bf16") {
            conversions.push(("hardware", hardware::convert));
        }
        conversions
    }

    /// Terms by hand: a tie to the even of two bf16 in both directions, a subnormal number, one that becomes subnormal, and one
    /// that bf16 rounds to infinity.
    #[test]
    fn terms_of_activations_are_these() {
        let cases: [(u32, [u16; 3]); 6] = [
            (0x3f80_8000, [0x3f80, 0x3b80, 0x0000]),
            (0x3f81_8000, [0x3f82, 0xbb80, 0x0000]),
            (0x3f80_4001, [0x3f80, 0x3b00, 0x3400]),
            (0x0040_0000, [0x0000, 0x0000, 0x0000]),
            (0x8080_0001, [0x8080, 0x8000, 0x8000]),
            (0x7f7f_ffff, [0x7f80, 0xff80, 0x7fc0]),
        ];
        for (bits, expected) in cases {
            let x = f32::from_bits(bits);
            for (machine, run) in conversions() {
                let mut lines = [PackedLine([0; 16]); 3 * TILE_ROWS];
                unsafe { run(lines.as_mut_ptr(), &[x], 1, 0..1, 3) };
                let terms = [0, 1, 2].map(|term| lines[term * TILE_ROWS].0[0] as u16);
                let is_nan = |term: u16| term & 0x7fff > 0x7f80;
                let equal =
                    terms.iter().zip(expected).all(|(&ours, term)| ours == term || is_nan(ours) && is_nan(term));
                assert!(equal, "{bits:x}, {machine}: {terms:x?}");
            }
        }
    }
}
