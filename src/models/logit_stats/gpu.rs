//! The reduction on a GPU: cuBLAS multiplies a tile of the vocabulary, and a kernel reduces it in one pass, in the type
//! of the product.

use super::head::Head;
use super::partial::{Partial, TileRow, join_tiles};
use super::tensor::tiles;
use crate::models::cuda::{LogitRows, RowStatistics};
use crate::token_stats::TokenStats;
use candle_core::{DType, Result, Tensor, bail};
use std::ops::Range;

pub fn logit_stats(kernel: &RowStatistics, hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    let weight = head.weight.tensor()?;
    let bias = head.bias.as_ref().map(|bias| bias.to_dtype(DType::F32)).transpose()?;
    let on_device = Tensor::new(targets, hidden.device())?;
    let queue = |entries: Range<usize>| {
        let part = |t: &Tensor| t.narrow(0, entries.start, entries.len());
        let product = hidden.matmul(&part(weight)?.t()?)?;
        let bias = bias.as_ref().map(part).transpose()?;
        let (soft_cap, first) = (head.soft_cap, entries.start);
        let rows = LogitRows { product: &product, bias: bias.as_ref(), soft_cap, targets: &on_device, first };
        Ok((entries, kernel.reduce(&rows)?))
    };
    // All tiles are queued before the first result is awaited.
    let queued: Vec<(Range<usize>, Tensor)> = tiles(targets.len(), weight.dim(0)?).map(queue).collect::<Result<_>>()?;
    let tiles = queued.into_iter().map(|(entries, numbers)| read(&entries, &numbers, targets));
    Ok(join_tiles(&tiles.collect::<Result<Vec<_>>>()?, targets.len()))
}

/// The kernel's results for the rows of a tile.
fn read(entries: &Range<usize>, numbers: &Tensor, targets: &[u32]) -> Result<Vec<TileRow>> {
    let row = |(numbers, target): (Vec<f32>, &u32)| {
        let &[max, weight, mean, squares, logit] = numbers.as_slice() else {
            bail!("the row statistics kernel returned a row of {numbers:?}")
        };
        let [max, weight, mean, squares, logit] = [max, weight, mean, squares, logit].map(f64::from);
        let partial = Partial { max, weight, mean: max + mean, squares };
        Ok((partial, entries.contains(&(*target as usize)).then_some(logit)))
    };
    numbers.to_vec2()?.into_iter().zip(targets).map(row).collect()
}
