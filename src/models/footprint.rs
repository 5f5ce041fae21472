//! Estimates of the memory that weights take, and a forward pass beside them.

use super::arch::Arch;
use super::families::Network;
use super::kernels::packed::{Products, packed_bytes};
use super::logit_stats;
use super::mamba::MambaArch;
use super::ops::{Form, Multiply};
use super::weights::Weights;
use candle_core::DType;
use safetensors::Dtype;
use std::sync::Arc;

/// Buffers of products, and what an allocator keeps.
const BUFFERS_ON_CPU: f64 = 64.0 * MIB;
/// Logits and what is made of them, for one tile of the vocabulary at a time.
const LOGITS_ON_GPU: f64 = 2048.0 * MIB;
const MIB: f64 = 1024.0 * 1024.0;

/// What a number of tokens stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A batch of any texts, which the plain form pads.
    Batch,
    /// One text alone.
    OneText,
}

/// Bytes that so many tokens take, as a function.
pub fn of(network: &Network, form: Form, dtype: DType, load: Load) -> Arc<dyn Fn(usize) -> u64 + Send + Sync> {
    let (element, fused) = (element_bytes(form, dtype), form.is_fused());
    match network {
        Network::Decoder(arch, _) => {
            let arch = arch.clone();
            Arc::new(move |tokens| decoder_bytes(&arch, tokens, element, form, load))
        }
        Network::Mamba(arch, _) => {
            let arch = arch.clone();
            Arc::new(move |tokens| mamba_bytes(&arch, tokens, fused, load))
        }
        Network::Masked(blueprint) => {
            let shape = blueprint.shape();
            Arc::new(move |tokens| shape.activation_bytes(tokens))
        }
    }
}

/// Bytes of the weights once loaded, from above: where they are packed, panels fill up.
pub fn of_weights(network: &Network, weights: &Weights, form: Form, dtype: DType) -> u64 {
    let plain = element_bytes(form, dtype);
    let used = || weights.names().filter(|name| !network.ignores(name));
    let matrix = |name: &str| match weights.shape(name) {
        Some(&[n, k]) if network.is_matrix(name, &[n, k]) => Some([n, k]),
        _ => None,
    };
    let all_stored_in =
        |dtype| used().filter(|name| matrix(name).is_some()).all(|name| weights.dtype(name) == Some(dtype));
    let in_halves = || [Dtype::F16, Dtype::BF16].into_iter().any(all_stored_in);
    let packed = match form {
        Form::Fused(Multiply::Packed(products, _)) => {
            Some(if products == Products::Bf16 || in_halves() { 2 } else { 4 })
        }
        Form::Fused(Multiply::Gemm) | Form::Plain => None,
    };
    let bytes = |name: &str| match (packed, matrix(name)) {
        // Some families store `[in, out]`.
        (Some(size), Some([n, k])) => packed_bytes([n, k], size).max(packed_bytes([k, n], size)),
        _ => weights.shape(name).map_or(0, |shape| shape.iter().product::<usize>().saturating_mul(plain)),
    };
    used().map(|name| bytes(name) as u64).sum()
}

/// Bytes of what is neither packed nor rounded: the fused form computes in f32.
fn element_bytes(form: Form, dtype: DType) -> usize {
    if form.is_fused() { DType::F32.size_in_bytes() } else { dtype.size_in_bytes() }
}

/// Bytes on the CPU that do not grow with the tokens.
fn beside_on_cpu(vocab: usize) -> f64 {
    logit_stats::bytes_on_cpu(vocab, threads()) as f64 + BUFFERS_ON_CPU
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// As [`decoder_bytes`], of Mamba, whose widest results are those of the projection into the mixer.
fn mamba_bytes(arch: &MambaArch, tokens: usize, fused: bool, load: Load) -> u64 {
    let width = 3.0 * arch.hidden_size as f64 + 2.0 * (arch.in_width() + 2 * arch.conv_channels()) as f64;
    let states = (arch.intermediate_size * arch.state_size) as f64;
    let bytes = if fused {
        tokens as f64 * 4.0 * width + beside_on_cpu(arch.vocab_size)
    } else {
        // Padded to at most twice the length; a few copies of the state of every sequence, which has two tokens at least.
        let (padding, sequences) = match load {
            Load::Batch => (2.0, tokens as f64 / 2.0),
            Load::OneText => (1.0, 1.0),
        };
        4.0 * (tokens as f64 * padding * width + sequences * 4.0 * states) + LOGITS_ON_GPU
    };
    bytes as u64
}

/// Bytes that a batch of `tokens` takes in a decoder, from above: hidden states, the widest products of a layer, scores of
/// the attention where they are held whole, and the tiles of the head. In the plain form each operation has its own result.
fn decoder_bytes(arch: &Arch, tokens: usize, element: usize, form: Form, load: Load) -> u64 {
    // In f64, which neither overflows nor minds being off by a byte; the conversion at the end saturates.
    let [tokens, element, hidden] = [tokens, element, arch.sizes.hidden].map(|n| n as f64);
    let (sizes, keys) = (&arch.sizes, tokens.min(arch.sizes.context as f64));
    let (qkv, up, inner) = (arch.qkv_width() as f64, arch.mlp_up_width() as f64, sizes.inner as f64);
    let bytes = if form.is_fused() {
        // x and its norm, then qkv and its mixture or both widths of the MLP; and in the attention each thread has the
        // queries, keys and a block of scores of one head.
        let widest = (qkv + sizes.queries() as f64).max(up + inner);
        let scratch = threads() as f64 * keys * 4.0 * (2.0 * sizes.head_dim as f64 + 64.0);
        // Where products are of bf16, what is multiplied stands there once more in two bytes.
        let rounds = matches!(form, Form::Fused(Multiply::Packed(Products::Bf16, _)));
        let rounded = if rounds { inner.max(hidden) / 2.0 } else { 0.0 };
        tokens * element * (3.0 * hidden + widest + rounded) + scratch + beside_on_cpu(sizes.vocab)
    } else {
        // Sequences are padded to at most twice their length; of the scores several copies live at once.
        let padding = if load == Load::Batch { 2.0 } else { 1.0 };
        let scores = (padding * tokens * keys * sizes.heads as f64).min(super::attention::MOST_SCORES as f64);
        let widest = (2.0 * padding * qkv).max(2.0 * up + inner);
        tokens * element * (6.0 * hidden + 2.0 * widest) + 6.0 * 4.0 * scores + LOGITS_ON_GPU
    };
    bytes as u64
}
