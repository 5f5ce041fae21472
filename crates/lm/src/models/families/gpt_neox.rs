//! GPT-NeoX and Pythia (Black et al. 2022; Biderman et al. 2023).

use super::keys::{RopeKeys, activation, even_sizes, rotary};
use crate::models::arch::{Arch, Biases, HeadArch, Positions, Residual};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};
use candle_core::{Result, Tensor};

/// transformers names the head `embed_out` on disk and `lm_head` in memory.
pub const STORAGE: Storage = Storage {
    roots: &["gpt_neox."],
    names: &[
        ("embedding", &["embed_in"]),
        ("layers.*.attention_norm", &["layers.*.input_layernorm"]),
        ("layers.*.mlp_norm", &["layers.*.post_attention_layernorm"]),
        ("layers.*.qkv", &["layers.*.attention.query_key_value"]),
        ("layers.*.attention_out", &["layers.*.attention.dense"]),
        ("layers.*.mlp_up", &["layers.*.mlp.dense_h_to_4h"]),
        ("layers.*.mlp_down", &["layers.*.mlp.dense_4h_to_h"]),
        ("final_norm", &["final_layer_norm"]),
    ],
    head: &["embed_out", "lm_head"],
    layout: Layout::HeadByHead,
};

const ROPE: RopeKeys = RopeKeys { theta: "rotary_emb_base", fraction: Some(("rotary_pct", 0.25)) };

pub fn arch(config: &mut ConfigReader) -> std::result::Result<Arch, ModelError> {
    let keys = ["hidden_size", "num_attention_heads", "num_hidden_layers"];
    let sizes =
        even_sizes(config, keys, ("max_position_embeddings", 2048), |config, _| config.count("intermediate_size"))?;
    let parallel = config.flag_or("use_parallel_residual", true)?;
    let attention = config.flag_or("attention_bias", true)?;
    Ok(Arch {
        norm_eps: config.positive("layer_norm_eps")?.unwrap_or(1e-5),
        residual: if parallel { Residual::Parallel } else { Residual::Pre },
        positions: Positions::Rotary(rotary(config, sizes.head_dim, ROPE)?),
        activation: activation(config, "hidden_act", "gelu")?,
        biases: Biases { qkv: attention, attention_out: attention, mlp: true, head: false },
        head: HeadArch { tied: config.flag_or("tie_word_embeddings", false)?, soft_cap: None },
        ..Arch::new(sizes)
    })
}

/// A canonical tensor with its name and row order on disk, for saving a trained model.
pub fn to_hub(arch: &Arch, canonical: &str, tensor: Tensor) -> Result<(String, Tensor)> {
    let Some(name) = STORAGE.candidates(canonical).into_iter().flatten().next() else {
        candle_core::bail!("`{canonical}` is not a tensor of GPT-NeoX")
    };
    let Some(order) = STORAGE.row_order(arch, canonical) else { return Ok((name, tensor)) };
    let mut canonical_row = vec![0u32; order.len()];
    order.iter().enumerate().for_each(|(row, &on_disk)| canonical_row[on_disk] = row as u32);
    let rows = Tensor::new(canonical_row, tensor.device())?;
    Ok((name, tensor.index_select(&rows, 0)?))
}
