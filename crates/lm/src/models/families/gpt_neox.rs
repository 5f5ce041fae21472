//! GPT-NeoX and Pythia (Black et al. 2022; Biderman et al. 2023).

use super::network::{Family, FamilyKind};
use super::rope::{RopeKeys, rotary};
use super::shape::{activation, even_heads};
use crate::models::arch::{Arch, Biases, HeadArch, Positions, Residual, Sizes};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::storage::{Layout, Storage};
use candle_core::{Result, Tensor};

/// The family's entry in the table of families.
pub const FAMILY: Family = Family { model_type: "gpt_neox", kind: FamilyKind::Decoder { arch, storage: STORAGE } };

/// transformers names the head `embed_out` on disk and `lm_head` in memory.
const STORAGE: Storage = Storage {
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

fn arch(config: &mut ConfigReader) -> std::result::Result<Arch, ModelError> {
    let (hidden, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    let head_dim = even_heads(config, "num_attention_heads", hidden, heads)?;
    let sizes = Sizes {
        vocab: config.count("vocab_size")?,
        hidden,
        layers: config.layers("num_hidden_layers")?,
        heads,
        kv_heads: heads,
        head_dim,
        inner: config.count("intermediate_size")?,
        context: config.context("max_position_embeddings", 2048)?,
    };
    let parallel = config.flag_or("use_parallel_residual", true)?;
    let attention = config.flag_or("attention_bias", true)?;
    Ok(Arch {
        norm_eps: config.positive("layer_norm_eps")?.unwrap_or(1e-5),
        residual: if parallel { Residual::Parallel } else { Residual::Pre },
        positions: Positions::Rotary(rotary(config, head_dim, ROPE)?),
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
