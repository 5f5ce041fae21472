//! The reduction on the CPU: each thread multiplies one tile of the vocabulary and reduces it while it is in cache.

use super::choices::FirstChoice;
use super::tensor::{Head, TileRow, join_tiles};
use crate::models::ops::{Weight, with_slice};
use candle_core::{Result, Tensor, bail};
use gemm::Parallelism;
use kernels::activation::soft_cap;
use kernels::gemm::linear;
use kernels::packed::{MAX_COLUMNS, Packed, Rows};
use kernels::row_statistics::{first_maximum, reduce_row};
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
    project(hidden, head, |projection, hidden| projection.reduce(hidden, targets))
}

/// The first choice behind each row of `hidden` `[rows, hidden]`.
pub fn first_choices(hidden: &Tensor, head: &Head) -> Result<Vec<FirstChoice>> {
    project(hidden, head, |projection, hidden| projection.first_choices(hidden))
}

/// Calls a function with the head and the hidden states as slices.
fn project<T>(hidden: &Tensor, head: &Head, reduce: impl Fn(Projection, &[f32]) -> T) -> Result<T> {
    match &*head.weight {
        Weight::Plain(weight) => {
            with_slice(weight, |weight| with_bias(HeadMatrix::Plain(weight), hidden, head, &reduce))
        }
        Weight::Packed(weight) => with_bias(HeadMatrix::Packed(weight), hidden, head, &reduce),
        Weight::Parts(_) => bail!("a head is one matrix"),
    }
}

fn with_bias<T>(
    matrix: HeadMatrix,
    hidden: &Tensor,
    head: &Head,
    reduce: &impl Fn(Projection, &[f32]) -> T,
) -> Result<T> {
    let [vocab, width] = head.weight.dims()?;
    let cap = head.soft_cap.map(|cap| cap as f32);
    with_slice(hidden, |hidden| match &head.bias {
        None => Ok(reduce(Projection { matrix, bias: None, cap, vocab, width }, hidden)),
        Some(bias) => {
            with_slice(bias, |bias| Ok(reduce(Projection { matrix, bias: Some(bias), cap, vocab, width }, hidden)))
        }
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
        let tiles = self.tiles(hidden, targets.len(), |reduced, logits, entries, rows| {
            let (columns, first, targets) = (entries.len(), entries.start, &targets[rows]);
            vectorised!(reduce_rows(reduced, logits, columns, first, targets));
        });
        join_tiles(tiles.len(), targets.len(), |tile, row| tiles[tile][row])
    }

    fn first_choices(&self, hidden: &[f32]) -> Vec<FirstChoice> {
        hidden.chunks(ROWS * self.width).flat_map(|hidden| self.first_choices_of_block(hidden)).collect()
    }

    fn first_choices_of_block(&self, hidden: &[f32]) -> Vec<FirstChoice> {
        let tiles = self.tiles(hidden, hidden.len() / self.width, |choices, logits, entries, _| {
            let (columns, first) = (entries.len(), entries.start);
            vectorised!(choose_rows(choices, logits, columns, first));
        });
        FirstChoice::join_tiles(&tiles)
    }

    /// The results of `reduce` by tile and row. It is called with the results of a tile so far, logits of some of its rows, the
    /// vocabulary entries of the tile and those rows.
    fn tiles<T: Send>(
        &self,
        hidden: &[f32],
        rows: usize,
        reduce: impl Fn(&mut Vec<T>, &[f32], Range<usize>, Range<usize>) + Sync,
    ) -> Vec<Vec<T>> {
        // Packed weights are divided at panel boundaries.
        let (product, unit) = match self.matrix {
            HeadMatrix::Plain(weight) => (Product::Plain(weight, hidden), 1),
            HeadMatrix::Packed(weight) => (Product::Packed(weight, weight.rows(hidden)), weight.panel_width()),
        };
        let (count, units) = (self.vocab.div_ceil(TILE), self.vocab.div_ceil(unit));
        let bound = |index: usize| (index * units / count * unit).min(self.vocab);
        let reduce_tile = |logits: &mut Vec<f32>, index: usize| {
            let entries = bound(index)..bound(index + 1);
            let mut reduced = Vec::with_capacity(rows);
            let at_once = product.rows_at_once();
            for block in (0..rows).step_by(at_once).map(|row| row..(row + at_once).min(rows)) {
                self.logits(logits, &product, block.clone(), entries.clone());
                reduce(&mut reduced, logits, entries.clone(), block);
            }
            reduced
        };
        (0..count).into_par_iter().map_init(Vec::new, reduce_tile).collect()
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

/// The largest of each row of `columns` logits; `first` is the vocabulary entry of the first column.
#[inline(always)]
fn choose_rows(choices: &mut Vec<FirstChoice>, logits: &[f32], columns: usize, first: usize) {
    choices.extend(logits.chunks_exact(columns).map(|row| {
        let (logit, column) = first_maximum(row);
        FirstChoice { logit: f64::from(logit), id: (first + column) as u32 }
    }));
}
