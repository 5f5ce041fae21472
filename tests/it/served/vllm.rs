//! vLLM behind a front. The server is one of ours that has the numbers of a golden; `benches/vllm.py` asks a real one.

use super::fake_server::{FakeServer, NAME};
use super::golden_scores::{DIGITS, assert_scores_of_golden};
use super::{FRONT, served, silent, until};
use crate::common::app::{App, GOLDEN, REFERENCE, golden};
use crate::common::client::send;
use crate::common::goldens::expected;
use crate::common::relay::{Act, Relay};
use pdr_audit::config::{DeviceChoice, ServedKind, Settings};
use reqwest::Method;
use serde_json::{Value, json};

async fn front(urls: &[String]) -> App {
    App::with(|settings| {
        served(settings, ServedKind::Vllm, NAME, GOLDEN, urls);
        settings.models.push(golden(REFERENCE, "gptneox-sequential"));
    })
    .await
}

/// True if this is the reason why the first server does not answer.
fn is_said(front: &App, reason: &str) -> bool {
    silent(&front.engine)[0].as_ref().is_some_and(|said| said.contains(reason))
}

/// Change made to an answer.
type Spoil = fn(&mut Value);

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

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_make_sense_is_not_taken() {
    let server = FakeServer::of(GOLDEN).await;
    let relay = Relay::to(server.address);
    let front = front(&[relay.url()]).await;
    let body = json!({ "inputs": ["One text of words.", "Another text."], "methods": ["loss"] });
    let want = front.score(&body).await["results"].clone();
    let spoils: [(Spoil, &str); 4] = [
        (|answer| drop(answer["choices"].as_array_mut().unwrap().pop()), "choices for"),
        (|answer| answer["choices"][0]["prompt_token_ids"][0] = json!(77), "other token ids"),
        (|answer| answer["choices"][0]["prompt_logprobs"][1] = Value::Null, "position 1: it has no log-probability"),
        (|answer| answer["choices"] = json!({}), "cannot be read"),
    ];
    for (spoil, reason) in spoils {
        server.state.lock().unwrap().spoil = spoil;
        let asked = tokio::spawn(send(front.request(Method::POST, "/v1/score").json(&body)));
        until(reason, || is_said(&front, reason)).await;
        server.state.lock().unwrap().spoil = |_| ();
        assert_eq!(asked.await.unwrap().ok()["results"], want);
        until("the server answers again", || silent(&front.engine)[0].is_none()).await;
    }
    // JSON has no such number, but what writes JSON does.
    let nan =
        json!({ "model": NAME, "choices": [{ "index": 0, "prompt_logprobs": [null, { "5": { "logprob": 0.5 } }] }] });
    let nan = nan.to_string().replace("0.5", "NaN");
    relay.state().next.push_back(Act::Say("200 OK\r\n", nan));
    let asked = tokio::spawn(send(front.request(Method::POST, "/v1/score").json(&body)));
    until("cannot be read", || is_said(&front, "cannot be read")).await;
    assert_eq!(asked.await.unwrap().ok()["results"], want);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_started_again_with_another_context_is_not_used() {
    let server = FakeServer::of(GOLDEN).await;
    let relay = Relay::to(server.address);
    let front = front(&[relay.url()]).await;
    let body = json!({ "inputs": "One text of words.", "methods": ["loss"] });
    let want = front.score(&body).await["results"].clone();
    relay.state().next.push_back(Act::Close);
    let context = std::mem::replace(&mut server.state.lock().unwrap().context, 7);
    let asked = tokio::spawn(send(front.request(Method::POST, "/v1/score").json(&body)));
    let is_refused = || silent(&front.engine)[0].as_ref().is_some_and(|said| said.contains("another model"));
    until("the server is refused", is_refused).await;
    server.state.lock().unwrap().context = context;
    assert_eq!(asked.await.unwrap().ok()["results"], want);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_weights_under_the_same_name_are_found_out_by_the_probe() {
    let server = FakeServer::of(GOLDEN).await;
    let relay = Relay::to(server.address);
    let front = front(&[relay.url()]).await;
    // The server is started again, with other weights.
    relay.state().next.push_back(Act::Close);
    server.state.lock().unwrap().unknown = -4.0;
    let body = json!({ "inputs": "One text of words.", "methods": ["loss"] });
    let asked = tokio::spawn(send(front.request(Method::POST, "/v1/score").json(&body)));
    let is_refused = || silent(&front.engine)[0].as_ref().is_some_and(|said| said.contains("other weights"));
    until("the server is refused", is_refused).await;
    server.state.lock().unwrap().unknown = -1.5;
    asked.await.unwrap().ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minus_infinity_is_an_error_of_its_text() {
    let server = FakeServer::of(GOLDEN).await;
    let front = front(&[server.url()]).await;
    // The server is checked before its first batch, and after that it is the same for a while.
    front.score(&json!({ "inputs": "Some words.", "methods": ["loss"] })).await;
    server.state.lock().unwrap().unknown = -9999.0;
    let before = server.state.lock().unwrap().batches.len();
    let answer = front.score(&json!({ "inputs": "Words that are impossible.", "methods": ["loss"] })).await;
    assert_eq!(answer["results"][0]["errors"][0]["code"], "non_finite", "{answer}");
    assert_eq!(server.state.lock().unwrap().batches[before..], [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_with_other_weights_is_not_used() {
    let (right, wrong) = (FakeServer::of(GOLDEN).await, FakeServer::of(GOLDEN).await);
    wrong.state.lock().unwrap().unknown = -4.0;
    let front = front(&[right.url(), wrong.url()]).await;
    let samples: Vec<Value> =
        (0..200).map(|n| json!({ "text": format!("Text {n} of some words."), "label": n % 2 })).collect();
    let body = json!({ "samples": samples, "methods": ["loss"], "control": null, "metrics": { "bootstrap": null } });
    let audit = front.audit(&body).await.json();
    assert_eq!(audit["status"], "succeeded", "{audit}");
    let scores = front.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    let rows = scores.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let losses: Vec<f64> = rows.filter_map(|row| row["scores"]["loss"].as_f64()).collect();
    assert_eq!(losses.len(), 200);
    assert!(losses.iter().all(|loss| (loss + 1.5).abs() < 1e-12), "{losses:?}");
    until("the wrong server is found out", || silent(&front.engine)[1].is_some()).await;
    assert!(silent(&front.engine)[1].clone().unwrap().contains("other weights"));
}
