//! The layout of weights for vectors: panels of columns, two steps of k at a time.
//!
//! For every two steps of k, a panel has either, in f32, the words of the first step and those of the second, or words that
//! hold both steps in two halves, the first in the lower one.

use super::matrix::{Element, LANES, Matrix, PackedLine, blocks};
use half::{bf16, f16};
use std::ops::Range;

/// Columns of a panel: three vectors of AVX-512. With `ROWS`, the sums of a tile fill 24 of the 32 registers.
pub const COLUMNS: usize = 48;
/// Vectors per panel.
pub const VECTORS: usize = COLUMNS / LANES;

/// Lines of a panel for two steps of k.
pub fn lines_of_pair(element: Element) -> usize {
    if element == Element::F32 { 2 * VECTORS } else { VECTORS }
}

/// Fills a panel with some columns of weights `[n, k]`.
pub fn pack(lines: &mut [PackedLine], weights: Matrix, columns: Range<usize>, k: usize) {
    let per_pair = lines_of_pair(weights.element());
    // A few steps of all columns at a time, so that both the source and the destination stay in the L1 cache.
    for steps in blocks(k, LANES) {
        for column in columns.clone() {
            let (vector, lane) = ((column - columns.start) / LANES, (column - columns.start) % LANES);
            for q in steps.clone() {
                let (bits, pair) = (weights.bits(column * k + q), q / 2 * per_pair);
                match weights.element() {
                    Element::F32 => lines[pair + q % 2 * VECTORS + vector].0[lane] = bits,
                    Element::F16 | Element::Bf16 => lines[pair + vector].0[lane] |= bits << (16 * (q % 2)),
                }
            }
        }
    }
}

/// The weight of a column of a panel at step q of k.
pub fn value(panel: &[PackedLine], element: Element, column: usize, q: usize) -> f32 {
    let (pair, vector, lane) = (q / 2 * lines_of_pair(element), column / LANES, column % LANES);
    let half = || (panel[pair + vector].0[lane] >> (16 * (q % 2))) as u16;
    match element {
        Element::F32 => f32::from_bits(panel[pair + q % 2 * VECTORS + vector].0[lane]),
        Element::F16 => f16::from_bits(half()).to_f32(),
        Element::Bf16 => bf16::from_bits(half()).to_f32(),
    }
}

/// The weights of every step of k in lines of f32.
pub fn f32_steps(lines: &mut [PackedLine]) -> &mut [[f32; COLUMNS]] {
    let steps = lines.len() / VECTORS;
    // SAFETY: a step has one word without padding for each column; all bits are those of an f32, and the
    // result borrows the lines mutably.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), steps) }
}
