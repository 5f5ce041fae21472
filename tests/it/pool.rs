//! The pool of models through the front door: states, loading and unloading, what fails alone, models from the Hub.

use crate::common::app::{App, golden, settings};
use crate::common::goldens::{directory, expected};
use crate::common::hub_server::{COMMIT, HubServer, REPO};
use candle_core::DType;
use lm::hub::Hub;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::footprint::Workload::Batch;
use lm::models::layers::LayerPlacement;
use lm::models::ops::Form;
use pdr_audit::config::{ByteSize, LoadPolicy, ModelSettings, ModelSource};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn lazy(model: ModelSettings) -> ModelSettings {
    ModelSettings { load: LoadPolicy::Lazy, ..model }
}

/// Bytes that `tokens` tokens take besides the weights, by the service's own estimate.
fn activations(name: &str, tokens: usize) -> u64 {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
    let form = Form::inference(&candle_core::Device::Cpu, DType::F32);
    checkpoint.activation_bytes(form, DType::F32, LayerPlacement::Resident, Batch, 1)(tokens)
}

/// A model whose files are in a directory of its own.
fn in_directory(id: &str, path: PathBuf) -> ModelSettings {
    ModelSettings { source: ModelSource { text: path.display().to_string(), path }, ..golden(id, "gpt2") }
}

