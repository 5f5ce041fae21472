//! GPT-Neo (Black et al. 2021): unscaled attention, restricted to a window in every other layer.

use super::network::{Family, FamilyKind};
use super::shape::{activation, even_heads};
use crate::models::arch::{Arch, Attention, Biases, HeadArch, Positions, Sizes};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};
use serde_json::Value;

/// The family's entry in the table of families.
pub const FAMILY: Family = Family { model_type: "gpt_neo", kind: FamilyKind::Decoder { arch, storage: STORAGE } };

const STORAGE: Storage = Storage {
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

fn arch(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let (hidden, heads) = (config.count("hidden_size")?, config.count("num_heads")?);
    let sizes = Sizes {
        vocab: config.count("vocab_size")?,
        hidden,
        layers: config.layers("num_layers")?,
        heads,
        kv_heads: heads,
        head_dim: even_heads(config, "num_heads", hidden, heads)?,
        inner: config.count_or("intermediate_size", 4 * hidden)?,
        context: config.context("max_position_embeddings", 2048)?,
    };
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
