//! The reduction on the CPU: each thread multiplies one tile of the vocabulary and reduces it while it is in cache.

use super::tensor::{Head, TileRow, join_tiles};
use crate::models::ops::{Weight, with_slice};
use candle_core::{Result, Tensor};
use gemm::Parallelism;
use kernels::activation::soft_cap;
use kernels::gemm::linear;
use kernels::packed::{MAX_COLUMNS, Packed, Rows};
use kernels::row_statistics::reduce_row;
use kernels::vectorised;
use mia::TokenStats;
use rayon::prelude::*;
use std::ops::Range;

/// Vocabulary entries per tile, plus at most one panel of packed weights. The vocabulary is divided evenly, so that no
/// tile is very small.
const TILE: usize = 512;
/// Rows that share a tile. Their logits exist for a block of them at a time.
const ROWS: usize = 1024;

/// An upper estimate of the bytes that the reduction allocates at once: a tile of logits per thread, and the results of
/// all tiles of a block.
pub fn bytes(vocab: usize, threads: usize) -> usize {
    let tile = ROWS * (TILE + MAX_COLUMNS) * size_of::<f32>();
    let reduced = ROWS.saturating_mul(vocab.div_ceil(TILE)).saturating_mul(size_of::<TileRow>());
    threads.saturating_mul(tile).saturating_add(reduced)
}

pub fn logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    match &*head.weight {
        Weight::Plain(weight) => {
            with_slice(weight, |weight| with_bias(HeadMatrix::Plain(weight), hidden, head, targets))
        }
        Weight::Packed(weight) => with_bias(HeadMatrix::Packed(weight), hidden, head, targets),
    }
}

fn with_bias(matrix: HeadMatrix, hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    let [vocab, width] = head.weight.dims()?;
    let cap = head.soft_cap.map(|cap| cap as f32);
    with_slice(hidden, |hidden| match &head.bias {
        None => Ok(Projection { matrix, bias: None, cap, vocab, width }.reduce(hidden, targets)),
        Some(bias) => with_slice(bias, |bias| {
            Ok(Projection { matrix, bias: Some(bias), cap, vocab, width }.reduce(hidden, targets))
        }),
    })
}

/// The head as plain slices.
struct Projection<'a> {
    matrix: HeadMatrix<'a>,
    bias: Option<&'a [f32]>,
    cap: Option<f32>,
    vocab: usize,
    width: usize,
}

/// The weights `[vocab, width]`.
#[derive(Clone, Copy)]
enum HeadMatrix<'a> {
    Plain(&'a [f32]),
    Packed(&'a Packed),
}

/// The product of a block of rows, computed tile by tile.
enum Product<'a> {
    Plain(&'a [f32], &'a [f32]),
    Packed(&'a Packed, Rows<'a>),
}

impl Product<'_> {
    /// Rows whose logits are computed before they are reduced: with packed weights no more than stay in the cache. `gemm`
    /// packs the weights at every call.
    fn rows_at_once(&self) -> usize {
        match self {
            Self::Plain(..) => ROWS,
            Self::Packed(weight, _) => weight.rows_in_cache(),
        }
    }
}

impl Projection<'_> {
    /// hidden `[rows, width]`
    fn reduce(&self, hidden: &[f32], targets: &[u32]) -> Vec<TokenStats> {
        let blocks = hidden.chunks(ROWS * self.width).zip(targets.chunks(ROWS));
        blocks.flat_map(|(hidden, targets)| self.reduce_block(hidden, targets)).collect()
    }

    fn reduce_block(&self, hidden: &[f32], targets: &[u32]) -> Vec<TokenStats> {
        // Packed weights are divided at panel boundaries.
        let (product, unit) = match self.matrix {
            HeadMatrix::Plain(weight) => (Product::Plain(weight, hidden), 1),
            HeadMatrix::Packed(weight) => (Product::Packed(weight, weight.rows(hidden)), weight.panel_width()),
        };
        let (count, units) = (self.vocab.div_ceil(TILE), self.vocab.div_ceil(unit));
        let bound = |index: usize| (index * units / count * unit).min(self.vocab);
        let reduce_tile = |logits: &mut Vec<f32>, index: usize| {
            let entries = bound(index)..bound(index + 1);
            let mut reduced = Vec::with_capacity(targets.len());
            let at_once = product.rows_at_once();
            for rows in (0..targets.len()).step_by(at_once).map(|row| row..(row + at_once).min(targets.len())) {
                self.logits(logits, &product, rows.clone(), entries.clone());
                let (logits, targets, reduced) = (&logits[..], &targets[rows], &mut reduced);
                let (columns, first) = (entries.len(), entries.start);
                vectorised!(reduce_rows(reduced, logits, columns, first, targets));
            }
            reduced
        };
        let tiles = (0..count).into_par_iter();
        let tiles: Vec<Vec<TileRow>> = tiles.map_init(Vec::new, reduce_tile).collect();
        join_tiles(tiles.len(), targets.len(), |tile, row| tiles[tile][row])
    }

    /// The logits `[rows, entries]` of some of the rows and a range of the vocabulary.
    fn logits(&self, logits: &mut Vec<f32>, product: &Product, rows: Range<usize>, entries: Range<usize>) {
        match product {
            Product::Plain(weight, hidden) => {
                logits.clear();
                match self.bias {
                    Some(bias) => rows.clone().for_each(|_| logits.extend_from_slice(&bias[entries.clone()])),
                    None => logits.resize(rows.len() * entries.len(), 0.0),
                }
                let hidden = &hidden[rows.start * self.width..rows.end * self.width];
                let weight = &weight[entries.start * self.width..entries.end * self.width];
                let shape = [rows.len(), entries.len(), self.width];
                linear(logits, hidden, weight, shape, self.bias.is_some(), Parallelism::None);
            }
            Product::Packed(weight, hidden) => {
                let width = weight.panel_width();
                let panels = entries.start / width..entries.end.div_ceil(width);
                weight.multiply_panels(logits, hidden, rows, panels, self.bias);
            }
        }
        if let Some(cap) = self.cap {
            soft_cap(logits, 1.0, cap);
        }
    }
}

/// Reduces each row of `columns` logits; `first` is the vocabulary entry of the first column.
#[inline(always)]
fn reduce_rows(reduced: &mut Vec<TileRow>, logits: &[f32], columns: usize, first: usize, targets: &[u32]) {
    for (row, &target) in logits.chunks_exact(columns).zip(targets) {
        let target = (target as usize).checked_sub(first).and_then(|column| row.get(column)).map(|&x| f64::from(x));
        reduced.push((reduce_row(row), target));
    }
}