fn copy(name: &str, to: &Path) -> PathBuf {
    let copy = to.join(name);
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(directory(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    copy
}

async fn model(app: &App, id: &str) -> Value {
    let list = app.get("/v1/models").await.ok();
    list["models"].as_array().unwrap().iter().find(|model| model["id"] == id).expect("the model is listed").clone()
}

/// Waits until a model is in a state.
async fn until(app: &App, id: &str, state: &str) -> Value {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let model = model(app, id).await;
        if model["state"] == state {
            return model;
        }
        assert!(Instant::now() < end, "not {state}: {model}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A text of every golden.
const TEXT: &str = "The cat sat on the mat.";

fn request(model: &str) -> Value {
    json!({ "model": model, "inputs": TEXT, "methods": ["loss"] })
}

/// The loss of that text by the reference.
fn reference_loss(name: &str) -> f64 {
    let texts = expected(name)["texts"].as_array().unwrap().clone();
    texts.iter().find(|text| text["text"] == TEXT).unwrap()["scores"]["loss"].as_f64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_models_are_listed_and_the_lazy_one_is_loaded_by_its_first_request() {
    let names = ["gptneox-parallel", "llama-gqa", "mamba", "gpt2", "opt-post-proj"];
    let mut models: Vec<ModelSettings> = names.iter().map(|name| golden(name, name)).collect();
    models[4] = lazy(models[4].clone());
    let app = App::start_as_it_is(&settings(models)).await;
    app.engine.wait_until_loaded().await.unwrap();
    for name in &names[..4] {
        let model = until(&app, name, "ready").await;
        assert_eq!((&model["resident"], &model["kind"]), (&json!(["cpu"]), &json!("causal")), "{model}");
    }
    let waiting = until(&app, "opt-post-proj", "unloaded").await;
    assert_eq!((&waiting["resident"], &waiting["pinned"]), (&json!([]), &json!(false)));
    let list = app.get("/v1/models").await.ok();
    let models = list["models"].as_array().unwrap();
    let mut digests: Vec<&str> = models.iter().map(|model| model["digest"].as_str().unwrap()).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 5);
    let loaded: u64 =
        models.iter().filter(|m| m["state"] == "ready").map(|m| m["weight_bytes"].as_u64().unwrap()).sum();
    assert_eq!(list["devices"][0]["memory_used_bytes"], loaded);
    app.score(&request("opt-post-proj")).await;
    assert_eq!(model(&app, "opt-post-proj").await["state"], "ready");
    assert_eq!(model(&app, "mamba").await["context"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_models_answer_at_once_each_with_its_own_numbers() {
    let names = ["llama-gqa", "gptj"];
    let app = App::start_as_it_is(&settings(names.iter().map(|name| lazy(golden(name, name))).collect())).await;
    let requests = (0..16).map(|i| {
        let (client, name) = ((*app).clone(), names[i % 2]);
        tokio::spawn(async move { (name, client.score(&request(name)).await) })
    });
    for answer in futures::future::join_all(requests).await {
        let (name, answer) = answer.unwrap();
        assert_eq!(answer["model"]["id"], name);
        let loss = answer["results"][0]["scores"]["loss"].as_f64().unwrap();
        let want = reference_loss(name);
        assert!((loss - want).abs() < 1e-4, "{name}: {loss} instead of {want}");
    }
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_unloaded_and_loaded_by_hand() {
    let app = App::start().await;
    let before = app.score(&json!({ "inputs": "Once upon a time." })).await;
    let unloaded = app.post("/v1/models/tiny/unload", &json!({})).await.ok();
    assert_eq!((&unloaded["state"], &unloaded["resident"]), (&json!("unloaded"), &json!([])));
    // Unloading what is not loaded is no fault, and what an operator unloads does not make the service unready.
    app.post("/v1/models/tiny/unload", &json!({})).await.ok();
    app.get("/readyz").await.ok();
    let loaded = app.post("/v1/models/tiny/load", &json!({})).await.ok();
    assert_eq!(loaded["state"], "ready");
    app.post("/v1/models/tiny/load", &json!({})).await.ok();
    app.post("/v1/models/tiny/unload", &json!({})).await.ok();
    // A request loads it again.
    let after = app.score(&json!({ "inputs": "Once upon another time." })).await;
    assert_eq!(after["model"], before["model"]);
    for action in ["load", "unload"] {
        let problem = app.post(&format!("/v1/models/other/{action}"), &json!({})).await.problem(404);
        assert!(problem["detail"].as_str().unwrap().contains("`other`"), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_model_says_why_and_the_others_serve_until_it_is_mended() {
    let place = tempfile::tempdir().unwrap();
    let broken = copy("gpt2", place.path());
    let weights = broken.join("model.safetensors");
    let whole = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &whole[..whole.len() - 1]).unwrap();
    let app = App::start_as_it_is(&settings(vec![
        golden("good", "gptj"),
        in_directory("broken", broken),
        lazy(in_directory("nowhere", place.path().join("nothing"))),
    ]))
    .await;
    let failed = until(&app, "broken", "failed").await;
    assert!(failed["reason"].as_str().unwrap().contains("model.safetensors"), "{failed}");
    assert_eq!(failed["digest"], Value::Null);
    let failed = until(&app, "nowhere", "failed").await;
    assert!(failed["reason"].as_str().unwrap().contains("not a directory"), "{failed}");
    app.score(&request("good")).await;
    let problem = app.post("/v1/score", &request("broken")).await.problem(503);
    assert!(!problem["detail"].as_str().unwrap().contains("/"), "no paths for clients: {problem}");
    app.get("/readyz").await.problem(503);
    let problem = app.post("/v1/models/broken/load", &json!({})).await.problem(503);
    assert!(problem["detail"].as_str().unwrap().contains("model.safetensors"), "{problem}");

    std::fs::write(&weights, &whole).unwrap();
    assert_eq!(app.post("/v1/models/broken/load", &json!({})).await.ok()["state"], "ready");
    app.score(&request("broken")).await;
    app.get("/readyz").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_appears_after_the_start_is_opened_without_a_request() {
    let place = tempfile::tempdir().unwrap();
    let app = App::start_as_it_is(&settings(vec![in_directory("late", place.path().join("gpt2"))])).await;
    until(&app, "late", "failed").await;
    let failed = r#"pdr_audit_engine_model_loads_total{model="late",outcome="failed"}"#;
    assert!(app.counter(failed).await >= 1, "a failure to open counts");
    app.get("/readyz").await.problem(503);
    let part = tempfile::tempdir_in(place.path()).unwrap();
    std::fs::rename(copy("gpt2", part.path()), place.path().join("gpt2")).unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while app.get("/readyz").await.status != 200 {
        assert!(Instant::now() < end, "{}", model(&app, "late").await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_change_while_a_model_is_unloaded_are_not_taken_for_the_old_ones() {
    let place = tempfile::tempdir().unwrap();
    let path = copy("gpt2", place.path());
    let app = App::start_as_it_is(&settings(vec![in_directory("changing", path.clone())])).await;
    app.engine.wait_until_loaded().await.unwrap();
    let before = app.score(&request("changing")).await;
    app.post("/v1/models/changing/unload", &json!({})).await.ok();
    let config = std::fs::read_to_string(path.join("config.json")).unwrap();
    std::fs::write(path.join("config.json"), config.replace("1e-05", "1e-04")).unwrap();
    let other = json!({ "model": "changing", "inputs": "Not in the cache." });
    app.post("/v1/score", &other).await.problem(503);
    let failed = model(&app, "changing").await;
    assert!(failed["reason"].as_str().unwrap().contains("config.json: it has changed"), "{failed}");
    app.post("/v1/models/changing/load", &json!({})).await.ok();
    let after = app.score(&request("changing")).await;
    assert_ne!(after["model"]["digest"], before["model"]["digest"]);
    assert_ne!(after["results"][0]["scores"]["loss"], before["results"][0]["scores"]["loss"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lazy_models_make_room_for_each_other_within_the_budget() {
    let names = ["gpt2", "gptj", "gpt_neo"];
    let mut settings = settings(names.iter().map(|name| lazy(golden(name, name))).collect());
    settings.engine.max_batch_tokens = Some(8);
    let app = App::start_as_it_is(&settings).await;
    let size = async |name| until(&app, name, "unloaded").await["weight_bytes"].as_u64().unwrap();
    let sizes = [size(names[0]).await, size(names[1]).await, size(names[2]).await];
    let mut tight = settings.clone();
    // Any two of the three fit beside a batch of eight tokens, all of them do not.
    let batch = names.map(|name| activations(name, 8)).into_iter().max().unwrap();
    let largest_pair = sizes.iter().sum::<u64>() - sizes.iter().min().unwrap();
    tight.engine.memory = Some(ByteSize::b(batch + largest_pair));
    let app = App::start_as_it_is(&tight).await;
    app.score(&request("gpt2")).await;
    app.score(&request("gptj")).await;
    let third = app.post("/v1/score", &request("gpt_neo")).await;
    assert_eq!(third.status, 200, "{}", third.text());
    let states = [model(&app, "gpt2").await, model(&app, "gptj").await, model(&app, "gpt_neo").await];
    let states = states.map(|model| model["state"].as_str().unwrap().to_owned());
    assert_eq!(states, ["unloaded", "ready", "ready"], "the longest unused goes");
    let list = app.get("/v1/models").await.ok();
    let device = &list["devices"][0];
    assert!(device["memory_used_bytes"].as_u64() <= device["memory_budget_bytes"].as_u64(), "{device}");

    let mut small = settings.clone();
    small.engine.memory = Some(ByteSize::b(100_000));
    let app = App::start_as_it_is(&small).await;
    app.post("/v1/score", &request("gpt2")).await.problem(503);
    let reason = until(&app, "gpt2", "failed").await["reason"].as_str().unwrap().to_owned();
    let needs = format!("({:.1} MiB of weights", sizes[0] as f64 / f64::from(1 << 20));
    assert!(reason.contains(&needs) && reason.contains("the device has 0.1 MiB"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_beyond_the_memory_of_the_device_fails_alone() {
    let mut settings = settings(vec![golden("mamba", "mamba")]);
    // Room for the weights, which are less than a MiB, and some hundred tokens.
    settings.engine.memory = Some(ByteSize::b((1 << 20) + activations("mamba", 100)));
    let app = App::start_as_it_is(&settings).await;
    let inputs = json!([TEXT, "word ".repeat(20_000)]);
    let answer = app.score(&json!({ "inputs": inputs, "methods": ["loss"] })).await;
    assert!(answer["results"][0]["scores"]["loss"].is_number(), "{answer}");
    let error = &answer["results"][1]["errors"][0];
    assert_eq!(error["code"], "too_long");
    assert!(error["detail"].as_str().unwrap().contains("memory"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_masked_model_is_listed_and_scores_nothing() {
    let app = App::start_as_it_is(&settings(vec![golden("bert", "bert-mlm"), golden("other", "gpt2")])).await;
    app.engine.wait_until_loaded().await.unwrap();
    let bert = model(&app, "bert").await;
    assert_eq!(
        (&bert["kind"], &bert["state"], &bert["architecture"]),
        (&json!("masked"), &json!("ready"), &json!("bert"))
    );
    let answer = app.post("/v1/score", &request("bert")).await;
    assert_eq!(answer.pointers(), ["/model"]);
    let audit = app.audit(&json!({ "model": "bert", "samples": [{ "text": "a" }], "methods": ["loss"] })).await;
    assert_eq!(audit.pointers(), ["/model"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_precision_is_named_in_the_answer() {
    let mut settings = settings(vec![golden("half", "llama-gqa")]);
    settings.engine.dtype = pdr_audit::config::Dtype::Bf16;
    let app = App::start_as_it_is(&settings).await;
    let answer = app.score(&request("half")).await;
    assert_eq!(answer["model"]["dtype"], "bf16");
    let loss = answer["results"][0]["scores"]["loss"].as_f64().unwrap();
    // As in the parity test of the half types: a mean of a few dozen tokens, each off by up to 0.3.
    assert!((loss - reference_loss("llama-gqa")).abs() < 0.1, "{loss}");
    let model = model(&app, "half").await;
    let bytes = std::fs::metadata(directory("llama-gqa").join("model.safetensors")).unwrap().len();
    // Half, and where weights are packed what fills up their panels: 64 columns of such a tiny model take the room of 96.
    assert!(model["weight_bytes"].as_u64().unwrap() < bytes * 8 / 10, "{model}");
}

fn hub(home: &Path, server: &HubServer, offline: bool) -> Hub {
    let (home, endpoint) = (home.to_str().unwrap().to_owned(), server.url());
    let variable = move |name: &str| match name {
        "HF_HOME" => Some(home.clone()),
        "HF_ENDPOINT" => Some(endpoint.clone()),
        "HF_HUB_OFFLINE" => offline.then(|| "1".to_owned()),
        _ => None,
    };
    Hub::from_environment(variable).unwrap()
}

fn from_hub(id: &str, repository: &str) -> ModelSettings {
    let source = ModelSource { text: repository.to_owned(), path: PathBuf::from("/nowhere").join(repository) };
    ModelSettings { source, revision: Some("main".into()), ..lazy(golden(id, "gpt2")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_the_hub_is_fetched_by_its_first_request_and_named_by_its_commit() {
    let read = |name: &str| std::fs::read(directory("gpt2").join(name)).unwrap();
    let files = [("config.json", read("config.json")), ("tokenizer.json", read("tokenizer.json"))];
    let weights = read("model.safetensors");
    let mut listed: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    listed.push(("model.safetensors", &weights));
    let server = HubServer::with(&listed);
    let home = tempfile::tempdir().unwrap();
    let configured =
        settings(vec![from_hub("fetched", REPO), golden("local", "gptj"), from_hub("missing", "some-org/other")]);
    let app = App::over_hub(&configured, Ok(hub(home.path(), &server, false))).await;
    app.engine.wait_until_loaded().await.unwrap();
    // Nothing was asked of the Hub for a lazy model.
    assert!(server.state().requests.is_empty());
    assert_eq!(model(&app, "fetched").await["state"], "unloaded");

    // While it is fetched, its progress shows and the others serve.
    server.state().delay = Duration::from_millis(300);
    let first = tokio::spawn({
        let client = (*app).clone();
        async move { client.score(&request("fetched")).await }
    });
    let loading = until(&app, "fetched", "loading").await;
    assert!(loading.get("reason").is_none(), "{loading}");
    app.score(&request("local")).await;
    let answer = first.await.unwrap();
    assert_eq!(answer["model"]["commit"], COMMIT);
    let want = reference_loss("gpt2");
    assert!((answer["results"][0]["scores"]["loss"].as_f64().unwrap() - want).abs() < 1e-4);
    assert_eq!(model(&app, "fetched").await["commit"], COMMIT);

    app.post("/v1/score", &request("missing")).await.problem(503);
    let missing = until(&app, "missing", "failed").await;
    assert!(missing["reason"].as_str().unwrap().contains("some-org/other"), "{missing}");

    // Another process without a network has it from the cache.
    let asked = server.state().requests.len();
    let app = App::over_hub(&configured, Ok(hub(home.path(), &server, true))).await;
    assert_eq!(app.score(&request("fetched")).await["model"]["commit"], COMMIT);
    assert_eq!(server.state().requests.len(), asked);
}
