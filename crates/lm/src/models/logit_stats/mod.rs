//! The reduction over the vocabulary: from hidden states and head to four numbers per position. The only place that
//! handles the vocabulary dimension.
//!
//! For logits x over the vocabulary and the observed token y: `lse = ln sum e^x`, `lp = x_y - lse`,
//! `max_lp = max x - lse`, `mu = sum p (x - lse)` and `var = sum p (x - lse - mu)^2` with `p = e^(x - lse)`. Logits are
//! f32 and exist for one tile of the vocabulary at a time; tiles are joined in f64 by the pairwise update of Chan,
//! Golub and LeVeque (1983), which, unlike the difference of two large sums, cannot make a variance negative.

mod choices;
mod cpu;
mod gpu;
mod tensor;

#[cfg(test)]
mod tests;

pub use cpu::bytes as bytes_on_cpu;
pub use tensor::Head;

use super::batch::{BatchStats, PackedBatch};
use super::cuda::{RowStatistics, upload};
use super::error::ModelError;
use super::model::Pending;
use candle_core::{DType, Device, Result, Tensor};
use mia::TokenStats;
use std::ops::Range;

/// Statistics of every scored token of a batch, by sequence; `hidden` computes the input of the head,
/// `[tokens, hidden]`.
pub fn scored_stats(
    batch: &PackedBatch,
    head: &Head,
    device: &Device,
    hidden: impl FnOnce(&PackedBatch) -> std::result::Result<Tensor, ModelError>,
) -> std::result::Result<Pending<BatchStats>, ModelError> {
    let (rows, targets) = batch.scored();
    if rows.is_empty() {
        return Ok(Pending::Ready(vec![Vec::new(); batch.sequences.len()]));
    }
    check_ids(batch, head)?;
    let hidden = hidden(batch)?.index_select(&upload(&rows, device)?, 0)?;
    let lengths: Vec<usize> = batch.sequences.iter().map(|sequence| sequence.len().saturating_sub(1)).collect();
    begin_logit_stats(&hidden, head, &targets)?.then(move |stats| {
        let mut stats = stats.into_iter();
        Ok(lengths.into_iter().map(|length| stats.by_ref().take(length).collect()).collect())
    })
}

fn check_ids(batch: &PackedBatch, head: &Head) -> std::result::Result<(), ModelError> {
    let [vocab, _] = head.weight.dims()?;
    // A GPU would not report this but fail permanently.
    match batch.ids.iter().find(|&&id| id as usize >= vocab) {
        Some(id) => Err(ModelError::Forward(format!("token id {id} is outside the model's vocabulary of {vocab}"))),
        None => Ok(()),
    }
}

/// The model's first choice behind each of some rows of a batch, by range of rows; `hidden` computes the input of the head,
/// `[tokens, hidden]`. The lowest id is the first choice among equally probable ones.
pub fn first_choices(
    batch: &PackedBatch,
    ranges: &[Range<usize>],
    head: &Head,
    device: &Device,
    hidden: impl FnOnce(&PackedBatch) -> std::result::Result<Tensor, ModelError>,
) -> std::result::Result<Vec<Vec<u32>>, ModelError> {
    let rows: Vec<u32> = ranges.iter().cloned().flatten().map(|row| row as u32).collect();
    if rows.is_empty() {
        return Ok(vec![Vec::new(); ranges.len()]);
    }
    check_ids(batch, head)?;
    let hidden = hidden(batch)?.index_select(&upload(&rows, device)?, 0)?;
    let choices = if hidden.device().is_cpu() && hidden.dtype() == DType::F32 {
        cpu::first_choices(&hidden, head)?
    } else {
        choices::first_choices(&hidden, head)?
    };
    if choices.iter().any(|choice| choice.logit.is_nan()) {
        return Err(ModelError::Forward("the logits of the model are not numbers (NaN)".to_owned()));
    }
    let mut ids = choices.into_iter().map(|choice| choice.id);
    Ok(ranges.iter().map(|range| ids.by_ref().take(range.len()).collect()).collect())
}

/// Statistics of the token `targets[i]` that follows row i of `hidden` `[rows, hidden]`.
pub fn logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> std::result::Result<Vec<TokenStats>, ModelError> {
    begin_logit_stats(hidden, head, targets)?.wait()
}

/// The same, queued where a kernel does it.
fn begin_logit_stats(hidden: &Tensor, head: &Head, targets: &[u32]) -> Result<Pending<Vec<TokenStats>>> {
    let [vocab, _] = head.weight.dims()?;
    if let Some(id) = targets.iter().find(|&&id| id as usize >= vocab) {
        candle_core::bail!("token id {id} is outside the model's vocabulary of {vocab}");
    }
    if hidden.device().is_cpu() && hidden.dtype() == DType::F32 {
        return cpu::logit_stats(hidden, head, targets).map(Pending::Ready);
    }
    // Kernels do not compute gradients; a model in training uses candle's operations.
    let in_training = hidden.track_op() || head.weight.tensor()?.track_op();
    match RowStatistics::new(hidden.device())?.filter(|_| !in_training) {
        Some(kernel) => gpu::logit_stats(&kernel, hidden, head, targets),
        None => tensor::logit_stats(hidden, head, targets).map(Pending::Ready),
    }
}

/// The same in candle's operations, which run on every device: the reference for the kernels.
pub fn plain_logit_stats(
    hidden: &Tensor,
    head: &Head,
    targets: &[u32],
) -> std::result::Result<Vec<TokenStats>, ModelError> {
    Ok(tensor::logit_stats(hidden, head, targets)?)
}
