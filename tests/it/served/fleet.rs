//! Engines of this program behind a front.

use super::{engine, served, silent, until};
use crate::common::app::{App, GOLDEN, TINY};
use crate::common::goldens::expected;
use crate::common::relay::{Act, Relay};
use pdr_audit::config::{ServedKind, Settings};
use serde_json::{Value, json};

fn front_of(settings: &mut Settings, urls: &[String]) {
    served(settings, ServedKind::PdrAudit, TINY, GOLDEN, urls);
}

fn url(app: &App) -> String {
    format!("http://{}", app.address)
}

/// Every text of the golden that has scores.
fn texts() -> Vec<String> {
    let golden = expected(GOLDEN);
    let texts = golden["texts"].as_array().unwrap().iter();
    let is_scored = |text: &&Value| (3..=100).contains(&text["ids"].as_array().unwrap().len());
    texts.filter(is_scored).map(|text| text["text"].as_str().unwrap().to_owned()).collect()
}

/// The results of an answer, without its model and usage.
fn scores(mut answer: Value) -> Value {
    answer["results"].take()
}

fn methods() -> Value {
    json!(["loss", "zlib", "lowercase", "min_k", "min_k_plus_plus", "max_k", "gap_k", "surp",
        { "name": "min_k_plus_plus", "pdr": { "decay": "exponential", "alpha": 0.02 } },
        { "name": "loss", "pdr": { "decay": "slope" } },
        { "name": "recall", "prefix": ["Another text that is not scored."] }])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_of_two_engines_gives_the_bits_of_one_process() {
    let (one, other) = (engine().await, engine().await);
    let front = App::with(|settings| front_of(settings, &[url(&one), url(&other)])).await;
    let body = json!({ "inputs": texts(), "methods": methods(), "details": ["tokens"] });
    let (alone, behind) = (one.score(&body).await, front.score(&body).await);
    assert_eq!(behind["model"]["digest"], alone["model"]["digest"]);
    let backend = json!({ "kind": "pdr-audit", "version": env!("CARGO_PKG_VERSION"), "served_name": TINY, "urls": 2, "weights": "attested" });
    assert_eq!((&behind["model"]["backend"], &behind["model"]["device"]), (&backend, &json!("served")));
    assert_eq!(scores(behind), scores(alone));
    let models = front.get("/v1/models").await.ok();
    let names: Vec<&Value> = models["devices"].as_array().unwrap().iter().map(|device| &device["name"]).collect();
    assert_eq!(names, [&json!("cpu"), &json!("front/1"), &json!("front/2")]);
    assert_eq!(models["models"][0]["resident"], json!(["front/1", "front/2"]));
    assert_eq!(models["models"][0]["backend"], backend);
    assert!(!models.to_string().contains(&one.address.to_string()), "no URL is told");
    front.assert_nothing_is_left().await;
}

/// Samples with labels, each a text of its own.
fn samples(count: usize) -> Vec<Value> {
    let texts = texts();
    let sample = |n: usize| json!({ "text": format!("{n} {}", texts[n % texts.len()]), "label": n % 2 });
    (0..count).map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_survives_the_end_of_an_engine_with_the_same_bits() {
    let (one, other) = (engine().await, engine().await);
    let (first, second) = (Relay::to(one.address), Relay::to(other.address));
    let front = App::with(|settings| {
        front_of(settings, &[first.url(), second.url()]);
        settings.models[0].served.as_mut().unwrap().max_batch_tokens = Some(256);
    })
    .await;
    let body = json!({ "samples": samples(200), "methods": ["loss", "min_k_plus_plus"], "control": null, "metrics": { "bootstrap": null } });
    // After some batches the first engine is gone.
    first.state().next.extend([Act::Pass, Act::Pass, Act::Cut(400)]);
    first.state().always = Act::Close;
    let before = first.state().forwards;
    let behind = front.audit(&body).await;
    let behind = behind.json();
    assert_eq!(behind["status"], "succeeded", "{behind}");
    assert!(first.state().forwards > before, "the first engine ran nothing");
    assert!(silent(&front.engine)[0].is_some() && silent(&front.engine)[1].is_none());
    let alone = one.audit(&body).await.json();
    assert!(alone["results"]["methods"].is_array());
    assert_eq!(behind["results"]["methods"], alone["results"]["methods"]);
    assert_eq!(behind["results"]["provenance"]["backend"]["weights"], "attested");
    first.state().always = Act::Pass;
    until("the first engine is back", || silent(&front.engine)[0].is_none()).await;
    front.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_under_the_same_name_is_found_out() {
    let (right, relay) = (engine().await, Relay::to(std::net::SocketAddr::from(([127, 0, 0, 1], 9))));
    relay.state().target = right.address;
    let front = App::with(|settings| front_of(settings, &[relay.url()])).await;
    let body = json!({ "inputs": "A text of some words.", "methods": ["loss"] });
    let before = scores(front.score(&body).await);
    let other = App::with(|settings| {
        settings.models[0].source = crate::common::app::golden(TINY, "gptneox-sequential").source;
    })
    .await;
    relay.state().target = other.address;
    let pending = tokio::spawn({
        let (request, body) = (front.request(reqwest::Method::POST, "/v1/score"), body.clone());
        async move { crate::common::client::send(request.json(&body)).await }
    });
    until("the engine is refused", || silent(&front.engine)[0].is_some()).await;
    let reason = silent(&front.engine)[0].clone().unwrap();
    assert!(
        reason.contains("does not have the model that was opened") && reason.contains("has the identity"),
        "{reason}"
    );
    until("the front is not ready", || !front.engine.is_ready()).await;
    assert_eq!(front.get("/readyz").await.status, 503);
    let devices = front.get("/v1/models").await.ok()["devices"].clone();
    assert!(devices[1]["unavailable"].as_str().is_some_and(|reason| reason.contains("another model")), "{devices}");
    relay.state().target = right.address;
    assert_eq!(scores(pending.await.unwrap().ok()), before);
    assert_eq!(front.get("/readyz").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tokenizer_that_is_not_the_engines_is_refused() {
    let one = engine().await;
    let mut settings = Settings::default();
    served(&mut settings, ServedKind::PdrAudit, TINY, "gpt2", &[url(&one)]);
    settings.engine.device = pdr_audit::config::DeviceChoice::Cpu;
    let front = App::start_as_it_is(&settings).await;
    let error = front.engine.wait_until_loaded().await.unwrap_err().to_string();
    assert!(error.contains("tokenizer") && error.contains("sha256:"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_to_an_engine_has_the_key_of_the_environment() {
    let one = engine().await;
    let relay = Relay::to(one.address);
    let front = App::with(|settings| {
        front_of(settings, &[relay.url()]);
        settings.models[0].served.as_mut().unwrap().api_key_env = Some("PATH".to_owned());
    });
    front.await;
    let key = std::env::var("PATH").unwrap();
    let heads = relay.state().heads.clone();
    assert!(!heads.is_empty() && heads.iter().all(|head| head.contains(&format!("Bearer {key}\r\n"))), "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_the_weights_is_refused() {
    let one = engine().await;
    let front = App::with(|settings| front_of(settings, &[url(&one)])).await;
    let texts: Vec<Value> = (0..8).map(|n| json!({ "text": format!("Text {n} to tune on.") })).collect();
    let refused = front.post("/v1/finetunes", &json!({ "name": "tuned", "samples": texts })).await;
    assert_eq!(refused.pointers(), ["/model"]);
    assert!(refused.text().contains("served elsewhere"), "{}", refused.text());
    let body = json!({ "samples": samples(40), "methods": ["loss", { "name": "fsd", "split": 0.3 }] });
    let refused = front.post("/v1/audits", &body).await;
    assert_eq!(refused.pointers(), ["/methods/1"]);
    assert!(refused.text().contains("served elsewhere"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_engine_does_not_run_itself_is_refused() {
    let one = engine().await;
    let middle = App::with(|settings| front_of(settings, &[url(&one)])).await;
    let mut settings = Settings::default();
    served(&mut settings, ServedKind::PdrAudit, "front", GOLDEN, &[url(&middle)]);
    settings.engine.device = pdr_audit::config::DeviceChoice::Cpu;
    let front = App::start_as_it_is(&settings).await;
    let error = front.engine.wait_until_loaded().await.unwrap_err().to_string();
    assert!(error.contains("does not run `front` itself"), "{error}");
}
