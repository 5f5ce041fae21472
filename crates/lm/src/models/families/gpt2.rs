//! GPT-2 (Radford et al. 2019).

use super::network::{Family, FamilyKind};
use super::shape::{activation, even_heads};
use crate::models::arch::{Arch, Attention, Biases, HeadArch, Positions, Sizes};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};

/// The family's entry in the table of families.
pub const FAMILY: Family = Family { model_type: "gpt2", kind: FamilyKind::Decoder { arch, storage: STORAGE } };

/// OpenAI's own files have no root; files written by transformers have one.
const STORAGE: Storage = Storage {
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
        context: config.context("n_positions", 1024)?,
    };
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
