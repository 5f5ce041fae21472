//! The reduction in candle's operations, for devices without a kernel; tile by tile, like its CPU counterpart.

use crate::models::ops::{Weight, soft_cap};
use candle_core::{D, DType, Result, Tensor};
use kernels::math::EXP_MIN;
use kernels::row_statistics::Partial;
use mia::TokenStats;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The projection to the vocabulary.
pub struct Head {
    /// `[vocab, hidden]`
    pub weight: Arc<Weight>,
    /// `[vocab]`
    pub bias: Option<Tensor>,
    /// Logits x become `cap tanh(x / cap)`.
    pub soft_cap: Option<f64>,
}

impl Head {
    /// Complete logits `[rows, vocab]`, differentiable.
    pub(in crate::models) fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        logits(hidden, self.weight.tensor()?, self.bias.as_ref(), self.soft_cap)
    }
}

/// `hidden weight^T + bias`, capped, in f32, or in f64 if the model itself computes in f64.
pub fn logits(hidden: &Tensor, weight: &Tensor, bias: Option<&Tensor>, cap: Option<f64>) -> Result<Tensor> {
    let dtype = if hidden.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    with_bias_and_cap(hidden.matmul(&weight.t()?)?.to_dtype(dtype)?, bias, cap)
}

/// Logits from the product of hidden states and weights, in the type of the product.
pub fn with_bias_and_cap(product: Tensor, bias: Option<&Tensor>, cap: Option<f64>) -> Result<Tensor> {
    let logits = bias.map_or(Ok(product.clone()), |b| product.broadcast_add(&b.to_dtype(product.dtype())?))?;
    cap.map_or(Ok(logits.clone()), |cap| soft_cap(&logits, cap))
}

/// Elements of a tile of logits: 256 MiB of f32, and about the same again while it is reduced.
const TILE_ELEMENTS: usize = 64 << 20;
/// Minimum vocabulary entries of a tile, so that many rows still make large products.
const LEAST_TILE: usize = 1024;
/// The number of vocabulary entries of a tile is a multiple of this.
const ALIGNED: usize = 64;

pub fn logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    let weight = head.weight.tensor()?;
    let reduced = |entries: Range<usize>| {
        let part = |t: &Tensor| t.narrow(0, entries.start, entries.len());
        let bias = head.bias.as_ref().map(part).transpose()?;
        let logits = logits(hidden, &part(weight)?, bias.as_ref(), head.soft_cap)?;
        let mut rows: Vec<TileRow> = reduce(&logits)?.into_iter().map(|partial| (partial, None)).collect();
        for (row, logit) in target_logits(&logits, targets, entries.start)? {
            rows[row].1 = Some(logit);
        }
        Ok(rows)
    };
    let tiles: Vec<_> = tiles(targets.len(), weight.dim(0)?).map(reduced).collect::<Result<_>>()?;
    Ok(join_tiles(tiles.len(), targets.len(), |tile, row| tiles[tile][row]))
}

/// The ranges of the vocabulary that `rows` rows are reduced over, one after another.
pub fn tiles(rows: usize, vocab: usize) -> impl Iterator<Item = Range<usize>> {
    // Rows of products, and of their tiles, start at multiples of 128 bytes if the size of the vocabulary permits.
    let tile = (TILE_ELEMENTS / rows.max(1) / ALIGNED * ALIGNED).max(LEAST_TILE);
    (0..vocab).step_by(tile).map(move |first| first..vocab.min(first + tile))
}

