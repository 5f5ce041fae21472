//! The layout of activations: strips of tiles.

use super::STRIP;
use super::machine::TileMachine;
use crate::packed::matrix::{PackedLine, blocks};
use crate::packed::terms::Terms;
use crate::packed::tile_panels::{TILE_ROWS, steps};
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Rows of activations `[rows, k]`, converted to strips.
pub struct Strips {
    /// Rows that a tile lacks are not there.
    lines: Box<[MaybeUninit<PackedLine>]>,
    /// The bf16 terms that each element is split into.
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

/// Number of lines that `rows` rows occupy; all strips but the last are full.
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

    pub fn from(self, step: usize) -> Self {
        Self { skipped: self.skipped + step, ..self }
    }

    /// Pointer to the first tile of a strip of `rows` rows.
    pub fn strip(&self, strip: usize, rows: usize) -> *const PackedLine {
        let before = lines_of_rows(strip * STRIP, self.steps, self.terms);
        self.lines.wrapping_add(before + lines_of_rows(rows, self.skipped, self.terms))
    }
}

/// The line of a tile row: of a row among `rows`, at a step among `steps`, of a term among `terms`.
pub fn line(rows: usize, row: usize, step: usize, steps: usize, term: usize, terms: usize) -> usize {
    let first = row / STRIP * STRIP;
    let tiles = (rows - first).min(STRIP).div_ceil(TILE_ROWS);
    let tile = (step * terms + term) * tiles + (row - first) / TILE_ROWS;
    lines_of_rows(first, steps, terms) + tile * TILE_ROWS + row % TILE_ROWS
}

/// Rows in parts that begin with strips, of at most `rows` rows.
pub fn row_blocks(count: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    blocks(count, rows.next_multiple_of(STRIP).max(STRIP))
}
