//! The layout of weights for vectors: panels of columns, two steps of k at a time.
//!
//! For every two steps of k, a panel has either, in f32, the words of the first step and those of the second, or words that
//! hold both steps in two halves, the first in the lower one.

use super::matrix::{Element, LANES, PackedLine};
use crate::simd::vectorised;
use half::{bf16, f16};

/// Columns of a panel: three vectors of AVX-512. With `ROWS`, the sums of a tile fill 24 of the 32 registers.
pub const COLUMNS: usize = 48;
/// Vectors per panel.
pub const VECTORS: usize = COLUMNS / LANES;

/// Lines of a panel for two steps of k.
pub fn lines_of_pair(element: Element) -> usize {
    if element == Element::F32 { 2 * VECTORS } else { VECTORS }
}

/// Fills a panel of zeros with rows of weights `[n, k]`; each row is a column of the panel.
///
/// In every type, words of a row are a line apart in each vector.
pub fn pack(lines: &mut [PackedLine], rows: &[&[u8]]) {
    vectorised!(transpose(lines, rows));
}

/// In plain loops: the closures of iterators are not inlined in every build.
#[inline(always)]
fn transpose(lines: &mut [PackedLine], rows: &[&[u8]]) {
    let words = lines.len() / VECTORS;
    for (vector, rows) in rows.chunks(LANES).enumerate() {
        // Blocks of as many words as there are lanes.
        for first in (0..words).step_by(LANES) {
            let mut block = [[0; LANES]; LANES];
            for (words, row) in block.iter_mut().zip(rows) {
                read_words(words, row, first);
            }
            for word in 0..LANES.min(words - first) {
                let line = &mut lines[(first + word) * VECTORS + vector].0;
                for (lane, words) in line.iter_mut().zip(&block) {
                    *lane = words[word];
                }
            }
        }
    }
}

/// Words of a row from the first one on; those behind its end are zeros.
#[inline(always)]
fn read_words(words: &mut [u32; LANES], row: &[u8], first: usize) {
    const BYTES: usize = size_of::<[u32; LANES]>();
    let start = (first * size_of::<u32>()).min(row.len());
    let mut bytes = [0; BYTES];
    match row[start..].first_chunk() {
        Some(all) => bytes = *all,
        None => bytes[..row.len() - start].copy_from_slice(&row[start..]),
    }
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_ne_bytes(*bytes);
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
