//! OPT (Zhang et al. 2022), including OPT-350m, with norms after each branch and projections around a narrower
//! embedding.

use super::keys::{activation, even_sizes};
use crate::models::arch::{Arch, Biases, Embedding, HeadArch, Positions, Residual};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};

/// Published files use either root. A layer's `final_layer_norm` precedes its MLP.
pub const STORAGE: Storage = Storage {
    roots: &["model.decoder.", "decoder."],
    names: &[
        ("embedding", &["embed_tokens"]),
        ("positions", &["embed_positions"]),
        ("project_in", &["project_in"]),
        ("project_out", &["project_out"]),
        ("layers.*.attention_norm", &["layers.*.self_attn_layer_norm"]),
        ("layers.*.mlp_norm", &["layers.*.final_layer_norm"]),
        ("layers.*.qkv", &["layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj"]),
        ("layers.*.attention_out", &["layers.*.self_attn.out_proj"]),
        ("layers.*.mlp_up", &["layers.*.fc1"]),
        ("layers.*.mlp_down", &["layers.*.fc2"]),
        ("final_norm", &["final_layer_norm"]),
    ],
    head: &["lm_head"],
    layout: Layout::Canonical,
};

/// Positions 0 and 1 of the table are reserved for padding.
const FIRST_POSITION: usize = 2;

pub fn arch(config: &mut ConfigReader) -> Result<Arch, ModelError> {
    let keys = ["hidden_size", "num_attention_heads", "num_hidden_layers"];
    let sizes = even_sizes(config, keys, ("max_position_embeddings", 2048), |config, _| config.count("ffn_dim"))?;
    config.must_be("layer_norm_elementwise_affine", true)?;
    let before = config.flag_or("do_layer_norm_before", true)?;
    let no_final_norm = config.flag_or("_remove_final_layer_norm", false)?;
    let width = config.count_or("word_embed_proj_dim", sizes.hidden)?;
    let bias = config.flag_or("enable_bias", true)?;
    Ok(Arch {
        embedding: Embedding { projected: (width != sizes.hidden).then_some(width), scale: None },
        positions: Positions::Learned { offset: FIRST_POSITION },
        residual: if before { Residual::Pre } else { Residual::Post },
        final_norm: before && !no_final_norm,
        activation: activation(config, "activation_function", "relu")?,
        biases: Biases { qkv: bias, attention_out: bias, mlp: bias, head: false },
        head: HeadArch { tied: config.flag_or("tie_word_embeddings", true)?, soft_cap: None },
        ..Arch::new(sizes)
    })
}
