//! Estimates of the memory that a forward pass takes beside the weights.

use super::arch::Arch;
use super::families::Network;
use super::mamba::MambaArch;
use candle_core::DType;
use std::sync::Arc;

/// Logits and what is made of them, for one tile of the vocabulary at a time.
const LOGITS_ON_CPU: u64 = 64 << 20;
const LOGITS_ON_GPU: u64 = 1 << 30;

/// Bytes that a batch of so many tokens takes, as a function; `fused` says whether the kernels of the CPU run.
pub fn of(network: &Network, dtype: DType, fused: bool) -> Arc<dyn Fn(usize) -> u64 + Send + Sync> {
    let element = dtype.size_in_bytes();
    match network {
        Network::Decoder(arch, _) => {
            let arch = arch.clone();
            Arc::new(move |tokens| decoder_bytes(&arch, tokens, element, fused))
        }
        Network::Mamba(arch, _) => {
            let arch = arch.clone();
            Arc::new(move |tokens| mamba_bytes(&arch, tokens, fused))
        }
        // Neighbours are made for one text at a time.
        Network::Masked(blueprint) => {
            let bytes = blueprint.activation_bytes(blueprint.context());
            Arc::new(move |_| bytes)
        }
    }
}

/// As [`decoder_bytes`], of Mamba, whose widest results are those of the projection into the mixer.
fn mamba_bytes(arch: &MambaArch, tokens: usize, fused: bool) -> u64 {
    let (tokens, hidden) = (tokens as u64, arch.hidden_size as u64);
    let wide = (arch.in_width() + 2 * arch.conv_channels()) as u64;
    // The plain form pads sequences of all lengths together, and holds the state of every step.
    let (padding, states) = if fused { (1, 0) } else { (4, (arch.intermediate_size * arch.state_size) as u64) };
    tokens * 4 * padding * (3 * hidden + 2 * wide) + states * 4 * 8 + if fused { LOGITS_ON_CPU } else { LOGITS_ON_GPU }
}

/// Bytes that a batch of `tokens` takes in a decoder, from above: hidden states, the widest products of a layer, scores of
/// the attention where they are held whole, and the tiles of the head. In the plain form each operation has its own result.
fn decoder_bytes(arch: &Arch, tokens: usize, element: usize, fused: bool) -> u64 {
    let [tokens, element] = [tokens as u64, element as u64];
    let (hidden, sizes) = (arch.sizes.hidden as u64, &arch.sizes);
    let (qkv, up) = (arch.qkv_width() as u64, arch.mlp_up_width() as u64);
    if fused {
        // x and its norm, then qkv and its mixture or both widths of the MLP.
        let widest = (qkv + sizes.queries() as u64).max(up + sizes.inner as u64);
        return tokens * element * (3 * hidden + widest) + LOGITS_ON_CPU;
    }
    // Sequences are padded to at most twice their length; each query meets each key of the longest.
    let keys = tokens.min(sizes.context as u64);
    let scores = 3 * 4 * (2 * tokens * keys * sizes.heads as u64).min(super::attention::MOST_SCORES as u64);
    let widest = (4 * qkv).max(2 * up + sizes.inner as u64);
    tokens * element * (6 * hidden + 2 * widest) + scores + LOGITS_ON_GPU
}