/// The logits of the targets within this tile, with their rows: taken from the same logits as the rest, since another
/// product would round differently in a half type.
fn target_logits(logits: &Tensor, targets: &[u32], first: usize) -> Result<Vec<(usize, f64)>> {
    let columns = logits.dim(D::Minus1)?;
    let inside = |(row, &id): (usize, &u32)| {
        let column = (id as usize).checked_sub(first).filter(|&column| column < columns)?;
        Some((row as u32, column as u32))
    };
    let (rows, columns): (Vec<u32>, Vec<u32>) = targets.iter().enumerate().filter_map(inside).unzip();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let picked = logits.index_select(&Tensor::new(rows.as_slice(), logits.device())?, 0)?;
    let columns = Tensor::new(columns, logits.device())?.unsqueeze(1)?;
    let picked: Vec<f32> = picked.gather(&columns, 1)?.flatten_all()?.to_dtype(DType::F32)?.to_vec1()?;
    Ok(rows.into_iter().map(|row| row as usize).zip(picked.into_iter().map(f64::from)).collect())
}

/// One [`Partial`] per row of logits `[rows, columns]`.
pub fn reduce(logits: &Tensor) -> Result<Vec<Partial>> {
    // Impossible tokens alone have a finite maximum as well, so that distances from it are numbers.
    let max = logits.max_keepdim(D::Minus1)?.maximum(f32::MIN)?;
    let below = logits.broadcast_sub(&max)?;
    // By a comparison, since `maximum` drops a NaN on a GPU.
    let furthest = Tensor::full(EXP_MIN, (), below.device())?.broadcast_as(below.shape())?;
    let below = below.lt(EXP_MIN)?.where_cond(&furthest, &below)?;
    let weights = below.exp()?;
    let weight = weights.sum_keepdim(D::Minus1)?;
    let mean = (&weights * &below)?.sum_keepdim(D::Minus1)?.div(&weight)?;
    let squares = (weights * below.broadcast_sub(&mean)?.sqr()?)?.sum_keepdim(D::Minus1)?;
    let column = |t: Tensor| -> Result<Vec<f32>> { t.flatten_all()?.to_vec1() };
    let (max, weight, mean, squares) = (column(max)?, column(weight)?, column(mean)?, column(squares)?);
    let numbers = |i: usize| [max[i], weight[i], mean[i], squares[i]].map(f64::from);
    let partial = |i: usize| match numbers(i) {
        // They have no weight, unless there is a NaN among them, which must be propagated.
        [_, weight, ..] if max[i] == f32::MIN => {
            Partial { max: f64::NEG_INFINITY, weight: 0.0 * weight, mean: 0.0, squares: 0.0 }
        }
        [max, weight, mean, squares] => Partial { max, weight, mean: max + mean, squares },
    };
    Ok((0..max.len()).map(partial).collect())
}

/// Rows per task.
const ROWS_AT_ONCE: usize = 32;

/// The result of a tile for one row, and the target logit if the tile contains it.
pub type TileRow = (Partial, Option<f64>);

/// The statistics of `rows` rows from the results of all tiles, given by tile and row: joined in the order of the vocabulary
/// regardless of which tile was computed first, so that the sum has a fixed order.
pub fn join_tiles(tiles: usize, rows: usize, result: impl Fn(usize, usize) -> TileRow + Sync) -> Vec<TokenStats> {
    // Without tiles the vocabulary is empty, which no checkpoint has; NaN is refused by the caller.
    let unknown = TokenStats { lp: f64::NAN, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN };
    let stats_of_row = |row: usize| {
        let joined = (0..tiles).map(|tile| result(tile, row)).reduce(|(a, x), (b, y)| (a.join(b), x.or(y)));
        joined.map_or(unknown, |(partial, target)| stats(partial, target.unwrap_or(f64::NAN)))
    };
    (0..rows).into_par_iter().with_min_len(ROWS_AT_ONCE).map(stats_of_row).collect()
}

/// The four numbers, for the logit of the observed token.
fn stats(partial: Partial, target_logit: f64) -> TokenStats {
    let lse = partial.max + partial.weight.ln();
    TokenStats {
        lp: target_logit - lse,
        mu: partial.mean - lse,
        var: partial.squares / partial.weight,
        max_lp: partial.max - lse,
    }
}
