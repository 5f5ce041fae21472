//! Weights kept in the block formats of GGML, and how they become f32.
//!
//! The blocks of the columns of a panel lie byte by byte side by side: a line holds one byte of a block for each of the
//! columns. So the memory is that of the blocks, and a loop over a line gives the weights of a step of k in the order in which
//! [`panels`](super::panels) has them, without a transposition.
//!
//! A weight is the f32 that the reference implementation (`gguf.quants.dequantize`) gives, bit for bit: its products of scales
//! and quants have at most 23 bits, so that they are exact, and a difference is rounded once.

mod format;
#[cfg(test)]
mod tests;

pub use format::BlockFormat;

use super::matrix::{LANES, PackedLine};
use super::panels::{COLUMNS, VECTORS, f32_steps};
use crate::simd::vectorised;
use half::f16;
use rayon::prelude::*;
use std::ops::Range;

/// Blocks that are no weights.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    #[error("{k} columns are not a whole number of {} blocks of {} weights", .format.name(), .format.weights())]
    Width { format: BlockFormat, k: usize },
    #[error("row {row} has {actual} bytes of {} blocks instead of {expected}", .format.name())]
    Length { format: BlockFormat, row: usize, expected: usize, actual: usize },
    #[error("a scale in row {row} from column {column} on is infinite or not a number")]
    NotFinite { row: usize, column: usize },
}

/// Weights `[n, k]` in blocks: for every panel, the blocks of its columns along k. Columns that are missing in the last panel
/// have blocks of zeros.
pub(super) struct Blocks {
    lines: Vec<[u8; COLUMNS]>,
    format: BlockFormat,
    k: usize,
}

impl Blocks {
    pub fn new(rows: &[&[u8]], k: usize, format: BlockFormat) -> Result<Self, BlockError> {
        let length = row_bytes(format, k)?;
        rows.par_iter().enumerate().try_for_each(|(row, bytes)| check(format, row, bytes, length))?;
        let mut lines = vec![[0; COLUMNS]; rows.len().div_ceil(COLUMNS) * length];
        lines.par_chunks_mut(length.max(1)).zip(rows.par_chunks(COLUMNS)).for_each(|(lines, columns)| {
            for (column, bytes) in columns.iter().enumerate() {
                lines.iter_mut().zip(*bytes).for_each(|(line, &byte)| line[column] = byte);
            }
        });
        Ok(Self { lines, format, k })
    }

    /// Writes some steps of k of a panel to the first of `lines`, and returns these: as [`panels`](super::panels) has them in
    /// f32. The steps are whole blocks.
    pub fn panel<'a>(&self, lines: &'a mut Vec<PackedLine>, panel: usize, steps: Range<usize>) -> &'a [PackedLine] {
        let length = steps.len() * VECTORS;
        if lines.len() < length {
            lines.resize(length, PackedLine([0; LANES]));
        }
        let lines = &mut lines[..length];
        let (format, blocks, steps) = (self.format, self.blocks(panel, steps), f32_steps(lines));
        vectorised!(format.dequantise(blocks, steps));
        lines
    }

    /// Copies the weights of one of the n into `out` `[k]`.
    pub fn copy_row(&self, out: &mut [f32], row: usize) {
        let (panel, column) = (row / COLUMNS, row % COLUMNS);
        let bytes: Vec<u8> = self.blocks(panel, 0..self.k).iter().map(|line| line[column]).collect();
        self.format.dequantise_column(&bytes, out);
    }

    /// The blocks of a panel for some steps of k.
    fn blocks(&self, panel: usize, steps: Range<usize>) -> &[[u8; COLUMNS]] {
        let lines = |steps: usize| steps / self.format.weights() * self.format.bytes();
        let first = panel * lines(self.k);
        &self.lines[first + lines(steps.start)..first + lines(steps.end)]
    }
}

/// The bytes of a row of k weights.
fn row_bytes(format: BlockFormat, k: usize) -> Result<usize, BlockError> {
    let bytes = (k / format.weights()).checked_mul(format.bytes());
    bytes.filter(|_| k.is_multiple_of(format.weights())).ok_or(BlockError::Width { format, k })
}

/// Checks the length of a row and the scales of its blocks.
fn check(format: BlockFormat, row: usize, bytes: &[u8], expected: usize) -> Result<(), BlockError> {
    if bytes.len() != expected {
        return Err(BlockError::Length { format, row, expected, actual: bytes.len() });
    }
    let scale = |block: &[u8], at: usize| f16::from_le_bytes([block[at], block[at + 1]]);
    let is_finite = |block: &[u8]| format.scales().iter().all(|&at| scale(block, at).is_finite());
    match bytes.chunks_exact(format.bytes()).position(|block| !is_finite(block)) {
        Some(block) => Err(BlockError::NotFinite { row, column: block * format.weights() }),
        None => Ok(()),
    }
}
