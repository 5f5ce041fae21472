//! The reduction on a GPU: cuBLAS multiplies a tile of the vocabulary, and a kernel reduces it in one pass. Logits are in
//! f32 whatever the type of the head: half of one unit in the last place of a bf16 logit of 20 is 0.06.

use super::tensor::{Head, join_tiles, tiles};
use crate::models::cuda::{self, LogitRows, ReadBack, RowStatistics};
use crate::models::model::Pending;
use candle_core::{DType, Result, Tensor, bail};
use kernels::cuda::ROW_NUMBERS;
use kernels::row_statistics::Partial;
use mia::TokenStats;
use std::ops::Range;

pub fn logit_stats(
    kernel: &RowStatistics,
    hidden: &Tensor,
    head: &Head,
    targets: &[u32],
) -> Result<Pending<Vec<TokenStats>>> {
    if targets.is_empty() {
        return Ok(Pending::Ready(Vec::new()));
    }
    let weight = head.weight.tensor()?;
    let bias = head.bias.as_ref().map(|bias| bias.to_dtype(DType::F32)).transpose()?;
    let on_device = cuda::upload(targets, hidden.device())?;
    let queue = |entries: &Range<usize>| {
        let part = |t: &Tensor| t.narrow(0, entries.start, entries.len());
        let product = cuda::product(hidden, &part(weight)?, true, DType::F32)?;
        let bias = bias.as_ref().map(part).transpose()?;
        let (soft_cap, first) = (head.soft_cap, entries.start);
        kernel.reduce(&LogitRows { product: &product, bias: bias.as_ref(), soft_cap, targets: &on_device, first })
    };
    let tiles: Vec<Range<usize>> = tiles(targets.len(), weight.dim(0)?).collect();
    let reduced: Vec<Tensor> = tiles.iter().map(queue).collect::<Result<_>>()?;
    // One transfer of all results.
    let reduced = ReadBack::queue(&Tensor::cat(&reduced, 0)?)?;
    let targets = targets.to_vec();
    Ok(Pending::queued(move || Ok(joined(&reduced.wait()?, &tiles, &targets)?)))
}

/// The statistics from the results of all tiles, one tile after another.
fn joined(numbers: &[f32], tiles: &[Range<usize>], targets: &[u32]) -> Result<Vec<TokenStats>> {
    let (rows, rest) = numbers.as_chunks::<ROW_NUMBERS>();
    if rows.len() != tiles.len() * targets.len() || !rest.is_empty() {
        bail!("the row statistics kernel returned {} numbers for {} rows", numbers.len(), targets.len())
    }
    Ok(join_tiles(tiles.len(), targets.len(), |tile, row| {
        let [max, weight, mean, squares, logit] = rows[tile * targets.len() + row].map(f64::from);
        let partial = Partial { max, weight, mean: max + mean, squares };
        (partial, tiles[tile].contains(&(targets[row] as usize)).then_some(logit))
    }))
}
