//! Files that are not what they should be: each is refused by the name of the file, key or tensor at fault.

use crate::common::goldens::directory;
use candle_core::{DType, Device};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// A copy of a golden that a test may spoil.
fn copy(name: &str) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(directory(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

/// Returns the error of opening or loading the directory.
fn refusal(path: &Path) -> String {
    let files = ModelFiles::Directory(path.into());
    let loaded = Checkpoint::open(&files).and_then(|checkpoint| checkpoint.load(DType::F32, &Device::Cpu));
    loaded.err().expect("a refusal").to_string()
}

fn with_config(golden: &str, change: impl FnOnce(&mut Value)) -> String {
    let copy = copy(golden);
    let path = copy.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(&path, config.to_string()).unwrap();
    refusal(copy.path())
}

#[test]
fn a_configuration_that_is_not_understood_is_refused_by_its_key() {
    let cases: [(&str, Value); 12] = [
        ("model_type", json!("mixtral")),
        ("hidden_size", json!(0)),
        ("hidden_size", json!("48")),
        ("num_attention_heads", json!(5)),
        ("vocab_size", Value::Null),
        ("hidden_act", json!("tanh")),
        ("rotary_pct", json!(0.01)),
        ("rope_scaling", json!(2.0)),
        ("layer_norm_eps", json!(-1.0)),
        ("max_position_embeddings", json!(2_147_483_647)),
        ("use_parallel_residual", json!("yes")),
        ("attention_temperature", json!(2.0)),
    ];
    for (key, value) in cases {
        let said = with_config("gptneox-parallel", |config| config[key] = value.clone());
        assert!(said.contains(&format!("`{key}`")), "{key} = {value}: {said}");
    }
}

#[test]
fn weights_that_were_quantised_for_transformers_are_refused_by_their_method() {
    for method in ["bitsandbytes", "gptq", "awq"] {
        let quantized = json!({ "quant_method": method, "bits": 4 });
        let said = with_config("llama-gqa", |config| config["quantization_config"] = quantized.clone());
        let says = format!("key `quantization_config`: weights that are quantised by {method} are not supported");
        assert!(said.contains(&says), "{said}");
    }
}

#[test]
fn every_family_names_the_key_it_does_not_understand() {
    let llama3 = json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0,
        "original_max_position_embeddings": 32 });
    let cases = [
        ("gptneox-parallel", "rope_parameters", json!({ "rope_type": "yarn" }), "rope_parameters.rope_type"),
        ("llama-gqa", "rope_scaling", json!({ "type": "dynamic", "factor": 2.0 }), "rope_scaling.type"),
        ("llama-gqa", "rope_scaling", json!({ "rope_type": "longrope" }), "rope_scaling.rope_type"),
        ("llama-gqa", "rope_scaling", json!({ "rope_type": "linear" }), "rope_scaling.factor"),
        ("llama-gqa", "rope_scaling", json!({ "rope_type": "linear", "factor": 2.0, "m": 1 }), "rope_scaling.m"),
        ("llama-gqa", "rope_scaling", llama3, "rope_scaling.low_freq_factor"),
        ("llama-gqa", "num_key_value_heads", json!(3), "num_key_value_heads"),
        ("llama-gqa", "quantization_config", json!({ "bits": 4 }), "quantization_config"),
        ("llama-gqa", "sliding_window", json!(64), "sliding_window"),
        ("llama-gqa", "num_hidden_layers", json!(1_000_000_000), "num_hidden_layers"),
        ("llama-gqa", "partial_rotary_factor", json!(0.5), "partial_rotary_factor"),
        ("llama-tied", "rope_parameters", json!({ "rope_type": "linear", "factor": 2.0 }), "rope_parameters.rope_type"),
        ("gptneox-parallel", "rope_theta", json!(500.0), "rope_theta"),
        ("mistral", "layer_types", json!(["full_attention"]), "layer_types"),
        ("qwen2", "max_window_layers", json!("24"), "max_window_layers"),
        ("qwen2", "use_mrope", json!(true), "use_mrope"),
        ("gemma2", "sliding_window_size", json!(21), "sliding_window_size"),
        ("qwen2", "use_sliding_window", json!("no"), "use_sliding_window"),
        ("gemma2", "use_bidirectional_attention", json!(true), "use_bidirectional_attention"),
        ("gemma2", "attn_logit_softcapping", json!(-50.0), "attn_logit_softcapping"),
        ("opt-pre", "layer_norm_elementwise_affine", json!(false), "layer_norm_elementwise_affine"),
        ("gptj", "rotary_dim", json!(7), "rotary_dim"),
        ("gptj", "rotary", json!(false), "rotary"),
        ("gpt_neo", "attention_layers", json!(["global"]), "attention_layers"),
        ("gpt_neo", "attention_types", json!([[["global", "block"], 2]]), "attention_layers"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", json!(true), "scale_attn_by_inverse_layer_idx"),
        ("gpt2", "n_head", json!(5), "n_head"),
    ];
    for (golden, key, value, named) in cases {
        let said = with_config(golden, |config| config[key] = value.clone());
        assert!(said.contains(&format!("`{named}`")), "{golden}, {key} = {value}: {said}");
    }
}

/// Keys of files on the Hub that say nothing about the mathematics, or repeat what other keys say.
#[test]
fn what_published_files_hold_beside_is_accepted() {
    let cases = [
        ("qwen2", json!({ "use_mrope": false, "max_window_layers": 28, "unsloth_fixed": true })),
        ("gpt2", json!({ "n_ctx": 128, "n_special": 0, "predict_special_tokens": true, "output_past": true })),
        (
            "gemma2",
            json!({ "sliding_window_size": 20, "cache_implementation": "hybrid", "hidden_act": "gelu_pytorch_tanh" }),
        ),
        (
            "llama-gqa",
            json!({ "pretraining_tp": 1, "max_sequence_length": 2048, "pruned_heads": {}, "rope_scaling": null }),
        ),
        ("llama-gqa", json!({ "do_sample": true, "temperature": 0.6, "top_p": 0.9, "max_length": 4096 })),
        ("gptneox-parallel", json!({ "rope_theta": 10000, "partial_rotary_factor": 0.25, "classifier_dropout": 0.1 })),
        ("opt-pre", json!({ "activation_dropout": 0.0, "prefix": "</s>", "_name_or_path": "facebook/opt-125m" })),
        (
            "gptj",
            json!({ "rotary": true, "scale_attn_weights": true, "task_specific_params": { "text-generation": {} } }),
        ),
    ];
    for (golden, keys) in cases {
        let copy = copy(golden);
        let path = copy.path().join("config.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        std::fs::write(&path, config.to_string()).unwrap();
        let opened = Checkpoint::open(&ModelFiles::Directory(copy.path().into()));
        assert!(opened.is_ok(), "{golden} with {keys}: {}", opened.err().unwrap());
    }
}

/// A vocabulary larger than any memory is refused by the shape of the file, before room is made for it.
#[test]
fn sizes_that_no_file_confirms_take_no_memory() {
    let sizes = json!({ "vocab_size": 2_147_483_647u64, "hidden_size": 2_147_483_640u64, "num_attention_heads": 3 });
    for golden in ["llama-gqa", "gptneox-parallel", "opt-pre"] {
        let said = with_config(golden, |config| {
            config.as_object_mut().unwrap().extend(sizes.as_object().unwrap().clone());
            config.as_object_mut().unwrap().remove("num_key_value_heads");
            config.as_object_mut().unwrap().remove("word_embed_proj_dim");
            config["head_dim"] = Value::Null;
        });
        assert!(said.contains("tensor `"), "{golden}: {said}");
    }
    let said = with_config("mamba2", |config| {
        let large = 1u64 << 31;
        let sizes = json!({ "hidden_size": large, "expand": 1, "num_heads": large, "head_dim": 1, "n_groups": large });
        config.as_object_mut().unwrap().extend(sizes.as_object().unwrap().clone());
        config["state_size"] = large.into();
    });
    assert!(said.contains("key `state_size`") && said.contains("exceeds the maximum"), "{said}");
}

#[test]
fn tensors_that_do_not_fit_the_configuration_are_refused_by_name() {
    for (key, value, tensor) in [
        ("vocab_size", json!(433), "gpt_neox.embed_in.weight"),
        ("num_hidden_layers", json!(3), "gpt_neox.layers.2.input_layernorm.weight"),
        ("num_hidden_layers", json!(1), "gpt_neox.layers.1."),
        ("intermediate_size", json!(191), "gpt_neox.layers.0.mlp.dense_h_to_4h.weight"),
    ] {
        let said = with_config("gptneox-parallel", |config| config[key] = value.clone());
        assert!(said.contains(tensor), "{key} = {value}: {said}");
    }
}

#[test]
fn broken_files_are_refused_by_name() {
    let spoil = |golden: &str, file: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let copy = copy(golden);
        let path = copy.path().join(file);
        std::fs::write(&path, change(std::fs::read(&path).unwrap())).unwrap();
        let said = refusal(copy.path());
        assert!(said.contains(file), "{file}: {said}");
    };
    spoil("gptneox-parallel", "model.safetensors", &|mut bytes| {
        bytes.truncate(bytes.len() - 1);
        bytes
    });
    spoil("gptneox-parallel", "model.safetensors", &|_| Vec::new());
    spoil("gptneox-parallel", "model.safetensors", &|mut bytes| {
        bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        bytes
    });
    spoil("gptneox-parallel", "config.json", &|bytes| bytes[..bytes.len() / 2].to_vec());
    spoil("gptneox-parallel", "config.json", &|_| b"[]".to_vec());
    spoil("gptneox-sharded", "model.safetensors.index.json", &|_| b"{}".to_vec());
    spoil("gptneox-sharded", "model.safetensors.index.json", &|_| {
        br#"{"weight_map": {"a": "../../etc/passwd"}}"#.to_vec()
    });
    for (golden, file) in [
        ("gptneox-parallel", "config.json"),
        ("gptneox-parallel", "model.safetensors"),
        ("gptneox-sharded", "model-00002-of-00004.safetensors"),
    ] {
        let copy = copy(golden);
        std::fs::remove_file(copy.path().join(file)).unwrap();
        let said = refusal(copy.path());
        assert!(said.contains(file) && said.contains("no such file"), "{file}: {said}");
    }
}
