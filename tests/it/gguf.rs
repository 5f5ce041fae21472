//! Models in GGUF as clients see them: from disk and from the Hub, with the name of what they are quantised to.

use crate::common::app::{App, golden, settings};
use crate::common::goldens::directory;
use crate::common::hub_server::{COMMIT, HubServer, REPO};
use lm::hub::Hub;
use pdr_audit::config::{ModelSettings, ModelSource};
use serde_json::{Value, json};
use std::path::PathBuf;

fn fixture(name: &str) -> PathBuf {
    directory("").join("../gguf").join(name)
}

fn model(id: &str, source: &str, path: PathBuf) -> ModelSettings {
    ModelSettings { source: ModelSource { text: source.to_owned(), path }, ..golden(id, "gpt2") }
}

fn on_disk(id: &str, file: &str) -> ModelSettings {
    let path = fixture(file);
    model(id, &path.display().to_string(), path)
}

/// Texts, and the mean of the log-probabilities that transformers gives their tokens.
fn expected(name: &str) -> Vec<(String, f64)> {
    let read: Value = serde_json::from_slice(&std::fs::read(fixture("expected.json")).unwrap()).unwrap();
    let texts = read["models"][name]["texts"].as_array().unwrap();
    let scored = texts.iter().filter(|text| !text["logp"].as_array().unwrap().is_empty());
    let mean = |text: &Value| {
        let logp: Vec<f64> = serde_json::from_value(text["logp"].clone()).unwrap();
        (text["text"].as_str().unwrap().to_owned(), logp.iter().sum::<f64>() / logp.len() as f64)
    };
    scored.map(mean).collect()
}

async fn check_scores(app: &App, id: &str, name: &str) -> Value {
    let expected = expected(name);
    let texts: Vec<&str> = expected.iter().map(|(text, _)| text.as_str()).collect();
    let answer = app.score(&json!({ "model": id, "inputs": texts, "methods": ["loss"] })).await;
    for (result, (text, want)) in answer["results"].as_array().unwrap().iter().zip(&expected) {
        let got = result["scores"]["loss"].as_f64().unwrap();
        assert!((got - want).abs() < 1e-5, "{text}: {got}, but transformers has {want}");
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_scored_and_named_by_what_it_is_quantised_to() {
    let models = vec![on_disk("mixed", "mixed.gguf"), on_disk("plain", "llama.gguf")];
    let app = App::start_as_it_is(&settings(models)).await;
    let answer = check_scores(&app, "mixed", "mixed").await;
    let digest = lm::models::files::digest(&std::fs::read(fixture("mixed.gguf")).unwrap());
    assert_eq!((&answer["model"]["quantization"], &answer["model"]["digest"]), (&json!("Q4_K_M"), &json!(digest)));
    let plain = check_scores(&app, "plain", "llama").await;
    assert_eq!(plain["model"].get("quantization"), None);
    let listed = app.get("/v1/models").await.ok();
    let quantization = |entry: &Value| entry.get("quantization").cloned();
    let all: Vec<_> = listed["models"].as_array().unwrap().iter().map(quantization).collect();
    assert_eq!(all, [Some(json!("Q4_K_M")), None]);

    let text = |number: usize| json!({ "text": format!("the {number} towns of the river grew"), "label": number % 2 });
    let samples: Vec<Value> = (0..8).map(text).collect();
    let report = async |model: &str| {
        let audit = app.audit(&json!({ "model": model, "samples": samples, "methods": ["loss"] })).await.ok();
        audit["results"].clone()
    };
    let warns = |report: &Value| {
        report["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "quantized_model")
    };
    let (quantized, plain) = (report("mixed").await, report("plain").await);
    assert_eq!(quantized["provenance"]["quantization"], "Q4_K_M");
    assert_eq!((warns(&quantized), warns(&plain)), (true, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_takes_no_adapters() {
    let app = App::start_as_it_is(&settings(vec![on_disk("mixed", "mixed.gguf")])).await;
    let methods = app.get("/v1/methods?model=mixed").await.ok();
    let unavailable: Vec<(&Value, &Value)> = methods["methods"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| Some((&entry["name"], entry.get("unavailable")?)))
        .collect();
    assert_eq!(unavailable.len(), 1, "{unavailable:?}");
    assert!(unavailable[0].0 == "fsd" && unavailable[0].1.as_str().unwrap().contains("is in GGUF"), "{unavailable:?}");
    let texts: Vec<Value> = (0..8).map(|number| json!({ "text": format!("Text {number} to tune on.") })).collect();
    let refused = app.post("/v1/finetunes", &json!({ "name": "tuned", "samples": texts })).await;
    assert_eq!(refused.pointers(), ["/model"]);
    assert!(refused.text().contains("is in GGUF"), "{}", refused.text());
    let split = json!([{ "name": "fsd", "split": 0.3 }]);
    let refused = app.post("/v1/audits", &json!({ "samples": texts, "methods": split })).await;
    assert!(refused.text().contains("tunes model `mixed`, which is in GGUF"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_hub_is_fetched_alone() {
    let file = std::fs::read(fixture("qwen2.gguf")).unwrap();
    let server = HubServer::with(&[("qwen2.gguf", &file), ("other.gguf", b"GGUF"), ("README.md", b"#")]);
    let home = tempfile::tempdir().unwrap();
    let (endpoint, cache) = (server.url(), home.path().to_str().unwrap().to_owned());
    let variable = move |name: &str| match name {
        "HF_HOME" => Some(cache.clone()),
        "HF_ENDPOINT" => Some(endpoint.clone()),
        _ => None,
    };
    let source = format!("hub:{REPO}:qwen2.gguf");
    let absent = format!("hub:{REPO}:absent.gguf");
    let nowhere = || PathBuf::from("/nowhere");
    let models = vec![model("hub", &source, nowhere()), model("absent", &absent, nowhere())];
    let app = App::over_hub(&settings(models), Ok(Hub::from_environment(variable).unwrap())).await;
    let answer = check_scores(&app, "hub", "qwen2").await;
    assert_eq!((&answer["model"]["commit"], &answer["model"]["quantization"]), (&json!(COMMIT), &json!("Q8_0")));
    assert!(server.requests("other.gguf").is_empty() && server.requests("README.md").is_empty());
    let refused = app.post("/v1/score", &json!({ "model": "absent", "inputs": ["a"], "methods": ["loss"] })).await;
    refused.problem(503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tokenizer_may_be_named_and_a_broken_file_is_told_by_its_fault() {
    let directory_of = directory("qwen2");
    let tokenizer = Some(ModelSource { text: directory_of.display().to_string(), path: directory_of });
    let broken = tempfile::tempdir().unwrap();
    let path = broken.path().join("broken.gguf");
    std::fs::write(&path, b"GGUF\x01\0\0\0").unwrap();
    let models = vec![
        ModelSettings { tokenizer, ..on_disk("named", "qwen2.gguf") },
        model("broken", &path.display().to_string(), path),
    ];
    let app = App::start_as_it_is(&settings(models)).await;
    check_scores(&app, "named", "qwen2").await;
    app.post("/v1/score", &json!({ "model": "broken", "inputs": ["a"], "methods": ["loss"] })).await.problem(503);
    let listed = app.get("/v1/models").await.ok();
    let reason = listed["models"][1]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("broken.gguf: version 1 of the format is not supported"), "{reason}");
}
