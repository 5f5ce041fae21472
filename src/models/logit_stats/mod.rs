//! The reduction over the vocabulary: hidden states and head to four numbers per position. The only place that sees V.
//!
//! For logits x over the vocabulary and the token y that came: `lse = ln sum e^x`, `lp = x_y - lse`, `max_lp = max x - lse`,
//! `mu = sum p (x - lse)` and `var = sum p (x - lse - mu)^2` with `p = e^(x - lse)`. Logits are f32 and exist one tile of
//! the vocabulary at a time; tiles are joined in f64 by the pairwise update of Chan, Golub and LeVeque (1983), which, unlike
//! the difference of two large sums, cannot make a variance negative.

mod cpu;
mod gpu;
mod tensor;

pub use cpu::bytes as bytes_on_cpu;

use super::ModelError;
use super::batch::PackedBatch;
use super::cuda::RowStatistics;
use super::ops::Weight;
use crate::token_stats::TokenStats;
use candle_core::{DType, Device, Result, Tensor};
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
    /// Whole logits `[rows, vocab]`, differentiable.
    pub(super) fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        tensor::logits(hidden, self.weight.tensor()?, self.bias.as_ref(), self.soft_cap)
    }
}

/// Statistics of every scored token of a batch, by sequence; `hidden` gives what the head multiplies, `[tokens, hidden]`.
///
/// # Errors
/// As [`CausalLm::token_stats`](super::CausalLm::token_stats).
pub fn scored_stats(
    batch: &PackedBatch,
    head: &Head,
    device: &Device,
    hidden: impl FnOnce(&PackedBatch) -> Result<Tensor>,
) -> std::result::Result<Vec<Vec<TokenStats>>, ModelError> {
    let (rows, targets) = batch.scored();
    if rows.is_empty() {
        return Ok(vec![Vec::new(); batch.sequences.len()]);
    }
    let [vocab, _] = head.weight.dims()?;
    // A GPU would not say so: it would fail for good.
    if let Some(id) = batch.ids.iter().find(|&&id| id as usize >= vocab) {
        return Err(ModelError::Forward(format!("token id {id} lies outside the model's vocabulary of {vocab}")));
    }
    let hidden = hidden(batch)?.index_select(&Tensor::new(rows, device)?, 0)?;
    let mut stats = logit_stats(&hidden, head, &targets)?.into_iter();
    let scored = |sequence: &Range<usize>| stats.by_ref().take(sequence.len().saturating_sub(1)).collect();
    Ok(batch.sequences.iter().map(scored).collect())
}

/// Statistics of the token `targets[i]` that followed row i of `hidden` `[rows, hidden]`.
///
/// # Errors
/// Where the device fails; a target outside the vocabulary is refused.
pub fn logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    let [vocab, _] = head.weight.dims()?;
    if let Some(id) = targets.iter().find(|&&id| id as usize >= vocab) {
        candle_core::bail!("token id {id} lies outside the model's vocabulary of {vocab}");
    }
    if hidden.device().is_cpu() && hidden.dtype() == DType::F32 {
        return cpu::logit_stats(hidden, head, targets);
    }
    // Kernels know no gradients; a model in training keeps to candle's operations.
    let in_training = hidden.track_op() || head.weight.tensor()?.track_op();
    match RowStatistics::new(hidden.device(), hidden.dtype())?.filter(|_| !in_training) {
        Some(kernel) => gpu::logit_stats(&kernel, hidden, head, targets),
        None => tensor::logit_stats(hidden, head, targets),
    }
}

/// The same in candle's operations, which run on every device: what the kernels are compared with.
///
/// # Errors
/// As [`logit_stats`].
pub fn plain_logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Vec<TokenStats>> {
    tensor::logit_stats(hidden, head, targets)
}

/// The distribution over the part of the vocabulary seen so far, weights taken relative to `e^max`.
#[derive(Clone, Copy, Debug)]
struct Partial {
    max: f64,
    /// Sum of `e^(x - max)`.
    weight: f64,
    /// Weighted mean of x.
    mean: f64,
    /// Weighted sum of squared deviations from the mean.
    squares: f64,
}

/// What a tile says of one row, and the target's logit where the tile holds it.
type RowOfTile = (Partial, Option<f64>);

/// The statistics of so many rows, each tile having all of them. Joined in the order of the vocabulary, whichever was
/// first: the sum has one order.
fn join_tiles(tiles: &[Vec<RowOfTile>], rows: usize) -> Vec<TokenStats> {
    // No tile at all is an empty vocabulary, which no checkpoint has; NaN is refused further up.
    let unknown = TokenStats { lp: f64::NAN, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN };
    let of_row = |row: usize| {
        let joined = tiles.iter().map(|tile| tile[row]).reduce(|(a, x), (b, y)| (a.join(b), x.or(y)));
        joined.map_or(unknown, |(partial, target)| partial.stats(target.unwrap_or(f64::NAN)))
    };
    (0..rows).map(of_row).collect()
}

impl Partial {
    /// Both parts as one.
    fn join(self, other: Self) -> Self {
        // A part of impossible tokens alone says nothing; the distance of two such maxima would be NaN.
        if other.weight == 0.0 {
            return self;
        }
        if self.weight == 0.0 {
            return other;
        }
        let max = self.max.max(other.max);
        let (a, b) = ((self.max - max).exp(), (other.max - max).exp());
        let (wa, wb) = (self.weight * a, other.weight * b);
        let weight = wa + wb;
        let delta = other.mean - self.mean;
        Self {
            max,
            weight,
            mean: self.mean + delta * wb / weight,
            squares: self.squares * a + other.squares * b + delta * delta * wa * wb / weight,
        }
    }

    /// The four numbers, for the logit of the token that came.
    fn stats(self, target_logit: f64) -> TokenStats {
        let lse = self.max + self.weight.ln();
        TokenStats {
            lp: target_logit - lse,
            mu: self.mean - lse,
            var: self.squares / self.weight,
            max_lp: self.max - lse,
        }
    }
}

#[cfg(test)]
mod tests;
