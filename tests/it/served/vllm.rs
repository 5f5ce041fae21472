//! vLLM behind a front. The server is one of ours that has the numbers of a golden; `benches/vllm.py` asks a real one.

use super::fake_server::{FakeServer, NAME};
use super::golden_scores::{DIGITS, assert_scores_of_golden};
use super::{FRONT, served};
use crate::common::app::{App, GOLDEN, REFERENCE, golden};
use crate::common::goldens::expected;
use pdr_audit::config::{DeviceChoice, ServedKind, Settings};
use serde_json::{Value, json};

async fn front(urls: &[String]) -> App {
    App::with(|settings| {
        served(settings, ServedKind::Vllm, NAME, GOLDEN, urls);
        settings.models.push(golden(REFERENCE, "gptneox-sequential"));
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_are_those_of_the_references() {
    let server = FakeServer::of(GOLDEN).await;
    let front = front(&[server.url()]).await;
    let answer = assert_scores_of_golden(&front).await;
    let backend = &answer["model"]["backend"];
    assert_eq!((&backend["kind"], &backend["version"]), (&json!("vllm"), &json!("0.32.0")));
    assert_eq!((&backend["weights"], &backend["rounding"]["measured"]), (&json!("not_attested"), &json!(0.0)));
    front.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_plugin_methods_of_the_whole_distribution_are_exact() {
    let server = FakeServer::of(GOLDEN).await;
    let with_moments = |settings: &mut Settings| {
        served(settings, ServedKind::Vllm, NAME, GOLDEN, &[server.url()]);
        settings.models[0].served.as_mut().unwrap().moments = true;
    };
    let mut settings = Settings::default();
    with_moments(&mut settings);
    settings.engine.device = DeviceChoice::Cpu;
    let without = App::start_as_it_is(&settings).await;
    let failed = without.engine.wait_until_loaded().await.unwrap_err().to_string();
    assert!(failed.contains("it has no moments"), "{failed}");

    server.state.lock().unwrap().plugin = true;
    let front = App::with(with_moments).await;
    let golden = expected(GOLDEN);
    let context = golden["context"].as_u64().unwrap() as usize;
    let is_scored =
        |text: &&Value| text["scores"]["mink++"]["0.2"].is_number() && text["ids"].as_array().unwrap().len() <= context;
    let texts: Vec<&Value> = golden["texts"].as_array().unwrap().iter().filter(is_scored).collect();
    let inputs: Vec<&Value> = texts.iter().map(|text| &text["text"]).collect();
    let answer = front.score(&json!({ "inputs": inputs, "methods": ["min_k_plus_plus"] })).await;
    assert!(texts.len() > 8, "{}", texts.len());
    for (text, result) in texts.iter().zip(answer["results"].as_array().unwrap()) {
        let want = text["scores"]["mink++"]["0.2"].as_f64().unwrap();
        let got = result["scores"]["min_k_plus_plus(k=0.2)"].as_f64().unwrap();
        // Quotients of numbers of ten digits with a denominator near 1.
        assert!((got - want).abs() <= 5.0 * DIGITS * (1.0 + want.abs()), "{got}, not {want}, of {}", text["name"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_need_the_whole_distribution_are_refused_by_name() {
    let server = FakeServer::of(GOLDEN).await;
    let front = front(&[server.url()]).await;
    let weights = json!({ "name": "loss", "pdr": { "decay": "entropy_sample" } });
    let body = json!({ "inputs": "A text.", "methods": ["loss", "min_k_plus_plus", "surp", "gap_k", weights] });
    let refused = front.post("/v1/score", &body).await;
    assert_eq!(refused.pointers(), ["/methods/1", "/methods/2", "/methods/3", "/methods/4"]);
    let detail = refused.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    for part in ["min_k_plus_plus(k=0.2)", "full_logits", FRONT, REFERENCE] {
        assert!(detail.contains(part), "{detail}");
    }
    // Those that are taken by default are possible ones, and what is explained has no number that is not known.
    let answer = front.score(&json!({ "inputs": "A text of words.", "details": ["tokens"] })).await;
    let names: Vec<&str> = answer["methods"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["loss", "zlib", "min_k", "loss", "zlib", "min_k"]);
    let token = &answer["results"][0]["tokens"][1];
    assert!(
        token["lp"].is_number() && token["max_lp"].is_number() && token["mu"].is_null() && token["sigma"].is_null()
    );
    let samples = [json!({ "text": "One text of words.", "label": 0 }), json!({ "text": "Another text.", "label": 1 })];
    let audit = front.audit(&json!({ "samples": samples })).await;
    assert_eq!(audit.json()["status"], "succeeded", "{}", audit.text());
    assert_eq!(audit.json()["results"]["provenance"]["backend"]["weights"], "not_attested");
    let stats = front.post("/v1/token-stats", &json!({ "sequences": [[5, 6, 7]] })).await.ok();
    assert_eq!(stats["sequences"][0]["mu"], json!([null, null]));
}
