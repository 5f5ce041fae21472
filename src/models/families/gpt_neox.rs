//! GPT-NeoX and Pythia (Black et al. 2022; Biderman et al. 2023) as transformers and the Hub hold them.

use super::Family;
use crate::models::ModelError;
use crate::models::arch::{Activation, Arch, Biases, Residual};
use crate::models::config_reader::ConfigReader;
use crate::models::rotary::Rotary;
use candle_core::{Result, Tensor};

/// The family's entry in the table of families.
pub const FAMILY: Family = Family { model_type: "gpt_neox", arch, hub_names, from_hub, ignored };

/// Both spellings: the Hub's (`rotary_pct`, `rotary_emb_base`) and that of transformers 5 (`rope_parameters`).
fn arch(config: &mut ConfigReader) -> std::result::Result<Arch, ModelError> {
    let (hidden_size, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    if !hidden_size.is_multiple_of(heads) {
        return Err(config.fault("num_attention_heads", format!("{heads} does not divide hidden_size {hidden_size}")));
    }
    let head_dim = hidden_size / heads;
    let parallel = config.flag_or("use_parallel_residual", true)?;
    Ok(Arch {
        vocab_size: config.count("vocab_size")?,
        hidden_size,
        layers: config.count("num_hidden_layers")?,
        heads,
        kv_heads: heads,
        head_dim,
        intermediate_size: config.count("intermediate_size")?,
        context: config.context("max_position_embeddings", 2048)?,
        norm_eps: config.positive("layer_norm_eps")?.unwrap_or(1e-5),
        residual: if parallel { Residual::Parallel } else { Residual::Sequential },
        rotary: rotary(config, head_dim)?,
        activation: activation(config)?,
        biases: Biases { attention: config.flag_or("attention_bias", true)?, mlp: true, head: false },
        tied_head: config.flag_or("tie_word_embeddings", false)?,
    })
}

fn rotary(config: &mut ConfigReader, head_dim: usize) -> std::result::Result<Rotary, ModelError> {
    if let Some(scaling) = config.get("rope_scaling") {
        return Err(config.fault("rope_scaling", format!("scaled rotary positions are not supported: {scaling}")));
    }
    let mut fraction = config.positive("rotary_pct")?;
    let mut theta = config.positive("rotary_emb_base")?;
    if let Some(mut rope) = config.object("rope_parameters")? {
        let kind = rope.text_or("rope_type", "default")?;
        if kind != "default" {
            return Err(rope.fault("rope_type", format!("`{kind}` is not supported, only `default`")));
        }
        fraction = rope.positive("partial_rotary_factor")?.or(fraction);
        theta = rope.positive("rope_theta")?.or(theta);
        rope.finish()?;
    }
    let dims = (head_dim as f64 * fraction.unwrap_or(0.25)) as usize;
    if dims == 0 || !dims.is_multiple_of(2) || dims > head_dim {
        let reason = format!("{dims} of {head_dim} elements of a head would turn; that must be even and at least 2");
        return Err(config.fault("rotary_pct", reason));
    }
    Ok(Rotary { dims, theta: theta.unwrap_or(10_000.0) })
}

fn activation(config: &mut ConfigReader) -> std::result::Result<Activation, ModelError> {
    match config.text_or("hidden_act", "gelu")? {
        "gelu" => Ok(Activation::Gelu),
        "gelu_fast" | "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        "relu" => Ok(Activation::Relu),
        other => Err(config.fault("hidden_act", format!("`{other}` is not supported"))),
    }
}

/// The names a tensor has on disk: transformers calls the head `embed_out` there, and `lm_head` in memory.
fn hub_names(canonical: &str) -> Vec<String> {
    let Some(rest) = canonical.strip_prefix("layers.") else {
        return match canonical {
            "embedding.weight" => vec!["gpt_neox.embed_in.weight".into()],
            "head.weight" => vec!["embed_out.weight".into(), "lm_head.weight".into()],
            other => vec![other.replace("final_norm", "gpt_neox.final_layer_norm")],
        };
    };
    let on_disk = [
        ("attention_norm", "input_layernorm"),
        ("mlp_norm", "post_attention_layernorm"),
        ("qkv", "attention.query_key_value"),
        ("attention_out", "attention.dense"),
        ("mlp_up", "mlp.dense_h_to_4h"),
        ("mlp_down", "mlp.dense_4h_to_h"),
    ];
    let name =
        on_disk.iter().fold(rest.to_owned(), |name, (from, to)| name.replace(&format!(".{from}."), &format!(".{to}.")));
    vec![format!("gpt_neox.layers.{name}")]
}

/// On disk the rows of the fused projection go head by head, `[heads, 3, head_dim]`; canonically `[3, heads, head_dim]`.
fn from_hub(arch: &Arch, canonical: &str, tensor: Tensor) -> Result<Tensor> {
    permute_qkv(canonical, tensor, [arch.heads, 3, arch.head_dim])
}

/// The inverse of the change made at loading, for saving what was trained.
pub fn to_hub(arch: &Arch, canonical: &str, tensor: Tensor) -> Result<(String, Tensor)> {
    let name = hub_names(canonical).swap_remove(0);
    Ok((name, permute_qkv(canonical, tensor, [3, arch.heads, arch.head_dim])?))
}

fn permute_qkv(canonical: &str, tensor: Tensor, [outer, inner, head_dim]: [usize; 3]) -> Result<Tensor> {
    if !canonical.contains(".qkv.") {
        return Ok(tensor);
    }
    let shape = tensor.shape().clone();
    let grouped = tensor.reshape((outer, inner, head_dim, ()))?;
    grouped.transpose(0, 1)?.contiguous()?.reshape(shape)
}

/// Causal masks and rotary tables that old files carry along, and a head beside a tied embedding.
fn ignored(arch: &Arch, name: &str) -> bool {
    let buffers = [".attention.bias", ".attention.masked_bias", ".attention.rotary_emb.inv_freq"];
    buffers.iter().any(|b| name.ends_with(b)) || arch.tied_head && matches!(name, "embed_out.weight" | "lm_head.weight")
}
