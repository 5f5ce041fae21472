//! Tuning an adapter: the base stays as it is, and the matrices of a LoRA adapter learn to continue texts.
//!
//! The base is loaded in the plain form, for the fused one has no gradients. The same texts, settings and seed
//! give the same adapter, bit for bit, on one machine: the order of the texts, the initial values and the dropped inputs come
//! from seeded streams, and no sum depends on the number of threads.

mod loss;
mod settings;
mod tuned_module;
mod tuner;

#[cfg(test)]
mod tests;

pub use loss::loss_gradient;
pub use settings::{LoraSettings, OptimizerSettings, TuningSettings};
pub use tuner::{StepReport, Tuner, TuningError};

use crate::models::checkpoint::Checkpoint;
use crate::models::families::Network;
use crate::models::footprint::Workload;
use crate::models::layers::LayerPlacement;
use crate::models::ops::Form;
use candle_core::{DType, Device};
use tuner::MOST_TOKENS;

/// An estimate of the bytes of a device's memory that a tuning takes: the weights in f32, the results of every layer that the
/// gradients need, of as many tokens as run at once or of one text, and the adapter with its gradients and moments.
#[must_use]
pub fn tuning_bytes(checkpoint: &Checkpoint, device: &Device, settings: &TuningSettings) -> u64 {
    let Network::Decoder(arch, _) = &checkpoint.description.network else { return 0 };
    let sizes = &arch.sizes;
    let tokens = MOST_TOKENS.max(settings.optimizer.max_length.min(sizes.context));
    let (qkv, up) = (arch.qkv_width(), arch.mlp_up_width());
    // Residual stream and norms; queries, keys and values with their rotations; the result of attention; the MLP.
    let of_layer = 6 * sizes.hidden + 2 * qkv + sizes.queries() + 2 * up + sizes.inner;
    // The CPU computes attention in blocks, with gradients of its own; elsewhere the scores and their exponents are kept.
    let scores = if device.is_cpu() { 0 } else { 2 * sizes.heads * tokens.min(settings.optimizer.max_length) };
    let results = (tokens * sizes.layers).saturating_mul(of_layer + scores);
    // Every change has at most twice the width of the widest projection, four times over.
    let adapter = 4 * settings.lora.rank * sizes.layers * 2 * (sizes.hidden + qkv + up + sizes.inner);
    // Memory that is freed at once is that of the kernels for inference on the CPU, and of plain operations elsewhere.
    let form = if device.is_cpu() { Form::inference(device, DType::F32) } else { Form::Plain };
    let running = checkpoint.activation_bytes(form, DType::F32, LayerPlacement::Resident, Workload::Batch, 1)(tokens);
    let kept = 4 * results.saturating_add(adapter) as u64;
    checkpoint
        .weight_bytes(Form::Plain, DType::F32, LayerPlacement::Resident)
        .saturating_add(kept)
        .saturating_add(running)
}
