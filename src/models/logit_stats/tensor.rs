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
    let (rows, vocab) = (targets.len(), head.weight.dim(0)?);
    let tile = (TILE_ELEMENTS / rows.max(1)).max(LEAST_TILE).min(vocab);
    let mut joined: Vec<Option<Partial>> = vec![None; rows];
    for first in (0..vocab).step_by(tile) {
        let count = tile.min(vocab - first);
        let part = |t: &Tensor| t.narrow(0, first, count);
        let bias = head.bias.as_ref().map(part).transpose()?;
        let logits = logits(hidden, &part(&head.weight)?, bias.as_ref(), head.soft_cap)?;
        for (joined, partial) in joined.iter_mut().zip(reduce(&logits)?) {
            *joined = Some(joined.map_or(partial, |before| before.join(partial)));
        }
    }
    let targets = target_logits(hidden, head, targets)?;
    Ok(joined.into_iter().flatten().zip(targets).map(|(partial, target)| partial.stats(target)).collect())
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

/// The logit of the token that came, row by row: a dot product with one row of the head each.
fn target_logits(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<f64>> {
    let ids = Tensor::new(targets, hidden.device())?;
    let rows = head.weight.index_select(&ids, 0)?;
    let mut logits = (hidden.to_dtype(DType::F32)? * rows.to_dtype(DType::F32)?)?.sum(D::Minus1)?;
    if let Some(bias) = &head.bias {
        logits = (logits + bias.index_select(&ids, 0)?.to_dtype(DType::F32)?)?;
    }
    if let Some(cap) = head.soft_cap {
        logits = soft_cap(&logits, cap)?;
    }
    Ok(logits.to_vec1::<f32>()?.into_iter().map(f64::from).collect())
}
