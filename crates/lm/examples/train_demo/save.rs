//! Saves a model as transformers does: f16 safetensors, config.json, tokenizer.json, tokenizer_config.json.

use crate::shape;
use crate::trainer::Trainer;
use crate::vocabulary::END_OF_TEXT;
use anyhow::{Result, anyhow};
use candle_core::DType;
use lm::models::families::gpt_neox::to_hub;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tokenizers::Tokenizer;

/// Writes all files of a model into a directory.
pub fn save(directory: &Path, trainer: &Trainer, tokenizer: &Tokenizer) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    weights(&directory.join("model.safetensors"), trainer)?;
    json_file(&directory.join("config.json"), &config(trainer))?;
    json_file(
        &directory.join("tokenizer_config.json"),
        &json!({
            "backend": "tokenizers",
            "bos_token": END_OF_TEXT,
            "eos_token": END_OF_TEXT,
            "model_max_length": trainer.arch.sizes.context,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": END_OF_TEXT,
        }),
    )?;
    tokenizer.save(directory.join("tokenizer.json"), false).map_err(|e| anyhow!("{e}"))?;
    Ok(())
}

fn weights(path: &Path, trainer: &Trainer) -> Result<()> {
    let mut tensors = BTreeMap::new();
    for (canonical, var) in &trainer.parameters {
        let (name, tensor) = to_hub(&trainer.arch, canonical, var.as_tensor().clone())?;
        let values: Vec<half::f16> = tensor.to_dtype(DType::F16)?.flatten_all()?.to_vec1()?;
        let bytes: Vec<u8> = values.into_iter().flat_map(half::f16::to_le_bytes).collect();
        tensors.insert(name, (tensor.dims().to_vec(), bytes));
    }
    let views =
        tensors.iter().map(|(name, (shape, bytes))| Ok((name, TensorView::new(Dtype::F16, shape.clone(), bytes)?)));
    let views = views.collect::<Result<Vec<_>>>()?;
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    Ok(std::fs::write(path, safetensors::serialize(views, Some(metadata))?)?)
}

/// The keys that transformers 5 writes, in its order.
fn config(trainer: &Trainer) -> serde_json::Value {
    let (arch, sizes) = (&trainer.arch, &trainer.arch.sizes);
    let rotary = shape::rotary(sizes.head_dim);
    json!({
        "architectures": ["GPTNeoXForCausalLM"],
        "attention_bias": true,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "classifier_dropout": 0.1,
        "dtype": "float16",
        "eos_token_id": 0,
        "hidden_act": "gelu",
        "hidden_dropout": 0.0,
        "hidden_size": sizes.hidden,
        "initializer_range": 0.02,
        "intermediate_size": sizes.inner,
        "is_decoder": false,
        "layer_norm_eps": arch.norm_eps,
        "max_position_embeddings": sizes.context,
        "model_type": "gpt_neox",
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "pad_token_id": null,
        "rope_parameters": {
            "partial_rotary_factor": rotary.dims as f64 / sizes.head_dim as f64,
            "rope_theta": rotary.theta,
            "rope_type": "default",
        },
        "tie_word_embeddings": arch.head.tied,
        "transformers_version": "5.23.0",
        "use_cache": true,
        "use_parallel_residual": true,
        "vocab_size": sizes.vocab,
    })
}

fn json_file(path: &Path, value: &serde_json::Value) -> Result<()> {
    Ok(std::fs::write(path, serde_json::to_string_pretty(value)? + "\n")?)
}
