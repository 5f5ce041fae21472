//! Models whose layers are read in every forward pass, through the front door: their scores, when they are chosen, and files that
//! change.

use crate::common::app::{App, golden, settings};
use crate::common::goldens::directory;
use crate::common::gpt2::Gpt2;
use candle_core::{DType, Device};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::footprint::Workload;
use lm::models::layers::LayerPlacement;
use lm::models::ops::Form;
use pdr_audit::config::{AdapterSettings, ByteSize, LayersChoice, ModelSettings, ModelSource, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const GOLDEN: &str = "gptneox-bf16";

/// Settings of models none of whose scores come from a cache.
fn uncached(models: Vec<ModelSettings>) -> Settings {
    let mut settings = settings(models);
    settings.engine.cache = ByteSize::b(0);
    settings
}

fn placed(id: &str, path: PathBuf, layers: LayersChoice) -> ModelSettings {
    ModelSettings { source: ModelSource { text: path.display().to_string(), path }, layers, ..golden(id, GOLDEN) }
}

fn copy(name: &str, to: &Path) {
    for entry in std::fs::read_dir(directory(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

async fn started(settings: &Settings) -> App {
    let app = App::start_as_it_is(settings).await;
    app.engine.wait_until_loaded().await.unwrap();
    app
}

async fn entry(app: &App, id: &str) -> Value {
    let list = app.get("/v1/models").await.ok();
    list["models"].as_array().unwrap().iter().find(|model| model["id"] == id).expect("the model is listed").clone()
}

fn request(model: &str) -> Value {
    json!({ "model": model, "inputs": ["The cat sat on the mat.", "It was a mat."], "methods": ["loss", "min_k_plus_plus"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_are_those_of_the_resident_model_in_every_digit() {
    let model = |id, layers| placed(id, directory(GOLDEN), layers);
    let models = vec![model("streamed", LayersChoice::Stream), model("resident", LayersChoice::Auto)];
    let app = started(&uncached(models)).await;
    let mut results = Vec::new();
    for (id, layers) in [("streamed", "stream"), ("resident", "resident")] {
        let answer = app.score(&request(id)).await;
        assert_eq!(answer["usage"]["forward_passes"], 2, "{answer}");
        results.push(answer["results"].clone());
        assert_eq!(entry(&app, id).await["layers"], layers);
    }
    assert_eq!(results[0], results[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_model_is_not_tuned_and_takes_adapters() {
    let lora = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lora/gptneox-parallel");
    let adapters = vec![AdapterSettings { name: "tuned".into(), source: lora }];
    let parallel = |id, layers| placed(id, directory("gptneox-parallel"), layers);
    let models = vec![
        parallel("bare", LayersChoice::Stream),
        ModelSettings { adapters, ..parallel("adapted", LayersChoice::Stream) },
        parallel("resident", LayersChoice::Auto),
    ];
    let app = started(&uncached(models)).await;
    let texts: Vec<Value> = (0..8).map(|number| json!({ "text": format!("Text {number} to tune on.") })).collect();
    for (id, has_fsd, is_tuned) in [("bare", false, false), ("adapted", true, false), ("resident", true, true)] {
        let methods = app.get(&format!("/v1/methods?model={id}")).await.ok();
        let fsd = methods["methods"].as_array().unwrap().iter().find(|entry| entry["name"] == "fsd").unwrap();
        let reason = fsd.get("unavailable").map(|reason| reason.as_str().unwrap().contains("layers are streamed"));
        assert_eq!(reason, (!has_fsd).then_some(true), "{id}: {fsd}");
        let body = json!({ "model": id, "name": "new", "samples": texts, "optimizer": { "batch_size": 8 } });
        let answer = app.post("/v1/finetunes", &body).await;
        assert_eq!(answer.status == 422, !is_tuned, "{id}: {}", answer.text());
        assert_eq!(answer.text().contains("layers are streamed"), !is_tuned, "{id}: {}", answer.text());
    }
    let fsd =
        json!({ "model": "adapted", "inputs": "The cat sat.", "methods": [{ "name": "fsd", "adapter": "tuned" }] });
    assert!(app.score(&fsd).await["results"][0]["scores"].as_object().unwrap().values().all(Value::is_number));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_fit_is_streamed_by_itself() {
    let place = tempfile::tempdir().unwrap();
    Gpt2 { vocab: 432, hidden: 128, layers: 64, heads: 2, positions: 64 }.write(place.path());
    std::fs::copy(directory("gpt2").join("tokenizer.json"), place.path().join("tokenizer.json")).unwrap();
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(place.path().to_owned())).unwrap();
    let form = Form::inference(&Device::Cpu, DType::F32);
    let needed = |layers| {
        let activation = checkpoint.activation_bytes(form, DType::F32, layers, Workload::OneText, 1);
        checkpoint.weight_bytes(form, DType::F32, layers) + activation(1)
    };
    let (resident, streamed) = (needed(LayerPlacement::Resident), needed(LayerPlacement::Streamed));
    assert!(streamed < resident);
    for (memory, layers) in [(resident, "resident"), (resident - 1, "stream"), (streamed, "stream")] {
        let mut settings = uncached(vec![placed("m", place.path().to_owned(), LayersChoice::Auto)]);
        settings.engine.memory = Some(ByteSize::b(memory));
        let app = started(&settings).await;
        let entry = entry(&app, "m").await;
        assert_eq!((&entry["layers"], &entry["state"]), (&json!(layers), &json!("ready")), "{entry}");
        assert!(entry["weight_bytes"].as_u64().unwrap() <= memory);
        let methods = app.get("/v1/methods?model=m").await.ok();
        assert_eq!(methods.to_string().contains("layers are streamed"), layers == "stream");
        // With room for one token, so is one text at a time.
        app.score(&json!({ "model": "m", "inputs": "abc", "methods": ["loss"] })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_streamed_says_so() {
    let models = vec![golden("other", GOLDEN), placed("mamba", directory("mamba"), LayersChoice::Stream)];
    let app = App::start_as_it_is(&uncached(models)).await;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let entry = entry(&app, "mamba").await;
        if entry["state"] == "failed" {
            assert_eq!(entry["reason"], "layers: the layers of models of type `mamba` are not streamed");
            break;
        }
        assert!(std::time::Instant::now() < end, "{entry}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_change_fail_requests_until_the_model_is_loaded_again() {
    let place = tempfile::tempdir().unwrap();
    copy(GOLDEN, place.path());
    let app = started(&uncached(vec![placed("m", place.path().to_owned(), LayersChoice::Stream)])).await;
    let before = app.score(&request("m")).await;
    // The weights of each layer once more, in another file.
    let path = place.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    app.post("/v1/score", &request("m")).await.problem(503);
    app.post("/v1/models/m/unload", &json!({})).await.ok();
    app.post("/v1/models/m/load", &json!({})).await.ok();
    assert_eq!(app.score(&request("m")).await["results"], before["results"]);
}
