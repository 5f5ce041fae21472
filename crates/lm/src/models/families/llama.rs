//! LLaMA (Touvron et al. 2023) and the families that differ from it in a few properties, each an entry of a table.

use super::network::{Family, FamilyKind};
use super::rope::{RopeKeys, USUAL, rotary};
use super::shape::activation;
use super::windows::{Windows, windows};
use crate::models::arch::{
    Arch, Attention, Biases, Embedding, HeadArch, NormKind, Positions, QueryKeyNorm, Residual, Sizes,
};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};

/// LLaMA 1 to 3, Mistral (Jiang et al. 2023), Qwen 2 and 3 (Yang et al. 2024, 2025), Phi 3
/// (Abdin et al. 2024), Gemma 2 (Riviere et al. 2024).
pub const FAMILIES: &[Family] = &[
    Family { model_type: "llama", kind: FamilyKind::Decoder { arch: |c| arch(c, LLAMA), storage: STORAGE } },
    Family {
        model_type: "mistral",
        kind: FamilyKind::Decoder {
            arch: |c| arch(c, LlamaVariant { windows: Windows::EveryLayer { default: Some(4096) }, ..LLAMA }),
            storage: STORAGE,
        },
    },
    Family {
        model_type: "qwen2",
        kind: FamilyKind::Decoder {
            arch: |c| arch(c, LlamaVariant { qkv_bias: Bias::Always, windows: Windows::FromLayer, ..LLAMA }),
            storage: STORAGE,
        },
    },
    Family {
        model_type: "qwen3",
        kind: FamilyKind::Decoder {
            arch: |c| {
                let query_key_norm = Some(QueryKeyNorm::Head);
                arch(c, LlamaVariant { query_key_norm, windows: Windows::FromLayer, ..LLAMA })
            },
            storage: STORAGE,
        },
    },
    Family {
        model_type: "phi3",
        kind: FamilyKind::Decoder {
            arch: |c| {
                let rope = RopeKeys { fraction: Some(("partial_rotary_factor", 1.0)), ..USUAL };
                arch(c, LlamaVariant { rope, eps: 1e-5, windows: Windows::EveryLayer { default: None }, ..LLAMA })
            },
            storage: STORAGE,
        },
    },
    Family { model_type: "gemma2", kind: FamilyKind::Decoder { arch: gemma2, storage: GEMMA2_STORAGE } },
];

