//! An unloaded model gives its memory back to the system. A process of its own, since its size is what is measured.

mod common;

use common::app::{App, golden};
use half::bf16;
use pdr_audit::config::{Device, Model, Settings, Source};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const VOCAB: usize = 401;
const HIDDEN: usize = 768;
const LAYERS: usize = 11;

/// A GPT-2 of 78 million parameters, stored in bf16, so that loading has to make its own copy of every weight.
fn write_model(directory: &Path) {
    let golden = common::goldens::directory("gpt2");
    std::fs::copy(golden.join("tokenizer.json"), directory.join("tokenizer.json")).unwrap();
    let config = json!({
        "model_type": "gpt2", "vocab_size": VOCAB, "n_embd": HIDDEN, "n_head": 12, "n_layer": LAYERS, "n_positions": 128,
    });
    std::fs::write(directory.join("config.json"), config.to_string()).unwrap();
    let mut shapes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    shapes.insert("wte.weight".into(), vec![VOCAB, HIDDEN]);
    shapes.insert("wpe.weight".into(), vec![128, HIDDEN]);
    shapes.insert("ln_f.weight".into(), vec![HIDDEN]);
    shapes.insert("ln_f.bias".into(), vec![HIDDEN]);
    for layer in 0..LAYERS {
        let projections = [("attn.c_attn", HIDDEN, 3 * HIDDEN), ("attn.c_proj", HIDDEN, HIDDEN)];
        let mlp = [("mlp.c_fc", HIDDEN, 4 * HIDDEN), ("mlp.c_proj", 4 * HIDDEN, HIDDEN)];
        for (name, from, to) in projections.into_iter().chain(mlp) {
            shapes.insert(format!("h.{layer}.{name}.weight"), vec![from, to]);
            shapes.insert(format!("h.{layer}.{name}.bias"), vec![to]);
        }
        for name in ["ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"] {
            shapes.insert(format!("h.{layer}.{name}"), vec![HIDDEN]);
        }
    }
    let value = |i: usize| bf16::from_f32((i % 251) as f32 * 1e-4).to_le_bytes();
    let data: BTreeMap<String, Vec<u8>> = shapes
        .iter()
        .map(|(name, shape)| (name.clone(), (0..shape.iter().product()).flat_map(value).collect()))
        .collect();
    let views =
        shapes.iter().map(|(name, shape)| (name, TensorView::new(Dtype::BF16, shape.clone(), &data[name]).unwrap()));
    std::fs::write(directory.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
}

/// Bytes of this process in memory.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn unloading_gives_back_nine_tenths_of_the_weights() {
    let directory = tempfile::tempdir().unwrap();
    write_model(directory.path());
    let path = directory.path().to_owned();
    let big = Model { source: Source { text: "big".into(), path }, ..golden("big", "gpt2") };
    let mut settings = Settings::default();
    settings.engine.device = Device::Cpu;
    settings.models = vec![Model { load: pdr_audit::config::Load::Lazy, ..big }];
    let app = App::start_as_it_is(&settings).await;
    let request = json!({ "inputs": "The quick brown fox jumps over the lazy dog." });
    // Once round, so that what the process keeps for good is there before anything is measured.
    app.score(&request).await;
    app.post("/v1/models/big/unload", &json!({})).await.ok();
    let before = resident();
    let model = app.post("/v1/models/big/load", &json!({})).await.ok();
    let loaded = resident();
    app.post("/v1/models/big/unload", &json!({})).await.ok();
    let after = resident();

    let weights = model["weight_bytes"].as_u64().unwrap();
    // Twice that where weights stay in bf16 no longer than they are read.
    assert!(weights > 150_000_000, "{weights}");
    let (grown, given_back) = (loaded.saturating_sub(before), loaded.saturating_sub(after));
    println!("weights {weights}, grown by {grown}, given back {given_back}");
    assert!(grown.abs_diff(weights) * 10 <= weights, "grown by {grown}, weights are {weights}");
    assert!(given_back * 10 >= weights * 9, "{given_back} of {weights} given back");
}
