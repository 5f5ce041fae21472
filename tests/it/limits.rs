//! What a request may cost is bounded, and the answer names the bound.

use crate::common::app::App;
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
    assert!(problem["detail"].as_str().unwrap().contains("`details` of"), "{problem}");
    let samples: Vec<Value> = (0..20_000).map(|at| json!({ "text": format!("{at} words") })).collect();
    let request = json!({ "samples": samples, "methods": many_methods() });
    let problem = app.post("/v1/audits", &request).await.problem(413);
    assert!(problem["detail"].as_str().unwrap().contains("scores"), "{problem}");
}
