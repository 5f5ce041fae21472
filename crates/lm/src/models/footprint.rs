//! Estimates of the memory that weights take, and that a forward pass takes in addition.

use super::arch::Arch;
use super::cuda::attention_tiling;
use super::families::Network;
use super::gguf::TensorType;
use super::layers::{LayerPlacement, TOKENS_AT_ONCE, readers};
use super::logit_stats;
use super::lora::LayerProjection;
use super::mamba::MambaArch;
use super::ops::{Form, Multiply};
use super::weights::Weights;
use candle_core::DType;
use kernels::packed::{Element, Isa, Packed, Products, packed_bytes, read_bytes, scratch_bytes};
use safetensors::Dtype;
use std::sync::Arc;
use strum::VariantArray;

/// Buffers of products, and the allocator's reserve.
const BUFFERS_ON_CPU: f64 = 64.0 * MIB;
/// Logits and the intermediate results computed from them, for one tile of the vocabulary at a time.
const LOGITS_ON_GPU: f64 = 2048.0 * MIB;
/// A matrix that is transposed where those of layers are.
const QKV: &str = "layers.0.qkv.weight";
const MIB: f64 = 1024.0 * 1024.0;

/// Distribution of a number of tokens over texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A batch of any texts, which the plain form pads.
    Batch,
    OneText,
}

/// The bytes that a number of tokens takes, as a function of it; on the CPU with `threads` threads, each of which has
/// buffers of its own.
pub fn activation_bytes(
    network: &Network,
    form: Form,
    dtype: DType,
    layers: LayerPlacement,
    workload: Workload,
    threads: usize,
) -> Arc<dyn Fn(usize) -> u64 + Send + Sync> {
    let element = element_bytes(form, dtype);
    match network {
        Network::Decoder(arch, _) => {
            let arch = arch.clone();
            let of_part = move |arch: &Arch, tokens| decoder_bytes(arch, tokens, element, form, workload, threads);
            match layers {
                LayerPlacement::Resident => Arc::new(move |tokens| of_part(&arch, tokens)),
                LayerPlacement::Streamed => Arc::new(move |tokens| {
                    let part = tokens.min(TOKENS_AT_ONCE.max(arch.sizes.context));
                    of_part(&arch, part).saturating_add(state_bytes(&arch, tokens))
                }),
            }
        }
        Network::Mamba(arch, _) => {
            let arch = arch.clone();
            Arc::new(move |tokens| mamba_bytes(&arch, tokens, form, workload, threads))
        }
        Network::Masked(blueprint) => {
            let shape = blueprint.shape;
            Arc::new(move |tokens| shape.activation_bytes(tokens))
        }
    }
}

/// Bytes of the hidden states of all tokens between two streamed layers: as the parts of a batch have them, joined, and picked for
/// the head.
fn state_bytes(arch: &Arch, tokens: usize) -> u64 {
    let states = arch.sizes.hidden.max(arch.embedding_width()).saturating_mul(3 * DType::F32.size_in_bytes());
    states.saturating_mul(tokens) as u64
}

