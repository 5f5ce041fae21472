//! LLaMA (Touvron et al. 2023) and the families that differ from it in a few properties, each an entry of a table.

use super::keys::activation;
use super::keys::{RopeKeys, USUAL, rotary};
use crate::models::arch::{
    Arch, Attention, Biases, Embedding, HeadArch, NormKind, Positions, QueryKeyNorm, Residual, Sizes,
};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};
use serde_json::Value;

/// LLaMA 1 to 3.
pub fn llama(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    arch(config, LLAMA)
}

/// Jiang et al. 2023.
pub fn mistral(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    arch(config, LlamaVariant { windows: Windows::EveryLayer { default: Some(4096) }, ..LLAMA })
}

/// Yang et al. 2024.
pub fn qwen2(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    arch(config, LlamaVariant { qkv_bias: Bias::Always, windows: Windows::FromLayer, ..LLAMA })
}

/// Yang et al. 2025.
pub fn qwen3(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let query_key_norm = Some(QueryKeyNorm::Head);
    arch(config, LlamaVariant { query_key_norm, windows: Windows::FromLayer, ..LLAMA })
}

/// Abdin et al. 2024.
pub fn phi3(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let rope = RopeKeys { fraction: Some(("partial_rotary_factor", 1.0)), ..USUAL };
    arch(config, LlamaVariant { rope, eps: 1e-5, windows: Windows::EveryLayer { default: None }, ..LLAMA })
}

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

pub const STORAGE: Storage = Storage {
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
pub const GEMMA2_STORAGE: Storage = Storage {
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

/// Gemma 2 (Riviere et al. 2024): scaled embeddings, norms around each branch, windows in every other layer, soft caps.
pub fn gemma2(config: &mut ConfigReader) -> Result<Arch, ModelError> {
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

/// Which layers attend only to `sliding_window` keys if the configuration does not list `layer_types`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// None; the keys have no meaning and are refused.
    Never,
    /// All (Mistral), with the default for an absent `sliding_window`.
    EveryLayer { default: Option<usize> },
    /// The layers from `max_window_layers`, and only with `use_sliding_window` (Qwen).
    FromLayer,
    /// The first, the third and so on (Gemma 2).
    EveryOther,
}

/// The window of each layer.
pub fn windows(config: &mut ConfigReader, layers: usize, rule: Windows) -> Result<Vec<Option<usize>>, ModelError> {
    if rule == Windows::Never {
        return Ok(vec![None; layers]);
    }
    let default = if let Windows::EveryLayer { default } = rule { default } else { Some(4096) };
    let window = config.count_or_null("sliding_window", default)?;
    // An older name that some files contain in addition.
    if let (Some(window), Some(_)) = (window, config.get("sliding_window_size"))
        && config.count("sliding_window_size")? != window
    {
        return Err(config.error("sliding_window_size", format!("differs from sliding_window {window}")));
    }
    let switched_on = rule != Windows::FromLayer || config.flag_or("use_sliding_window", false)?;
    let window = window.filter(|_| switched_on);
    let first = first_sliding_layer(config, rule)?;
    let slides = listed_layers(config, layers)?.unwrap_or_else(|| {
        let by_rule = |layer: usize| match rule {
            Windows::FromLayer => layer as u64 >= first,
            Windows::EveryOther => layer.is_multiple_of(2),
            Windows::EveryLayer { .. } => true,
            Windows::Never => false,
        };
        (0..layers).map(by_rule).collect()
    });
    Ok(slides.into_iter().map(|slides| window.filter(|_| slides)).collect())
}

/// The value of `max_window_layers`, which only [`Windows::FromLayer`] uses.
fn first_sliding_layer(config: &mut ConfigReader, rule: Windows) -> Result<u64, ModelError> {
    match config.get("max_window_layers").filter(|_| rule == Windows::FromLayer) {
        None => Ok(28),
        Some(layers) => layers.as_u64().ok_or_else(|| {
            config.error("max_window_layers", format!("expected a non-negative integer, found {layers}"))
        }),
    }
}

/// For each layer whether `layer_types` gives it a window; `None` if the key is absent.
fn listed_layers(config: &mut ConfigReader, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let Some(list) = config.get("layer_types") else { return Ok(None) };
    let slides = |kind: &Value| match kind.as_str()? {
        "full_attention" => Some(false),
        "sliding_attention" => Some(true),
        _ => None,
    };
    let kinds = list.as_array().filter(|kinds| kinds.len() == layers);
    let slides = kinds.and_then(|kinds| kinds.iter().map(slides).collect::<Option<Vec<_>>>());
    slides.map(Some).ok_or_else(|| {
        let expected = format!("expected a list of {layers} entries, full_attention or sliding_attention");
        config.error("layer_types", format!("{expected}, found {list}"))
    })
}
