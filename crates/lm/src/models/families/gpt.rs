//! GPT-2 (Radford et al. 2019), GPT-J (Wang and Komatsuzaki 2021) and GPT-Neo (Black et al. 2021).

use super::keys::{activation, even_sizes};
use crate::models::arch::{Arch, Attention, Biases, HeadArch, Positions, Residual};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::rotary::Rotary;
use crate::models::storage::{Layout, Storage};
use serde_json::Value;

/// OpenAI's own files have no root; files written by transformers have one.
pub const GPT2_STORAGE: Storage = Storage {
    roots: &["transformer.", ""],
    names: &[
        ("embedding", &["wte"]),
        ("positions", &["wpe"]),
        ("layers.*.attention_norm", &["h.*.ln_1"]),
        ("layers.*.mlp_norm", &["h.*.ln_2"]),
        ("layers.*.qkv", &["h.*.attn.c_attn"]),
        ("layers.*.attention_out", &["h.*.attn.c_proj"]),
        ("layers.*.mlp_up", &["h.*.mlp.c_fc"]),
        ("layers.*.mlp_down", &["h.*.mlp.c_proj"]),
        ("final_norm", &["ln_f"]),
    ],
    head: &["lm_head"],
    layout: Layout::Transposed,
};

pub fn gpt2(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let sizes = even_sizes(config, ["n_embd", "n_head", "n_layer"], ("n_positions", 1024), |config, hidden| {
        config.count_or("n_inner", 4 * hidden)
    })?;
    config.must_be("scale_attn_by_inverse_layer_idx", false)?;
    // A different order of the same operations, for training in f16.
    config.flag_or("reorder_and_upcast_attn", false)?;
    let base = Arch::new(sizes);
    let scaled = config.flag_or("scale_attn_weights", true)?;
    Ok(Arch {
        norm_eps: config.positive("layer_norm_epsilon")?.unwrap_or(1e-5),
        positions: Positions::Learned { offset: 0 },
        attention: Attention { scale: if scaled { base.attention.scale } else { 1.0 }, ..base.attention },
        activation: activation(config, "activation_function", "gelu_new")?,
        biases: Biases { qkv: true, attention_out: true, mlp: true, head: false },
        head: HeadArch { tied: config.flag_or("tie_word_embeddings", true)?, soft_cap: None },
        ..base
    })
}

/// One norm serves both branches, so both canonical names refer to it.
pub const GPTJ_STORAGE: Storage = Storage {
    roots: &["transformer."],
    names: &[
        ("embedding", &["wte"]),
        ("layers.*.attention_norm", &["h.*.ln_1"]),
        ("layers.*.mlp_norm", &["h.*.ln_1"]),
        ("layers.*.qkv", &["h.*.attn.q_proj", "h.*.attn.k_proj", "h.*.attn.v_proj"]),
        ("layers.*.attention_out", &["h.*.attn.out_proj"]),
        ("layers.*.mlp_up", &["h.*.mlp.fc_in"]),
        ("layers.*.mlp_down", &["h.*.mlp.fc_out"]),
        ("final_norm", &["ln_f"]),
    ],
    head: &["lm_head"],
    layout: Layout::NeighbourPairs,
};

pub fn gptj(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let sizes = even_sizes(config, ["n_embd", "n_head", "n_layer"], ("n_positions", 2048), |config, hidden| {
        config.count_or("n_inner", 4 * hidden)
    })?;
    let head_dim = sizes.head_dim;
    // Keys of old files that state what the model always does.
    config.must_be("rotary", true)?;
    config.must_be("scale_attn_weights", true)?;
    let rotated = config.count_or_null("rotary_dim", Some(64))?.unwrap_or(head_dim);
    if !rotated.is_multiple_of(2) || rotated > head_dim {
        return Err(config.error("rotary_dim", format!("{rotated} must be even and at most the head size {head_dim}")));
    }
    let tied = config.flag_or("tie_word_embeddings", false)?;
    Ok(Arch {
        norm_eps: config.positive("layer_norm_epsilon")?.unwrap_or(1e-5),
        residual: Residual::Parallel,
        positions: Positions::Rotary(Rotary::plain(rotated, 10_000.0)),
        activation: activation(config, "activation_function", "gelu_new")?,
        biases: Biases { qkv: false, attention_out: false, mlp: true, head: true },
        head: HeadArch { tied, soft_cap: None },
        ..Arch::new(sizes)
    })
}