/// An upper estimate of the bytes of the weights once loaded: packed weights are padded to whole panels. Of streamed layers two
/// are in memory, and what reading one of their matrices takes.
pub fn weight_bytes(network: &Network, weights: &Weights, form: Form, dtype: DType, layers: LayerPlacement) -> u64 {
    let plain = element_bytes(form, dtype);
    let used = || weights.names().filter(|name| !network.ignores(name));
    let matrix = |name: &str| match weights.shape(name) {
        Some(&[n, k]) if network.is_matrix(name, &[n, k]) => Some([n, k]),
        _ => None,
    };
    let all_have_type = |dtype| {
        used().filter(|name| matrix(name).is_some()).all(|name| weights.kind(name) == Some(TensorType::Plain(dtype)))
    };
    let packed = match form {
        Form::Fused(Multiply::Packed(products, isa)) => {
            let element = match products {
                Products::Bf16 => Element::Bf16,
                _ if all_have_type(Dtype::BF16) => Element::Bf16,
                _ if all_have_type(Dtype::F16) => Element::F16,
                _ => Element::F32,
            };
            Some(PackedForm { element, products, isa })
        }
        Form::Fused(Multiply::Gemm) | Form::Gpu(_) | Form::Plain => None,
    };
    let in_blocks = |name: &str| {
        form.isa_for_blocks()?;
        let parts = network.parts_with(name);
        let place = parts.iter().position(|part| part == name)?;
        Some(weights.block_formats(&parts)?.get(place)?.packed_bytes(matrix(name)?))
    };
    let otherwise = |name: &str| match (packed, matrix(name)) {
        (Some(form), Some(shape)) if network.is_embedding(name) => form.embedding_bytes(shape, network.has_tied_head()),
        // Some families store `[in, out]`.
        (Some(form), Some([n, k])) => form.bytes([n, k]).max(form.bytes([k, n])),
        _ => weights.shape(name).map_or(0, |shape| shape.iter().product::<usize>().saturating_mul(plain)),
    };
    let bytes = |name: &str| in_blocks(name).unwrap_or_else(|| otherwise(name));
    let sum = |names: &mut dyn Iterator<Item = &str>| names.map(|name| bytes(name) as u64).fold(0, u64::saturating_add);
    match (layers, network) {
        (LayerPlacement::Streamed, Network::Decoder(arch, storage)) => {
            let layers = sum(&mut used().filter(|name| network.is_of_layer(name)));
            let layer = layers.div_ceil(arch.sizes.layers.max(1) as u64);
            let around = sum(&mut used().filter(|name| !network.is_of_layer(name)));
            let are_rows = |form: &PackedForm| !storage.is_transposed(QKV) && all_have_type(stored_as(form.element));
            around.saturating_add(layer.saturating_mul(2)).saturating_add(reading_bytes(arch, packed.filter(are_rows)))
        }
        _ => sum(&mut used()),
    }
}

/// Bytes that reading the largest matrix of a layer takes: the rows that each thread reads, where they are packed as they are stored,
/// with as many between them; otherwise the matrix in f32 as it is stored, in canonical order, and in the type that is packed.
fn reading_bytes(arch: &Arch, by_rows: Option<PackedForm>) -> u64 {
    let bytes = |[n, k]: [usize; 2]| match by_rows {
        Some(form) => readers().saturating_mul(2 * read_bytes(k, form.element, form.products, form.isa)),
        None => n.saturating_mul(k).saturating_mul(12),
    };
    LayerProjection::VARIANTS.iter().map(|projection| bytes(projection.shape(arch))).max().unwrap_or(0) as u64
}

/// The type on disk of weights that are packed as they are.
fn stored_as(element: Element) -> Dtype {
    match element {
        Element::F32 => Dtype::F32,
        Element::F16 => Dtype::F16,
        Element::Bf16 => Dtype::BF16,
    }
}

/// Parameters of packed matrices.
#[derive(Clone, Copy)]
struct PackedForm {
    element: Element,
    products: Products,
    isa: Isa,
}

impl PackedForm {
    /// Bytes of packed weights `[n, k]`.
    fn bytes(self, shape: [usize; 2]) -> usize {
        packed_bytes(shape, self.element, self.products, self.isa)
    }

    /// Bytes of an embedding `[vocab, width]`, which is packed if the head has the same weights. It is there as well where
    /// packing does not keep it.
    fn embedding_bytes(self, [vocab, width]: [usize; 2], tied: bool) -> usize {
        let plain = vocab.saturating_mul(width).saturating_mul(self.element.bytes());
        let packed = if tied { self.bytes([vocab, width]) } else { 0 };
        let kept = tied && Packed::keeps_weights(self.element, self.isa);
        packed.saturating_add(if kept { 0 } else { plain })
    }
}

/// Bytes per element that is neither packed nor rounded: the fused form computes in f32.
fn element_bytes(form: Form, dtype: DType) -> usize {
    if form.is_fused() { DType::F32.size_in_bytes() } else { dtype.size_in_bytes() }
}

/// Bytes on the CPU that do not grow with the number of tokens.
fn fixed_bytes_on_cpu(vocab: usize, threads: usize) -> f64 {
    logit_stats::bytes_on_cpu(vocab, threads) as f64 + BUFFERS_ON_CPU
}

/// Bytes that threads keep for products with up to `n` outputs.
fn scratch_bytes_on_cpu(form: Form, n: usize, threads: usize) -> f64 {
    match form {
        Form::Fused(Multiply::Packed(_, isa)) => threads as f64 * scratch_bytes(n, isa) as f64,
        Form::Fused(Multiply::Gemm) | Form::Gpu(_) | Form::Plain => 0.0,
    }
}