/// The properties in which families related to LLaMA differ.
#[derive(Clone, Copy)]
struct LlamaVariant {
    qkv_bias: Bias,
    query_key_norm: Option<QueryKeyNorm>,
    windows: Windows,
    rope: RopeKeys,
    /// Epsilon of the norms if `rms_norm_eps` is absent.
    eps: f64,
    tied: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Bias {
    /// Of queries, keys and values, but not of the output.
    Always,
    /// Of all four projections, according to the key `attention_bias`.
    Key,
}

const LLAMA: LlamaVariant = LlamaVariant {
    qkv_bias: Bias::Key,
    query_key_norm: None,
    windows: Windows::Never,
    rope: USUAL,
    eps: 1e-6,
    tied: false,
};

const STORAGE: Storage = Storage {
    roots: &["model."],
    names: &[
        ("embedding", &["embed_tokens"]),
        ("layers.*.attention_norm", &["layers.*.input_layernorm"]),
        ("layers.*.mlp_norm", &["layers.*.post_attention_layernorm"]),
        ("layers.*.query_norm", &["layers.*.self_attn.q_norm"]),
        ("layers.*.key_norm", &["layers.*.self_attn.k_norm"]),
        ("layers.*.qkv", &["layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"]),
        ("layers.*.qkv", &["layers.*.self_attn.qkv_proj"]),
        ("layers.*.attention_out", &["layers.*.self_attn.o_proj"]),
        ("layers.*.mlp_up", &["layers.*.mlp.gate_proj", "layers.*.mlp.up_proj"]),
        ("layers.*.mlp_up", &["layers.*.mlp.gate_up_proj"]),
        ("layers.*.mlp_down", &["layers.*.mlp.down_proj"]),
        ("final_norm", &["norm"]),
    ],
    head: &["lm_head"],
    layout: Layout::Canonical,
};

/// Gemma has norms around each branch.
const GEMMA2_STORAGE: Storage = Storage {
    names: &[
        ("embedding", &["embed_tokens"]),
        ("layers.*.attention_norm", &["layers.*.input_layernorm"]),
        ("layers.*.attention_branch_norm", &["layers.*.post_attention_layernorm"]),
        ("layers.*.mlp_norm", &["layers.*.pre_feedforward_layernorm"]),
        ("layers.*.mlp_branch_norm", &["layers.*.post_feedforward_layernorm"]),
        ("layers.*.qkv", &["layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"]),
        ("layers.*.attention_out", &["layers.*.self_attn.o_proj"]),
        ("layers.*.mlp_up", &["layers.*.mlp.gate_proj", "layers.*.mlp.up_proj"]),
        ("layers.*.mlp_down", &["layers.*.mlp.down_proj"]),
        ("final_norm", &["norm"]),
    ],
    layout: Layout::NormsLessOne,
    ..STORAGE
};

fn arch(config: &mut ConfigReader, variant: LlamaVariant) -> Result<Arch, ModelError> {
    let sizes = sizes(config)?;
    let base = Arch::new(sizes);
    config.must_be("use_mrope", false)?;
    // The number of slices of the published weights in training; the products are the same.
    config.count_or("pretraining_tp", 1)?;
    let by_key = variant.qkv_bias == Bias::Key && config.flag_or("attention_bias", false)?;
    Ok(Arch {
        norm: NormKind::Rms,
        norm_eps: config.positive("rms_norm_eps")?.unwrap_or(variant.eps),
        positions: Positions::Rotary(rotary(config, sizes.head_dim, variant.rope)?),
        attention: Attention {
            windows: windows(config, sizes.layers, variant.windows)?,
            query_key_norm: variant.query_key_norm,
            ..base.attention
        },
        activation: activation(config, "hidden_act", "silu")?,
        gated: true,
        biases: Biases {
            qkv: by_key || variant.qkv_bias == Bias::Always,
            attention_out: by_key,
            mlp: config.flag_or("mlp_bias", false)?,
            head: false,
        },
        head: HeadArch { tied: config.flag_or("tie_word_embeddings", variant.tied)?, soft_cap: None },
        ..base
    })
}

fn sizes(config: &mut ConfigReader) -> Result<Sizes, ModelError> {
    let (hidden, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let kv_heads = config.count_or("num_key_value_heads", heads)?;
    if !heads.is_multiple_of(kv_heads) {
        return Err(
            config.error("num_key_value_heads", format!("{kv_heads} does not divide the {heads} attention heads"))
        );
    }
    Ok(Sizes {
        vocab: config.count("vocab_size")?,
        hidden,
        layers: config.layers("num_hidden_layers")?,
        heads,
        kv_heads,
        head_dim: config.count_or("head_dim", (hidden / heads).max(1))?,
        inner: config.count("intermediate_size")?,
        context: config.context("max_position_embeddings", 2048)?,
    })
}

/// Gemma 2: scaled embeddings, norms around each branch, windows in every other layer, soft caps.
fn gemma2(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let gate_activation = activation(config, "hidden_activation", "gelu_pytorch_tanh")?;
    // Old files contain `hidden_act` as well, which the family's own code ignores in favour of `hidden_activation`.
    config.must_be("use_bidirectional_attention", false)?;
    let like_llama = arch(config, LlamaVariant { windows: Windows::EveryOther, tied: true, ..LLAMA })?;
    let scalar = config.positive("query_pre_attn_scalar")?.unwrap_or(256.0);
    // The reference rounds the scale to f32, and its product.
    let scale = f64::from((like_llama.sizes.hidden as f64).sqrt() as f32);
    Ok(Arch {
        embedding: Embedding { projected: None, scale: Some(scale) },
        residual: Residual::Sandwich,
        attention: Attention {
            scale: scalar.powf(-0.5),
            soft_cap: config.positive_or_null("attn_logit_softcapping", 50.0)?,
            ..like_llama.attention
        },
        activation: gate_activation,
        head: HeadArch { soft_cap: config.positive_or_null("final_logit_softcapping", 30.0)?, ..like_llama.head },
        ..like_llama
    })
}
