//! Probabilities compared with those of transformers (`expected.json` of the goldens), and invalid checkpoints.

mod filling;

use super::*;
use crate::models::LoadedModel;
use crate::models::checkpoint::Checkpoint;
use crate::models::error::ModelError;
use crate::models::files::ModelFiles;
use crate::models::model::MaskedLm;
use candle_core::DType;
use candle_core::Device;
use safetensors::tensor::{SafeTensors, TensorView, serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type BoxedModel = Box<dyn MaskedLm>;

const CONFIG: &str = "config.json";
const SAFETENSORS: &str = "model.safetensors";
const BERT: &str = "bert-mlm";
const MODERN: &str = "modernbert-mlm";

/// Outputs of both heads.
const VOCABULARY: usize = 420;

/// Both sides compute in f32; the observed difference is 2e-6. A wrong epsilon, window or base of positions causes
/// 1e-2.
const TOLERANCE: f64 = 1e-5;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/goldens").join(name)
}

fn json(name: &str, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(directory(name).join(file)).unwrap()).unwrap()
}

fn load(directory: &Path) -> Result<BoxedModel, ModelError> {
    match Checkpoint::open(&ModelFiles::Directory(directory.into()))?.load(DType::F32, &Device::Cpu)? {
        LoadedModel::Masked(model) => Ok(model),
        LoadedModel::Causal(_) => panic!("not a masked model"),
    }
}

fn golden(name: &str) -> (BoxedModel, Value) {
    (load(&directory(name)).unwrap(), json(name, "expected.json"))
}

fn mask(expected: &Value) -> u32 {
    expected["mask_id"].as_u64().unwrap() as u32
}

fn numbers<T: TryFrom<u64, Error: std::fmt::Debug>>(values: &Value) -> Vec<T> {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap().try_into().unwrap()).collect()
}

fn assert_close(actual: f64, expected: &Value, what: &str) {
    let expected = expected.as_f64().unwrap();
    assert!((actual - expected).abs() < TOLERANCE, "{what}: {actual} instead of {expected}");
}

/// Masked positions of a sequence, with the `best` of the `allowed` tokens to be returned.
fn masked_positions(ids: &[u32], positions: &[usize], mask: u32, allowed: &[bool], best: usize) -> Vec<MaskedPosition> {
    let (ids, candidates): (Arc<[u32]>, _) = (ids.into(), Arc::new(Candidates { mask, allowed: allowed.into(), best }));
    let masked =
        |index: &usize| MaskedPosition { ids: Arc::clone(&ids), position: *index, candidates: Arc::clone(&candidates) };
    positions.iter().map(masked).collect()
}

fn fill(model: &BoxedModel, positions: &[MaskedPosition]) -> Result<Vec<Filled>, ModelError> {
    model.fill(&positions.iter().collect::<Vec<_>>())
}

/// Predictions for the whole vocabulary, in order of probability.
fn everything(model: &BoxedModel, ids: &[u32], positions: &[usize], mask: u32) -> Result<Vec<Filled>, ModelError> {
    fill(model, &masked_positions(ids, positions, mask, &[true; VOCABULARY], VOCABULARY))
}

/// True for the ids of whole words: neither special tokens nor pieces of words.
fn words(name: &str) -> Vec<bool> {
    let tokenizer = json(name, "tokenizer.json");
    let special: Vec<&Value> = tokenizer["added_tokens"].as_array().unwrap().iter().map(|t| &t["id"]).collect();
    let vocab = tokenizer["model"]["vocab"].as_object().unwrap().iter();
    let mut words = vec![false; VOCABULARY];
    for (_, id) in vocab.filter(|(token, id)| !token.starts_with("##") && !special.contains(id)) {
        words[id.as_u64().unwrap() as usize] = true;
    }
    words
}

/// The probability of the original token and the best candidates at every position of every text.
fn assert_golden(name: &str) {
    let (model, expected) = golden(name);
    for text in expected["texts"].as_array().unwrap() {
        let masked = text["masked"].as_array().unwrap();
        let positions: Vec<usize> = masked.iter().map(|m| m["position"].as_u64().unwrap() as usize).collect();
        assert!(!positions.is_empty());
        let masked_positions = masked_positions(&numbers(&text["ids"]), &positions, mask(&expected), &words(name), 6);
        for (masked, filled) in masked.iter().zip(fill(&model, &masked_positions).unwrap()) {
            let what = format!("{name}, position {}", masked["position"]);
            assert_close(filled.p_original, &masked["p_original"], &what);
            let top = masked["top"].as_array().unwrap();
            assert_eq!((top.len(), filled.best.len()), (6, 6));
            for (entry, (id, p)) in top.iter().zip(filled.best) {
                assert_eq!(entry[0], id, "{what}");
                assert_close(p, &entry[2], &what);
            }
        }
    }
}