/// Bytes per element of the second form of an input of products: bf16, or as many of them as it has terms.
fn converted_bytes(form: Form) -> f64 {
    match form {
        Form::Fused(Multiply::Packed(Products::Bf16, _)) => 2.0,
        Form::Fused(Multiply::Packed(Products::F32, isa)) if isa.is_tiled() => 6.0,
        Form::Fused(_) | Form::Gpu(_) | Form::Plain => 0.0,
    }
}

/// The estimate of [`decoder_bytes`] for Mamba, whose widest results are those of the projection into the mixer.
fn mamba_bytes(arch: &MambaArch, tokens: usize, form: Form, workload: Workload, threads: usize) -> u64 {
    let width = 3.0 * arch.hidden_size as f64 + 2.0 * (arch.in_width() + 2 * arch.conv_channels()) as f64;
    let states = (arch.intermediate_size * arch.state_size) as f64;
    let bytes = if form.is_fused() {
        let inputs = arch.hidden_size.max(arch.intermediate_size) as f64;
        let per_token = 4.0 * width + converted_bytes(form) * inputs;
        tokens as f64 * per_token
            + scratch_bytes_on_cpu(form, arch.in_width(), threads)
            + fixed_bytes_on_cpu(arch.vocab_size, threads)
    } else if let Form::Gpu(_) = form {
        // The scan keeps its states in registers; norms and activations have results of their own.
        4.0 * tokens as f64 * (1.5 * width) + LOGITS_ON_GPU
    } else {
        // Padded to at most twice the length; a few copies of the state of every sequence, each of which has at least
        // two tokens.
        let (padding, sequences) = match workload {
            Workload::Batch => (2.0, tokens as f64 / 2.0),
            Workload::OneText => (1.0, 1.0),
        };
        4.0 * (tokens as f64 * padding * width + sequences * 4.0 * states) + LOGITS_ON_GPU
    };
    bytes as u64
}

