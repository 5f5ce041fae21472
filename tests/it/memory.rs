//! An unloaded model gives its memory back to the system. It runs in a process of its own, since the size of the process is
//! what is measured.

use crate::common::alone::alone;
use crate::common::app::{App, golden};
use crate::common::goldens;
use crate::common::gpt2::Gpt2;
use crate::common::resident;
use pdr_audit::config::{DeviceChoice, ModelSettings, ModelSource, Settings};
use serde_json::json;
use std::path::Path;
use tokio::runtime::Runtime;

/// A GPT-2 of 78 million parameters.
const BIG: Gpt2 = Gpt2 { vocab: 401, hidden: 768, layers: 11, heads: 12, positions: 128 };

fn write_model(directory: &Path) {
    let golden = goldens::directory("gpt2");
    std::fs::copy(golden.join("tokenizer.json"), directory.join("tokenizer.json")).unwrap();
    BIG.write(directory);
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn unloading_gives_back_nine_tenths_of_the_weights() {
    alone(|| Runtime::new().unwrap().block_on(load_and_unload()));
}

async fn load_and_unload() {
    let directory = tempfile::tempdir().unwrap();
    write_model(directory.path());
    let path = directory.path().to_owned();
    let big = ModelSettings { source: ModelSource { text: "big".into(), path }, ..golden("big", "gpt2") };
    let mut settings = Settings::default();
    settings.engine.device = DeviceChoice::Cpu;
    settings.models = vec![ModelSettings { load: pdr_audit::config::LoadPolicy::Lazy, ..big }];
    let app = App::start_as_it_is(&settings).await;
    let request = json!({ "inputs": "The quick brown fox jumps over the lazy dog." });
    // Once round, so that what the process keeps for good is there before anything is measured.
    app.score(&request).await;
    app.post("/v1/models/big/unload", &json!({})).await.ok();
    let before = resident::now();
    let model = app.post("/v1/models/big/load", &json!({})).await.ok();
    let loaded = resident::now();
    app.post("/v1/models/big/unload", &json!({})).await.ok();
    let after = resident::now();

    let weights = model["weight_bytes"].as_u64().unwrap();
    // Twice that where weights stay in bf16 no longer than they are read.
    assert!(weights > 150_000_000, "{weights}");
    let (grown, given_back) = (loaded.saturating_sub(before), loaded.saturating_sub(after));
    println!("weights {weights}, grown by {grown}, given back {given_back}");
    assert!(grown.abs_diff(weights) * 10 <= weights, "grown by {grown}, weights are {weights}");
    assert!(given_back * 10 >= weights * 9, "{given_back} of {weights} given back");
}
