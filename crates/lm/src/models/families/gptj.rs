//! GPT-J (Wang and Komatsuzaki 2021).

use super::network::{Family, FamilyKind};
use super::shape::{activation, even_heads};
use crate::models::arch::{Arch, Biases, HeadArch, Positions, Residual, Sizes};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::rotary::Rotary;
use crate::models::storage::{Layout, Storage};

/// The family's entry in the table of families.
pub const FAMILY: Family = Family { model_type: "gptj", kind: FamilyKind::Decoder { arch, storage: STORAGE } };

/// One norm serves both branches, so both canonical names refer to it.
const STORAGE: Storage = Storage {
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

fn arch(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let (hidden, heads) = (config.count("n_embd")?, config.count("n_head")?);
    let head_dim = even_heads(config, "n_head", hidden, heads)?;
    let sizes = Sizes {
        vocab: config.count("vocab_size")?,
        hidden,
        layers: config.layers("n_layer")?,
        heads,
        kv_heads: heads,
        head_dim,
        inner: config.count_or("n_inner", 4 * hidden)?,
        context: config.context("n_positions", 2048)?,
    };
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