/// An upper estimate of the bytes that a batch of `tokens` takes in a decoder: hidden states, the widest products of a
/// layer, the attention scores if they are held whole, and the tiles of the head. In the plain form, each operation
/// allocates its result.
fn decoder_bytes(arch: &Arch, tokens: usize, element: usize, form: Form, workload: Workload, threads: usize) -> u64 {
    // In f64, which does not overflow and tolerates being off by a byte; the conversion at the end saturates.
    let [tokens, element, hidden] = [tokens, element, arch.sizes.hidden].map(|n| n as f64);
    let (sizes, keys) = (&arch.sizes, tokens.min(arch.sizes.context as f64));
    let (qkv, up, inner) = (arch.qkv_width() as f64, arch.mlp_up_width() as f64, sizes.inner as f64);
    let bytes = if form.is_fused() {
        // x and its norm, then either qkv and the result of attention or both widths of the MLP; in attention, each
        // thread has the queries, the keys and a block of scores of one head.
        let widest = (qkv + sizes.queries() as f64).max(up + inner);
        let scratch = threads as f64 * keys * 4.0 * (2.0 * sizes.head_dim as f64 + 64.0);
        tokens * (element * (3.0 * hidden + widest) + converted_bytes(form) * inner.max(hidden))
            + scratch
            + scratch_bytes_on_cpu(form, arch.qkv_width().max(arch.mlp_up_width()), threads)
            + fixed_bytes_on_cpu(sizes.vocab, threads)
    } else if let Form::Gpu(dtype) = form
        && attention_tiling(sizes.head_dim, dtype).is_some()
    {
        // The residual stream, its norm, and either qkv and the result of attention or both widths of the MLP.
        let widest = (qkv + sizes.queries() as f64).max(up + inner);
        tokens * (4.0 * hidden + element * (2.0 * hidden + widest)) + LOGITS_ON_GPU
    } else {
        // Sequences are padded to at most twice their length; several copies of the scores exist at a time.
        let padding = if workload == Workload::Batch { 2.0 } else { 1.0 };
        let scores = (padding * tokens * keys * sizes.heads as f64).min(super::attention::MOST_SCORES as f64);
        let widest = (2.0 * padding * qkv).max(2.0 * up + inner);
        tokens * element * (6.0 * hidden + 2.0 * widest) + 6.0 * 4.0 * scores + LOGITS_ON_GPU
    };
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::arch::Sizes;
    use crate::models::mamba::arch::Generation;

    #[test]
    fn an_embedding_is_packed_only_where_the_head_has_its_weights() {
        let [vocab, width] = [100, 40];
        for (element, plain) in [(Element::F32, 16_000), (Element::F16, 8_000), (Element::Bf16, 8_000)] {
            for isa in [Isa::Avx512, Isa::AmxEmulated] {
                let form = PackedForm { element, products: Products::F32, isa };
                assert_eq!(form.embedding_bytes([vocab, width], false), plain);
                let both = isa.is_tiled() && element == Element::F32;
                let tied = form.bytes([vocab, width]) + if both { plain } else { 0 };
                assert_eq!(form.embedding_bytes([vocab, width], true), tied, "{element:?} {isa:?}");
            }
        }
        // Three terms of two bytes: 4 panels of 32 columns, two steps of 32.
        let tiles = PackedForm { element: Element::F32, products: Products::F32, isa: Isa::AmxEmulated };
        assert_eq!(tiles.bytes([vocab, width]), 4 * 32 * 64 * 6);
        // 3 panels of 48 columns.
        let vectors = PackedForm { isa: Isa::Avx512, ..tiles };
        assert_eq!(vectors.bytes([vocab, width]), 3 * 48 * 40 * 4);
    }

    /// mamba2-2.7b with 16,384 tokens.
    #[test]
    fn a_scan_by_a_kernel_keeps_no_states_in_memory() {
        let generation =
            Generation::Mamba2 { heads: 80, head_dim: 64, groups: 1, time_step_limit: (0.0, f64::INFINITY) };
        let arch = MambaArch {
            vocab_size: 50_288,
            hidden_size: 2560,
            layers: 64,
            intermediate_size: 5120,
            state_size: 128,
            conv_kernel: 4,
            norm_eps: 1e-5,
            projection_bias: false,
            conv_bias: true,
            tied_head: true,
            generation,
        };
        let gigabytes = |form| mamba_bytes(&arch, 16_384, form, Workload::Batch, 1) / 1_000_000_000;
        assert_eq!(gigabytes(Form::Plain), 94);
        assert_eq!(gigabytes(Form::Gpu(DType::F32)), 7);
    }

    /// Attention without scores in memory, in a GPT-NeoX of 6.9 billion parameters with 16,384 tokens.
    #[test]
    fn attention_by_a_kernel_keeps_no_scores_in_memory() {
        let sizes = Sizes {
            vocab: 50_432,
            hidden: 4096,
            layers: 32,
            heads: 32,
            kv_heads: 32,
            head_dim: 128,
            inner: 16_384,
            context: 2048,
        };
        let arch = Arch::new(sizes);
        let bytes = |form, head_dim| {
            let arch = Arch { sizes: Sizes { head_dim, ..sizes }, ..arch.clone() };
            decoder_bytes(&arch, 16_384, 2, form, Workload::Batch, 1) as f64 / 1e9
        };
        let (gpu, plain) = (Form::Gpu(DType::BF16), Form::Plain);
        assert!((3.0..4.5).contains(&bytes(gpu, 128)), "{}", bytes(gpu, 128));
        assert!(bytes(plain, 128) > 10.0, "{}", bytes(plain, 128));
        // There is no kernel for such heads.
        assert!(bytes(gpu, 100) > 10.0, "{}", bytes(gpu, 100));
    }

    #[test]
    fn tiles_take_a_form_of_their_inputs_and_sums_of_each_thread() {
        let form = |products, isa| Form::Fused(Multiply::Packed(products, isa));
        let [vectors, tiles] = [Isa::Avx512, Isa::AmxEmulated].map(|isa| form(Products::F32, isa));
        assert_eq!([vectors, tiles].map(converted_bytes), [0.0, 6.0]);
        assert_eq!(scratch_bytes_on_cpu(vectors, 1000, 8), 0.0);
        // A block of 256 rows in f32, and a mebibyte of converted rows.
        assert_eq!(scratch_bytes_on_cpu(tiles, 1000, 8), 8.0 * (256.0 * 1000.0 * 4.0 + MIB));
    }
}
