//! The layout of activations: strips of tiles.

use super::machine::TileMachine;
use super::terms::Terms;
use super::{STEP, STRIP, TILE_ROWS, steps};
use crate::models::kernels::packed::blocking::blocks;
use crate::models::kernels::packed::matrix::{LANES, PackedLine};
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Rows of activations `[rows, k]`, converted to strips.
pub struct Strips {
    /// Rows that a tile lacks are not there.
    lines: Box<[MaybeUninit<PackedLine>]>,
    /// How they are split.
    pub terms: Terms,
}

/// Converted rows through some steps of k, strip after strip.
#[derive(Clone, Copy)]
pub struct StripView {
    lines: *const PackedLine,
    /// Steps that each strip has.
    steps: usize,
    /// Steps that are passed over in each strip.
    skipped: usize,
    terms: usize,
}

/// Lines of so many rows, of which the first strips are whole.
pub fn lines_of_rows(rows: usize, steps: usize, terms: usize) -> usize {
    rows.div_ceil(TILE_ROWS) * steps * terms * TILE_ROWS
}

impl Strips {
    /// Converts whole rows of k.
    ///
    /// # Safety
    /// The machine has the instructions.
    pub unsafe fn new<M: TileMachine>(x: &[f32], k: usize, terms: Terms) -> Self {
        let (rows, steps, count) = (x.len() / k.max(1), steps(k), terms.activation());
        let mut lines = Box::new_uninit_slice(lines_of_rows(rows, steps, count));
        let strips = lines.par_chunks_mut(lines_of_rows(STRIP, steps, count)).zip(x.par_chunks(STRIP * k.max(1)));
        // SAFETY: a chunk of lines is as long as its rows need; the machine has the instructions, as the caller guarantees.
        strips.for_each(|(lines, x)| unsafe { M::convert(lines.as_mut_ptr().cast(), x, k, 0..steps, count) });
        Self { lines, terms }
    }

    /// All steps of the rows from `row` on, which begins a strip.
    pub fn view(&self, row: usize, k: usize) -> StripView {
        let (steps, terms) = (steps(k), self.terms.activation());
        let lines = self.lines[lines_of_rows(row, steps, terms)..].as_ptr().cast();
        StripView { lines, steps, skipped: 0, terms }
    }
}

impl StripView {
    /// Lines that hold `steps` steps and nothing else.
    pub fn new(lines: *const PackedLine, steps: usize, terms: Terms) -> Self {
        Self { lines, steps, skipped: 0, terms: terms.activation() }
    }

    /// From `step` on.
    pub fn from(self, step: usize) -> Self {
        Self { skipped: self.skipped + step, ..self }
    }

    /// The first tile of a strip of so many rows.
    pub fn strip(&self, strip: usize, rows: usize) -> *const PackedLine {
        let before = lines_of_rows(strip * STRIP, self.steps, self.terms);
        self.lines.wrapping_add(before + lines_of_rows(rows, self.skipped, self.terms))
    }
}

/// The portable form of [`TileMachine::convert`], which rounds as `vcvtne2ps2bf16` does: numbers that are subnormal, before
/// or after, become zero.
///
/// # Safety
/// As for [`TileMachine::convert`], but for the instructions.
pub unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>, terms: usize) {
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
                let line = line(x.len() / k, row, step - steps.start, steps.len(), term, terms);
                // SAFETY: guaranteed by the caller.
                unsafe { *lines.add(line) = PackedLine(tile_row) };
            }
        }
    }
}

/// The line of a tile row: of a row among `rows`, at a step among `steps`, of a term among `terms`.
pub fn line(rows: usize, row: usize, step: usize, steps: usize, term: usize, terms: usize) -> usize {
    let first = row / STRIP * STRIP;
    let tiles = (rows - first).min(STRIP).div_ceil(TILE_ROWS);
    let tile = (step * terms + term) * tiles + (row - first) / TILE_ROWS;
    lines_of_rows(first, steps, terms) + tile * TILE_ROWS + row % TILE_ROWS
}

fn flushed_terms(mut rest: f32) -> [u16; 3] {
    std::array::from_fn(|_| {
        let term = half::bf16::from_f32(if rest.is_subnormal() { 0f32.copysign(rest) } else { rest });
        rest -= term.to_f32();
        term.to_bits()
    })
}

/// Rows in parts that begin with strips, of at most `rows` rows.
pub fn row_blocks(count: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    blocks(count, rows.next_multiple_of(STRIP).max(STRIP))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::models::kernels::packed::amx::hardware;

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