#[test]
fn bert_is_transformers_bert() {
    assert_golden(BERT);
}

#[test]
fn modernbert_is_transformers_modernbert() {
    assert_golden(MODERN);
}

#[test]
fn what_is_outside_the_model_is_refused() {
    let (model, _) = golden(BERT);
    let refused = |ids: &[u32], positions: &[usize]| everything(&model, ids, positions, 4).unwrap_err().to_string();
    assert!(refused(&[2, 420, 3], &[1]).contains("id 420 is outside the vocabulary of 420"));
    assert!(refused(&[2, 3], &[2]).contains("position 2 is outside the 2 tokens"));
    assert!(refused(&[], &[0]).contains("position 0 is outside the 0 tokens"));
    assert!(refused(&[5; 65], &[0]).contains("65 tokens exceed the model's 64 positions"));
    assert!(everything(&model, &[5; 64], &[63], 4).is_ok());
    assert!(everything(&model, &[5], &[0], 420).unwrap_err().to_string().contains("id 420 is outside"));
}

/// A golden with some keys of `config.json` replaced (removed if null) and its tensors changed.
fn changed(
    name: &str,
    keys: Value,
    change: impl FnOnce(&mut HashMap<String, TensorView<'_>>),
) -> Result<BoxedModel, ModelError> {
    let mut config = json(name, "config.json");
    let object = config.as_object_mut().unwrap();
    for (key, value) in keys.as_object().unwrap() {
        object.insert(key.clone(), value.clone());
    }
    object.retain(|_, value| !value.is_null());
    let bytes = std::fs::read(directory(name).join(SAFETENSORS)).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: HashMap<String, TensorView<'_>> = file.tensors().into_iter().collect();
    change(&mut tensors);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(CONFIG), config.to_string()).unwrap();
    std::fs::write(directory.path().join(SAFETENSORS), serialize(&tensors, None).unwrap()).unwrap();
    load(directory.path())
}

fn with_keys(name: &str, keys: Value) -> Result<BoxedModel, ModelError> {
    changed(name, keys, |_| ())
}

/// Asserts that the model gives the same probabilities as the golden.
fn assert_same(name: &str, model: &BoxedModel) {
    let (golden, expected) = golden(name);
    let ids: Vec<u32> = numbers(&expected["texts"][0]["ids"]);
    let predictions = |model: &BoxedModel| everything(model, &ids, &[1, 10], mask(&expected)).unwrap();
    assert_eq!(predictions(model), predictions(&golden));
}

#[test]
fn the_hubs_format_of_modernbert_is_read() {
    let hub = serde_json::json!({
        "rope_parameters": null, "layer_types": null, "norm_eps": null, "layer_norm_eps": 1e-5,
        "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "reference_compile": null,
        "position_embedding_type": "absolute", "repad_logits_with_grad": false,
    });
    assert_same(MODERN, &with_keys(MODERN, hub).unwrap());
}

#[test]
fn names_of_older_files_are_read() {
    let model = changed(BERT, serde_json::json!({}), |tensors| {
        for name in tensors.keys().cloned().collect::<Vec<_>>() {
            let old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
            let tensor = tensors.remove(&name).unwrap();
            tensors.insert(old, tensor);
        }
        // A pooler and the copies of the tied head that older versions wrote; no prediction depends on them.
        let word = tensors["bert.embeddings.LayerNorm.beta"].clone();
        for name in ["bert.pooler.dense.bias", "cls.predictions.decoder.weight", "cls.seq_relationship.bias"] {
            tensors.insert(name.into(), word.clone());
        }
        let bias = tensors.remove("cls.predictions.bias").unwrap();
        tensors.insert("cls.predictions.decoder.bias".into(), bias);
    });
    assert_same(BERT, &model.unwrap());
}

