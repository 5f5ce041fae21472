//! The reduction in candle's operations, for devices without a kernel of their own; tile by tile like its CPU twin.

use super::{Head, Partial};
use crate::models::ops::soft_cap;
use crate::token_stats::TokenStats;
use candle_core::{D, DType, Result, Tensor};

/// Elements of a tile of logits: 256 MiB of f32, and about as much again while it is reduced.
const TILE_ELEMENTS: usize = 64 << 20;
/// Least vocabulary entries of a tile, so that many rows still make large products.
const LEAST_TILE: usize = 1024;

/// `hidden weight^T + bias`, capped, in f32 or, where the model itself computes in f64, in f64.
pub fn logits(hidden: &Tensor, weight: &Tensor, bias: Option<&Tensor>, cap: Option<f64>) -> Result<Tensor> {
    let dtype = if hidden.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let product = hidden.matmul(&weight.t()?)?.to_dtype(dtype)?;
    let logits = bias.map_or(Ok(product.clone()), |b| product.broadcast_add(&b.to_dtype(dtype)?))?;
    cap.map_or(Ok(logits.clone()), |cap| soft_cap(&logits, cap))
}

pub fn logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    let weight = head.weight.tensor()?;
    let (rows, vocab) = (targets.len(), weight.dim(0)?);
    let tile = (TILE_ELEMENTS / rows.max(1)).max(LEAST_TILE).min(vocab);
    let mut joined: Vec<(Option<Partial>, f64)> = vec![(None, f64::NAN); rows];
    for first in (0..vocab).step_by(tile) {
        let count = tile.min(vocab - first);
        let part = |t: &Tensor| t.narrow(0, first, count);
        let bias = head.bias.as_ref().map(part).transpose()?;
        let logits = logits(hidden, &part(weight)?, bias.as_ref(), head.soft_cap)?;
        for (joined, partial) in joined.iter_mut().zip(reduce(&logits)?) {
            joined.0 = Some(joined.0.map_or(partial, |before| before.join(partial)));
        }
        for (row, logit) in target_logits(&logits, targets, first)? {
            joined[row].1 = logit;
        }
    }
    Ok(joined.into_iter().filter_map(|(partial, target)| Some(partial?.stats(target))).collect())
}

/// The logits of those tokens that came and that lie in this tile, with their rows: from the very logits that the rest is
/// made of, for in a half type another product would round otherwise.
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
fn reduce(logits: &Tensor) -> Result<Vec<Partial>> {
    let max = logits.max_keepdim(D::Minus1)?;
    let below = logits.broadcast_sub(&max)?.maximum(-87f32)?;
    let weights = below.exp()?;
    let weight = weights.sum_keepdim(D::Minus1)?;
    let mean = (&weights * &below)?.sum_keepdim(D::Minus1)?.div(&weight)?;
    let squares = (weights * below.broadcast_sub(&mean)?.sqr()?)?.sum_keepdim(D::Minus1)?;
    let column = |t: Tensor| -> Result<Vec<f32>> { t.flatten_all()?.to_vec1() };
    let (max, weight, mean, squares) = (column(max)?, column(weight)?, column(mean)?, column(squares)?);
    let partial = |i: usize| Partial {
        max: max[i].into(),
        weight: weight[i].into(),
        mean: f64::from(max[i]) + f64::from(mean[i]),
        squares: squares[i].into(),
    };
    Ok((0..max.len()).map(partial).collect())
}
