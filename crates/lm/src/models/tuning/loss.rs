//! Cross-entropy over the vocabulary, and its gradient with respect to the input of the head.

use crate::models::logit_stats::Head;
use candle_core::{D, Device, Result, Tensor, bail};
use candle_nn::ops::softmax;
use rayon::prelude::*;

/// Logits that exist at a time: 64 MiB of f32.
const MOST_LOGITS: usize = 16 << 20;

/// The sum over the rows of `-ln p(target)`, and `share` times its gradient with respect to `hidden` `[rows, width]`. The
/// weights of the head have none, and logits exist for a few rows at a time.
pub fn loss_gradient(head: &Head, hidden: &Tensor, targets: &[u32], share: f64) -> Result<(f64, Tensor)> {
    let weight = head.weight.tensor()?;
    let [vocab, _] = head.weight.dims()?;
    if let Some(id) = targets.iter().find(|&&id| id as usize >= vocab) {
        bail!("token id {id} is outside the model's vocabulary of {vocab}");
    }
    let hidden = hidden.detach();
    let at_once = (MOST_LOGITS / vocab).max(1);
    let (mut loss, mut gradients) = (0.0, Vec::new());
    for (index, targets) in targets.chunks(at_once).enumerate() {
        let rows = hidden.narrow(0, index * at_once, targets.len())?;
        let logits = head.logits(&rows)?;
        let reduce = if logits.device().is_cpu() { on_cpu } else { in_tensors };
        let (sum, gradient) = reduce(&logits, targets, share)?;
        let gradient = match head.soft_cap {
            // Of `cap tanh(x / cap)`.
            Some(cap) => gradient.mul(&(1.0 - (logits / cap)?.sqr()?)?)?,
            None => gradient,
        };
        loss += sum;
        gradients.push(gradient.to_dtype(weight.dtype())?.matmul(weight)?);
    }
    Ok((loss, Tensor::cat(&gradients, 0)?))
}

/// Row by row: `share (softmax - one-hot)`.
fn on_cpu(logits: &Tensor, targets: &[u32], share: f64) -> Result<(f64, Tensor)> {
    let shape = logits.dims2()?;
    let mut values: Vec<f32> = logits.flatten_all()?.to_vec1()?;
    let rows = values.par_chunks_mut(shape.1).zip(targets).map(|(row, &target)| {
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let observed = row[target as usize];
        let mut sum = 0f64;
        for value in row.iter_mut() {
            *value = (*value - max).exp();
            sum += f64::from(*value);
        }
        let scale = (share / sum) as f32;
        row.iter_mut().for_each(|value| *value *= scale);
        row[target as usize] -= share as f32;
        sum.ln() + f64::from(max) - f64::from(observed)
    });
    // Collected, so that the order of the sum is that of the rows.
    let losses: Vec<f64> = rows.collect();
    Ok((losses.iter().sum(), Tensor::from_vec(values, shape, &Device::Cpu)?))
}

/// The same in candle's operations, for devices without a kernel.
fn in_tensors(logits: &Tensor, targets: &[u32], share: f64) -> Result<(f64, Tensor)> {
    let targets = Tensor::new(targets, logits.device())?.unsqueeze(1)?;
    let observed = logits.gather(&targets, 1)?;
    let losses = logits.log_sum_exp(D::Minus1)?.sub(&observed.squeeze(1)?)?;
    let ones = observed.ones_like()?;
    let gradient = softmax(logits, D::Minus1)?.scatter_add(&targets, &ones.neg()?, 1)?;
    let losses: Vec<f32> = losses.to_vec1()?;
    Ok((losses.iter().copied().map(f64::from).sum(), (gradient * share)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_the_same() {
        let logits: Vec<f32> = (0..7 * 33).map(|i| ((i * 37 % 101) as f32 - 50.0) / 9.0).collect();
        let logits = Tensor::from_vec(logits, (7, 33), &Device::Cpu).unwrap();
        let targets = [0, 32, 5, 5, 17, 1, 30];
        let (loss, gradient) = on_cpu(&logits, &targets, 0.25).unwrap();
        let (other, expected) = in_tensors(&logits, &targets, 0.25).unwrap();
        // f32 sums of 33 terms.
        assert!((loss - other).abs() < 1e-5, "{loss} {other}");
        let difference = (gradient - expected).unwrap().abs().unwrap().max_all().unwrap();
        assert!(difference.to_scalar::<f32>().unwrap() < 1e-6);
    }
}