#[test]
fn a_head_of_its_own_is_read_where_it_is_not_tied() {
    let untied = serde_json::json!({ "tie_word_embeddings": false });
    let error = with_keys(BERT, untied.clone()).err().unwrap().to_string();
    assert_eq!(error, "tensor `cls.predictions.decoder.weight`: missing");
    let model = changed(BERT, untied, |tensors| {
        let embeddings = tensors["bert.embeddings.word_embeddings.weight"].clone();
        tensors.insert("cls.predictions.decoder.weight".into(), embeddings);
    });
    assert_same(BERT, &model.unwrap());
}

#[test]
fn keys_that_change_the_mathematics_are_refused() {
    let refused = |name: &str, key: &str, value: Value| {
        let error = with_keys(name, serde_json::json!({ key: value })).err().unwrap();
        let ModelError::Config { key: named, .. } = &error else { panic!("{error}") };
        assert!(named.starts_with(key), "{error}");
    };
    for (key, value) in [
        ("model_type", "roberta".into()),
        ("hidden_act", "silu".into()),
        ("is_decoder", true.into()),
        ("add_cross_attention", true.into()),
        ("position_embedding_type", "relative_key".into()),
        ("num_attention_heads", 5.into()),
        ("vocab_size", Value::Null),
        ("something_new", 1.into()),
    ] {
        refused(BERT, key, value);
    }
    let rope =
        |theta: f64, kind: &str| serde_json::json!({ "full_attention": { "rope_theta": theta, "rope_type": kind } });
    for (key, value) in [
        ("norm_bias", true.into()),
        ("attention_bias", true.into()),
        ("mlp_bias", true.into()),
        ("classifier_bias", true.into()),
        ("decoder_bias", false.into()),
        ("tie_word_embeddings", false.into()),
        ("hidden_activation", "silu".into()),
        ("classifier_activation", "relu".into()),
        ("layer_types", serde_json::json!(["full_attention", "full_attention", "sliding_attention"])),
        ("layer_types", serde_json::json!(["full_attention"])),
        ("rope_scaling", serde_json::json!({ "factor": 2 })),
        ("rope_parameters", rope(0.0, "default")),
        ("rope_parameters", rope(1e4, "yarn")),
        ("rope_parameters", serde_json::json!({ "rope_theta": 1e4 })),
        ("num_attention_heads", 16.into()),
        ("max_position_embeddings", (1u64 << 30).into()),
    ] {
        refused(MODERN, key, value);
    }
}

#[test]
fn tensors_are_those_of_the_configuration() {
    let error = |result: Result<BoxedModel, ModelError>| result.err().unwrap().to_string();
    // More layers than there are, and more than any model has: refused before the layers are allocated.
    let layers = serde_json::json!({ "num_hidden_layers": 1u64 << 31, "layer_types": null });
    assert_eq!(error(with_keys(MODERN, layers)), "tensor `model.layers.3.attn_norm.weight`: missing");
    assert!(
        error(with_keys(BERT, serde_json::json!({ "num_hidden_layers": 1u64 << 31 })))
            .contains("bert.encoder.layer.2.")
    );
    assert!(error(with_keys(BERT, serde_json::json!({ "num_hidden_layers": 1 }))).contains("not part of the model"));
    assert!(
        error(with_keys(BERT, serde_json::json!({ "vocab_size": 421 })))
            .contains("the configuration requires [421, 48]")
    );
    for (name, missing) in [
        (BERT, "bert.encoder.layer.1.output.dense.bias"),
        (BERT, "cls.predictions.transform.LayerNorm.weight"),
        (MODERN, "model.layers.1.attn_norm.weight"),
        (MODERN, "decoder.bias"),
    ] {
        let result = changed(name, serde_json::json!({}), |tensors| drop(tensors.remove(missing).unwrap()));
        assert!(error(result).contains(": missing"), "{missing}");
    }
    let copied = |name: &str, from: &str, to: &str| {
        error(changed(name, serde_json::json!({}), |tensors| drop(tensors.insert(to.into(), tensors[from].clone()))))
    };
    let unused = "tensor `model.layers.0.attn_norm.weight`: not part of the model that config.json describes";
    assert_eq!(copied(MODERN, "model.layers.1.attn_norm.weight", "model.layers.0.attn_norm.weight"), unused);
    assert!(copied(MODERN, "decoder.bias", "model.layers.1.attn_norm.weight").contains("shape [420]"));
}