pub const GPT_NEO_STORAGE: Storage = Storage {
    roots: &["transformer."],
    names: &[
        ("embedding", &["wte"]),
        ("positions", &["wpe"]),
        ("layers.*.attention_norm", &["h.*.ln_1"]),
        ("layers.*.mlp_norm", &["h.*.ln_2"]),
        ("layers.*.qkv", &["h.*.attn.attention.q_proj", "h.*.attn.attention.k_proj", "h.*.attn.attention.v_proj"]),
        ("layers.*.attention_out", &["h.*.attn.attention.out_proj"]),
        ("layers.*.mlp_up", &["h.*.mlp.c_fc"]),
        ("layers.*.mlp_down", &["h.*.mlp.c_proj"]),
        ("final_norm", &["ln_f"]),
    ],
    head: &["lm_head"],
    layout: Layout::Canonical,
};

/// Unscaled attention, restricted to a window in every other layer.
pub fn gpt_neo(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let keys = ["hidden_size", "num_heads", "num_layers"];
    let sizes = even_sizes(config, keys, ("max_position_embeddings", 2048), |config, hidden| {
        config.count_or("intermediate_size", 4 * hidden)
    })?;
    let base = Arch::new(sizes);
    Ok(Arch {
        norm_eps: config.positive("layer_norm_epsilon")?.unwrap_or(1e-5),
        positions: Positions::Learned { offset: 0 },
        attention: Attention { scale: 1.0, windows: windows(config, sizes.layers)?, ..base.attention },
        activation: activation(config, "activation_function", "gelu_new")?,
        biases: Biases { qkv: false, attention_out: true, mlp: true, head: false },
        head: HeadArch { tied: config.flag_or("tie_word_embeddings", true)?, soft_cap: None },
        ..base
    })
}

/// `attention_types` is `[[["global", "local"], 12]]`: kinds, and how often they repeat. `attention_layers`, if
/// present, is the expanded list.
fn windows(config: &mut ConfigReader, layers: usize) -> Result<Vec<Option<usize>>, ModelError> {
    let window = config.count_or("window_size", 256)?;
    let types = config.get("attention_types").map(|types| {
        let repeated = expand(types, layers).filter(|kinds| kinds.len() == layers);
        repeated.ok_or_else(|| config.error("attention_types", format!("{types} does not expand to {layers} layers")))
    });
    let types = types.transpose()?;
    let listed =
        match config.get("attention_layers") {
            None => None,
            Some(list) => {
                let kinds = list.as_array().filter(|kinds| kinds.len() == layers);
                let kinds = kinds.and_then(|kinds| kinds.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
                Some(kinds.ok_or_else(|| {
                    config.error("attention_layers", format!("{list} is not a list of {layers} strings"))
                })?)
            }
        };
    if let (Some(types), Some(listed)) = (&types, &listed)
        && types != listed
    {
        return Err(config.error("attention_layers", "differs from attention_types"));
    }
    let alternating = || (0..layers).map(|i| if i % 2 == 0 { "global" } else { "local" }).collect();
    let kinds = listed.or(types).unwrap_or_else(alternating);
    let window_for = |kind: &str| match kind {
        "global" => Ok(None),
        "local" => Ok(Some(window)),
        other => Err(config.error("attention_types", format!("`{other}` is not supported; supported: global, local"))),
    };
    kinds.into_iter().map(window_for).collect()
}

/// Expands the list of kinds; `None` if it exceeds the number of layers, or if the value has another form.
fn expand(types: &Value, layers: usize) -> Option<Vec<&str>> {
    let mut kinds = Vec::new();
    for group in types.as_array()? {
        let [names, times] = group.as_array()?.as_slice() else { return None };
        let names: Vec<&str> = names.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
        for _ in 0..times.as_u64()? {
            kinds.extend(&names);
            if names.is_empty() || kinds.len() > layers {
                return None;
            }
        }
    }
    Some(kinds)
}
