//! Files that are not what they should be: each is refused by the name of the file, key or tensor at fault.

mod common;

use candle_core::Device;
use common::goldens::directory;
use pdr_audit::models::checkpoint::Checkpoint;
use pdr_audit::models::files::ModelFiles;
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

/// What opening and loading the directory says.
fn refusal(path: &Path) -> String {
    let files = ModelFiles::Directory(path.into());
    let loaded = Checkpoint::open(&files).and_then(|checkpoint| checkpoint.load(&Device::Cpu));
    loaded.err().expect("a refusal").to_string()
}

fn with_config(change: impl FnOnce(&mut Value)) -> String {
    let copy = copy("gptneox-parallel");
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
        ("hidden_act", json!("swish")),
        ("rotary_pct", json!(0.01)),
        ("rope_scaling", json!({ "type": "linear", "factor": 2.0 })),
        ("layer_norm_eps", json!(-1.0)),
        ("max_position_embeddings", json!(2_147_483_647)),
        ("use_parallel_residual", json!("yes")),
        ("attention_temperature", json!(2.0)),
    ];
    for (key, value) in cases {
        let said = with_config(|config| config[key] = value.clone());
        assert!(said.contains(&format!("`{key}`")), "{key} = {value}: {said}");
    }
    let said = with_config(|config| config["rope_parameters"] = json!({ "rope_type": "yarn" }));
    assert!(said.contains("`rope_parameters.rope_type`"), "{said}");
}

#[test]
fn tensors_that_do_not_fit_the_configuration_are_refused_by_name() {
    for (key, value, tensor) in [
        ("vocab_size", json!(433), "gpt_neox.embed_in.weight"),
        ("num_hidden_layers", json!(3), "gpt_neox.layers.2.input_layernorm.weight"),
        ("num_hidden_layers", json!(1), "gpt_neox.layers.1."),
        ("intermediate_size", json!(191), "gpt_neox.layers.0.mlp.dense_h_to_4h.weight"),
    ] {
        let said = with_config(|config| config[key] = value.clone());
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
