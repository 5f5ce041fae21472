//! The model's first choice at a position: the token with the largest logit and, of equal ones, the one with the lowest id, as
//! `torch.argmax` chooses on a CPU.

use super::tensor::{Head, logits, tiles, with_bias_and_cap};
use crate::models::cuda;
use candle_core::{D, DType, Result, Tensor};
use std::ops::Range;

/// The token with the largest logit of a row, or of a tile of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstChoice {
    /// NaN if one of the logits is.
    pub logit: f64,
    pub id: u32,
}

impl FirstChoice {
    /// The choice among both; those of `later` have the higher ids.
    fn join(self, later: Self) -> Self {
        let is_larger = later.logit > self.logit || later.logit.is_nan();
        if is_larger && !self.logit.is_nan() { later } else { self }
    }

    /// The choices by row from those by tile and row, the tiles in the order of the vocabulary.
    pub fn join_tiles(tiles: &[Vec<Self>]) -> Vec<Self> {
        let rows = tiles.first().map_or(0, Vec::len);
        (0..rows).filter_map(|row| tiles.iter().map(|tile| tile[row]).reduce(Self::join)).collect()
    }
}

/// The choice behind each row of `hidden` `[rows, hidden]`, in candle's operations, tile by tile.
pub fn first_choices(hidden: &Tensor, head: &Head) -> Result<Vec<FirstChoice>> {
    let weight = head.weight.tensor()?;
    let chosen = |entries: Range<usize>| {
        let part = |tensor: &Tensor| tensor.narrow(0, entries.start, entries.len());
        let bias = head.bias.as_ref().map(part).transpose()?;
        let logits = if hidden.device().is_cuda() {
            // In f32 whatever the type of the head, as for the statistics.
            let product = cuda::product(hidden, &part(weight)?, true, DType::F32)?;
            with_bias_and_cap(product, bias.as_ref(), head.soft_cap)?
        } else {
            logits(hidden, &part(weight)?, bias.as_ref(), head.soft_cap)?
        };
        choose(&logits, entries.start)
    };
    let tiles: Vec<Vec<FirstChoice>> = tiles(hidden.dim(0)?, weight.dim(0)?).map(chosen).collect::<Result<_>>()?;
    Ok(FirstChoice::join_tiles(&tiles))
}

/// The choice of each row of logits `[rows, columns]`. candle's `argmax` on a GPU takes any of several equal logits, so the
/// lowest column of the largest logit is found by comparison.
pub(super) fn choose(logits: &Tensor, first: usize) -> Result<Vec<FirstChoice>> {
    let (_, columns) = logits.dims2()?;
    let max = logits.max_keepdim(D::Minus1)?;
    let column = Tensor::arange(0, columns as u32, logits.device())?.broadcast_as(logits.shape())?;
    let beyond = Tensor::full(columns as u32, logits.shape(), logits.device())?;
    let lowest = logits.broadcast_eq(&max)?.where_cond(&column, &beyond)?.min(D::Minus1)?;
    // On a GPU the maximum drops a NaN.
    let has_nan: Vec<u8> = logits.ne(logits)?.max(D::Minus1)?.to_vec1()?;
    let max: Vec<f64> = max.flatten_all()?.to_dtype(DType::F64)?.to_vec1()?;
    let lowest: Vec<u32> = lowest.to_vec1()?;
    let choice = |((logit, column), has_nan): ((f64, u32), u8)| FirstChoice {
        logit: if has_nan == 0 { logit } else { f64::NAN },
        id: first as u32 + column,
    };
    Ok(max.into_iter().zip(lowest).zip(has_nan).map(choice).collect())
}
