//! ModernBERT (Warner et al. 2024), in the configuration format of the Hub and in that of transformers 5.

use super::{Blueprint, EncoderShape, widths};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use candle_core::DType;
use candle_transformers::models::modernbert::{Config, ModernBertForMaskedLM};
use serde_json::Value;

/// Keys that do not affect the forward pass.
const NEUTRAL: [&str; 12] = [
    "classifier_pooling",
    "cls_token_id",
    "deterministic_flash_attn",
    "embedding_dropout",
    "initializer_cutoff_factor",
    "mlp_dropout",
    // Positions are rotary whatever its value.
    "position_embedding_type",
    "reference_compile",
    "repad_logits_with_grad",
    "sparse_pred_ignore_index",
    "sparse_prediction",
    "sep_token_id",
];

/// Maximum number of elements of the table of rotations, positions times the size of a head: candle computes all of it when
/// a model is loaded, whatever the weights are. 64 times the number in published models.
const MOST_ROTATIONS: usize = 1 << 25;

pub fn blueprint(config: &mut ConfigReader) -> Result<Blueprint, ModelError> {
    refuse_unsupported(config)?;
    let (hidden_size, heads) = widths(config)?;
    if !(hidden_size / heads).is_multiple_of(2) {
        return Err(config.error("num_attention_heads", "the size of a head must be even for rotary positions"));
    }
    let layers = config.count("num_hidden_layers")?;
    let context = config.context("max_position_embeddings", 8192)?;
    if context.saturating_mul(hidden_size / heads) > MOST_ROTATIONS {
        let detail = format!("{context} positions of heads of {} are more than fit in a table", hidden_size / heads);
        return Err(config.error("max_position_embeddings", &detail));
    }
    let (global_rope_theta, local_rope_theta) = thetas(config)?;
    // Older files use BERT's name; if both are present, transformers reads `norm_eps`.
    let (norm_eps, layer_norm_eps) = (config.positive("norm_eps")?, config.positive("layer_norm_eps")?);
    let parsed = Config {
        vocab_size: config.count("vocab_size")?,
        hidden_size,
        num_hidden_layers: layers,
        num_attention_heads: heads,
        intermediate_size: config.count("intermediate_size")?,
        max_position_embeddings: context,
        layer_norm_eps: norm_eps.or(layer_norm_eps).unwrap_or(1e-5),
        pad_token_id: 0,
        global_attn_every_n_layers: full_attention_interval(config, layers)?,
        global_rope_theta,
        local_attention: config.count_or("local_attention", 128)?,
        local_rope_theta,
        classifier_config: None,
    };
    let narrowest = hidden_size.min(parsed.intermediate_size).min(parsed.vocab_size);
    let shape =
        EncoderShape { vocab_size: parsed.vocab_size, heads, context: parsed.max_position_embeddings, narrowest };
    Ok(Blueprint {
        shape,
        names,
        ignores: |name| name == "decoder.weight",
        build: Box::new(move |vb| {
            // candle takes a missing norm for one that the layer does not have, and allocates the layers before it
            // looks for the first norm; only the first layer has none.
            for layer in 1..layers {
                vb.get(hidden_size, &format!("model.layers.{layer}.attn_norm.weight"))?;
            }
            let model = ModernBertForMaskedLM::load(vb, &parsed)?;
            Ok(Box::new(move |ids| model.forward(ids, &ids.ones_like()?.to_dtype(DType::F32)?)))
        }),
    })
}

/// Refuses values of keys that would change the forward pass of candle's implementation.
fn refuse_unsupported(config: &mut ConfigReader) -> Result<(), ModelError> {
    for key in NEUTRAL {
        config.get(key);
    }
    for key in ["norm_bias", "attention_bias", "mlp_bias", "classifier_bias"] {
        config.must_be(key, false)?;
    }
    for key in ["decoder_bias", "tie_word_embeddings"] {
        config.must_be(key, true)?;
    }
    for key in ["hidden_activation", "classifier_activation"] {
        let activation = config.text_or(key, "gelu")?;
        if activation != "gelu" {
            return Err(config.error(key, format!("`{activation}` is not supported; supported: gelu")));
        }
    }
    Ok(())
}

/// The first layer has no norm before its attention; candle would use one if the file contained it.
fn names(name: &str) -> Vec<String> {
    match name {
        "model.layers.0.attn_norm.weight" => Vec::new(),
        _ => vec![name.to_owned()],
    }
}

/// The interval at which a layer attends to the whole text; a list of layer types must agree with it.
fn full_attention_interval(config: &mut ConfigReader, layers: usize) -> Result<usize, ModelError> {
    let interval = config.count_or("global_attn_every_n_layers", 3)?;
    let kind = |layer: usize| if layer.is_multiple_of(interval) { "full_attention" } else { "sliding_attention" };
    let Some(types) = config.get("layer_types") else { return Ok(interval) };
    let same = |types: &Vec<Value>| types.len() == layers && types.iter().enumerate().all(|(i, t)| t == kind(i));
    if types.as_array().is_some_and(same) {
        return Ok(interval);
    }
    Err(config.error(
        "layer_types",
        format!("only full attention in the first layer and every {interval} layers is supported"),
    ))
}

/// The bases of the rotary positions in layers that attend to the whole text and in those that attend to a window.
fn thetas(config: &mut ConfigReader) -> Result<(f64, f64), ModelError> {
    if let Some(scaling) = config.get("rope_scaling") {
        return Err(config.error("rope_scaling", format!("scaled rotary positions are not supported, found {scaling}")));
    }
    let mut global = config.positive("global_rope_theta")?;
    let mut local = config.positive("local_rope_theta")?;
    if let Some(mut rope) = config.object("rope_parameters")? {
        for (key, theta) in [("full_attention", &mut global), ("sliding_attention", &mut local)] {
            let Some(mut kind) = rope.object(key)? else { continue };
            let name = kind.text_or("rope_type", "default")?;
            if name != "default" {
                return Err(kind.error("rope_type", format!("`{name}` is not supported; supported: default")));
            }
            *theta = kind.positive("rope_theta")?.or(*theta);
            kind.finish()?;
        }
        rope.finish()?;
    }
    Ok((global.unwrap_or(160_000.0), local.unwrap_or(10_000.0)))
}
