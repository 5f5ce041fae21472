//! BERT (Devlin et al. 2019) with the head it was pre-trained with.

use super::{Blueprint, EncoderShape, widths};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use candle_transformers::models::bert::{BertForMaskedLM, Config, HiddenAct};

pub fn blueprint(config: &mut ConfigReader) -> Result<Blueprint, ModelError> {
    let (hidden_size, heads) = widths(config)?;
    config.must_be("is_decoder", false)?;
    config.must_be("add_cross_attention", false)?;
    let kind = config.text_or("position_embedding_type", "absolute")?;
    if kind != "absolute" {
        return Err(config.error("position_embedding_type", format!("`{kind}` is not supported; supported: absolute")));
    }
    let tied = config.flag_or("tie_word_embeddings", true)?;
    let parsed = Config {
        vocab_size: config.count("vocab_size")?,
        hidden_size,
        num_hidden_layers: config.count("num_hidden_layers")?,
        num_attention_heads: heads,
        intermediate_size: config.count("intermediate_size")?,
        hidden_act: activation(config)?,
        max_position_embeddings: config.context("max_position_embeddings", 512)?,
        type_vocab_size: config.count_or("type_vocab_size", 2)?,
        layer_norm_eps: config.positive("layer_norm_eps")?.unwrap_or(1e-12),
        // With a type, candle would look for tensors under a second prefix and name those in its errors.
        model_type: None,
        ..Config::default()
    };
    let narrowest = hidden_size.min(parsed.intermediate_size).min(parsed.vocab_size);
    let shape =
        EncoderShape { vocab_size: parsed.vocab_size, heads, context: parsed.max_position_embeddings, narrowest };
    Ok(Blueprint {
        shape,
        names: if tied { tied_names } else { untied_names },
        ignores: ignored,
        build: Box::new(move |vb| {
            let model = BertForMaskedLM::load(vb, &parsed)?;
            Ok(Box::new(move |ids| model.forward(ids, &ids.zeros_like()?, None)))
        }),
    })
}

fn activation(config: &mut ConfigReader) -> Result<HiddenAct, ModelError> {
    match config.text_or("hidden_act", "gelu")? {
        "gelu" => Ok(HiddenAct::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(HiddenAct::GeluApproximate),
        "relu" => Ok(HiddenAct::Relu),
        other => Err(config.error(
            "hidden_act",
            format!("`{other}` is not supported; supported: gelu, gelu_new, gelu_pytorch_tanh, relu"),
        )),
    }
}

/// The matrix of the head is that of the embeddings; a copy in the file is not read, as in transformers.
fn tied_names(name: &str) -> Vec<String> {
    match name {
        "cls.predictions.decoder.weight" => vec!["bert.embeddings.word_embeddings.weight".into()],
        _ => untied_names(name),
    }
}

/// The bias of the head has two names in transformers; a file may contain either.
fn untied_names(name: &str) -> Vec<String> {
    match name {
        "cls.predictions.decoder.bias" => vec!["cls.predictions.bias".into(), name.into()],
        _ => vec![name.into()],
    }
}

fn ignored(name: &str) -> bool {
    name.starts_with("bert.pooler.")
        || name.starts_with("cls.seq_relationship.")
        || ["bert.embeddings.position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"]
            .contains(&name)
}
