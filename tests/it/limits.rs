//! The cost of a request is bounded, and the answer names the bound.

use crate::common::app::App;
use pdr_audit::config::ByteSize;
use serde_json::{Value, json};

/// As many methods as a request may have, each with a baseline that is not among them.
fn many_methods() -> Vec<Value> {
    let method =
        |at: usize| json!({ "name": "min_k", "k": (at + 1) as f64 / 256.0, "pdr": { "decay": "linear", "alpha": 1 } });
    (0..256).map(method).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_whatever_a_request_asks_for() {
    let app = App::start().await;
    let texts: Vec<String> = (0..400).map(|at| format!("{at} {}", "many words of a text ".repeat(3))).collect();
    let request = json!({ "inputs": texts, "methods": many_methods(), "details": ["tokens"] });
    let problem = app.post("/v1/score", &request).await.problem(413);
    assert!(problem["detail"].as_str().unwrap().starts_with("the answer about 400 texts and 256 methods"), "{problem}");
    // The same without details, and with labels whose characters take six bytes each.
    let texts: Vec<String> = (0..10_000).map(|at| format!("{at} b c")).collect();
    let method = |at: usize| json!({ "name": "min_k", "k": 0.5, "label": format!("{at}{}", "\u{1}".repeat(190)) });
    let request = json!({ "inputs": texts, "methods": (0..250).map(method).collect::<Vec<_>>() });
    app.post("/v1/score", &request).await.problem(413);
    let samples: Vec<Value> = (0..20_000).map(|at| json!({ "text": format!("{at} words") })).collect();
    let request = json!({ "samples": samples, "methods": many_methods() });
    let problem = app.post("/v1/audits", &request).await.problem(413);
    assert!(problem["detail"].as_str().unwrap().contains("scores"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_whose_results_a_store_in_memory_cannot_keep_are_refused_when_they_are_submitted() {
    let app = App::with(|settings| settings.store.memory = ByteSize::mib(16)).await;
    let submit = async |number: usize| {
        let samples: Vec<Value> = (0..number).map(|at| json!({ "text": format!("{at} words") })).collect();
        app.post("/v1/audits", &json!({ "samples": samples, "methods": ["loss"], "control": null })).await
    };
    // A megabyte of texts, and 17 units of weight for each.
    assert!(submit(60_000).await.problem(503)["detail"].as_str().unwrap().contains("store.memory"));
    assert_eq!(app.get("/v1/audits").await.json()["audits"], json!([]));
    assert_eq!(submit(10).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn datasets_in_memory_have_a_limit_and_room_again_once_they_are_deleted() {
    let app = App::with(|settings| settings.store.memory = ByteSize::mib(16)).await;
    let lines = |number: usize| {
        let line = |at: usize| format!("{}\n", json!({ "text": format!("{number} {at} {}", "word ".repeat(200)) }));
        (0..2_000).map(line).collect::<String>().into_bytes()
    };
    let upload = async |number| app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines(number)).await;
    let mut ids = Vec::new();
    let refused = loop {
        let answer = upload(ids.len()).await;
        if answer.status != 201 {
            break answer;
        }
        ids.push(answer.json()["id"].as_str().unwrap().to_owned());
        assert!(ids.len() < 16, "there is no limit");
    };
    assert!(refused.problem(503)["detail"].as_str().unwrap().contains("store.memory"));
    assert!(ids.len() > 3, "{}", ids.len());
    // Nothing of what was refused is left, and what is deleted makes room.
    for id in &ids {
        assert_eq!(app.delete(&format!("/v1/datasets/{id}")).await.status, 204);
    }
    assert_eq!(upload(0).await.status, 201);
}
