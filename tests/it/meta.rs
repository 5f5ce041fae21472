//! Models, methods, health, metrics and documentation through the front door.

use crate::common::alone::alone;
use crate::common::app::App;
use crate::common::client::send;
use crate::common::keys::clients;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::runtime::Runtime;

#[tokio::test(flavor = "multi_thread")]
async fn the_root_says_where_to_go() {
    let app = App::start().await;
    let links = app.get("/").await.ok();
    assert_eq!((&links["service"], &links["documentation"]), (&json!("pdr-audit"), &json!("/docs")));
    for (_, path) in links.as_object().unwrap().iter().filter(|(name, _)| *name != "service" && *name != "version") {
        assert_eq!(app.get(path.as_str().unwrap()).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_the_dashboard_at_the_root() {
    let app = App::start().await;
    let get = |path: &str, accept: &str| app.request(Method::GET, path).header("accept", accept);
    let page = send(get("/", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!((page.header("vary"), page.header("cache-control")), ("accept", "no-cache"));
    let policy = page.header("content-security-policy");
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    for (file, media) in [("app.js", "text/javascript; charset=utf-8"), ("app.css", "text/css; charset=utf-8")] {
        let path = format!("dashboard/{file}");
        assert!(page.text().contains(&format!("=\"{path}\"")), "{}", page.text());
        let answer = app.get(&format!("/{path}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, media));
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        let again = get(&format!("/{path}"), "*/*").header("if-none-match", answer.header("etag"));
        let again = send(again).await;
        assert_eq!((again.status, again.text()), (304, ""));
        let other = send(get(&format!("/{path}"), "*/*").header("if-none-match", "\"other\"")).await;
        assert_eq!(other.status, 200);
    }
    assert_eq!(app.get("/dashboard/other.js").await.status, 404);
    send(get("/", "image/png")).await.problem(406);
    // A report in a frame of the page keeps to its policy.
    let texts: Vec<Value> = (0..20).map(|n| json!({ "text": format!("Sample {n} of the brass clock.") })).collect();
    let audit = app.audit(&json!({ "samples": texts, "methods": ["loss"], "control": null })).await.ok();
    let path = format!("/v1/audits/{}/report", audit["id"].as_str().unwrap());
    let report = send(get(&path, "text/html")).await;
    let style = report.text().split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let digest = STANDARD.encode(Sha256::digest(style));
    assert!(policy.contains(&format!("'sha256-{digest}'")), "{policy}");
    // Where the service has keys, the page is there without one.
    let (_keys, app, _) = clients(["someone"]).await;
    for path in ["/", "/dashboard/app.js"] {
        assert_eq!(send(app.request(Method::GET, path).header("accept", "text/html, */*")).await.status, 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_with_their_facts() {
    let app = App::start().await;
    let list = app.get("/v1/models").await.ok();
    let models = list["models"].as_array().unwrap();
    assert_eq!(models.iter().map(|model| &model["id"]).collect::<Vec<_>>(), ["tiny", "tiny-reference"]);
    let tiny = &models[0];
    assert_eq!((&tiny["state"], &tiny["default"], &tiny["load"]), (&json!("ready"), &json!(true), &json!("eager")));
    assert_eq!((&tiny["architecture"], &tiny["context"]), (&json!("gpt_neox"), &json!(128)));
    assert_eq!((&tiny["reference"], &models[1]["reference"]), (&json!("tiny-reference"), &Value::Null));
    assert!(tiny["weight_bytes"].as_u64().unwrap() > 0 && tiny["vocab_size"].as_u64().unwrap() > 0);
    assert_eq!(models[1]["default"], false);
    assert_ne!(tiny["digest"], models[1]["digest"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_are_listed_with_their_parameters() {
    let app = App::start().await;
    let catalogue = app.get("/v1/methods").await.ok();
    let names: Vec<&Value> = catalogue["methods"].as_array().unwrap().iter().map(|method| &method["name"]).collect();
    assert_eq!(names.len(), 17);
    assert!(names.contains(&&json!("dc_pdd")));
    assert_eq!(catalogue["decays"].as_array().unwrap().len(), 8);
    assert_eq!(catalogue["presets"].as_array().unwrap().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_goes_on_with_the_trace_of_its_caller_and_its_stages_are_measured() {
    let app = App::start().await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let sent = format!("00-{trace}-b7ad6b7169203331-01");
    let request = app.request(Method::POST, "/v1/score").header("traceparent", &sent);
    let stages = ["tokenize", "queue", "forward", "answer"]
        .map(|stage| format!("pdr_audit_score_stage_seconds_count{{stage=\"{stage}\"}}"));
    let mut before = Vec::new();
    for stage in &stages {
        before.push(app.counter(stage).await);
    }
    let answer = send(request.json(&json!({ "inputs": "A text of a trace." }))).await;
    let header = answer.header("traceparent");
    assert!(header.starts_with(&format!("00-{trace}-")) && header.ends_with("-01") && header != sent, "{header}");
    answer.ok();
    for (stage, before) in stages.iter().zip(before) {
        assert!(app.counter(stage).await > before, "{stage}");
    }
    // Without one, and where there is a problem, a trace begins.
    let problem = app.get("/v1/nothing").await;
    assert_eq!(problem.header("traceparent").len(), sent.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn health_follows_the_facts() {
    let app = App::start().await;
    assert_eq!(app.get("/livez").await.ok()["status"], "alive");
    let ready = app.get("/readyz").await.ok();
    assert_eq!((&ready["ready"], &ready["draining"]), (&json!(true), &json!(false)));
    assert_eq!(ready["device"]["alive"], true);
    let engine = app.engine.clone();
    tokio::task::spawn_blocking(move || engine.shutdown(Duration::ZERO)).await.unwrap();
    let problem = app.get("/readyz").await.problem(503);
    assert_eq!((&problem["readiness"]["ready"], &problem["readiness"]["draining"]), (&json!(false), &json!(true)));
    app.get("/livez").await.ok();
    app.post("/v1/score", &json!({ "inputs": "Too late." })).await.problem(503);
}

#[test]
fn metrics_are_there_before_the_first_request() {
    // The requests of other tests are counted in the same series.
    alone(|| Runtime::new().unwrap().block_on(look_at_the_metrics_first()));
}

async fn look_at_the_metrics_first() {
    let app = App::start().await;
    let metrics = app.get("/metrics").await;
    assert_eq!((metrics.status, metrics.header("content-type")), (200, "text/plain; version=0.0.4; charset=utf-8"));
    for series in [
        "pdr_audit_http_requests_total{method=\"POST\",route=\"/v1/score\",status=\"200\"}",
        "pdr_audit_http_requests_total{method=\"DELETE\",route=\"/v1/audits/{id}\",status=\"204\"}",
        "pdr_audit_engine_requests_total",
        "pdr_audit_http_request_duration_seconds_bucket",
    ] {
        assert!(metrics.text().contains(series), "{series} in {}", metrics.text());
    }
    let invented = Method::from_bytes(b"INVENTED").unwrap();
    send(app.request(invented, "/livez/../secret/path")).await.problem(404);
    let metrics = app.get("/metrics").await;
    assert!(metrics.text().contains("{method=\"other\",route=\"unmatched\",status=\"404\"} 1"));
    assert!(!metrics.text().contains("secret") && !metrics.text().contains("INVENTED"));
    assert!(metrics.text().lines().any(|line| line == "pdr_audit_ready 1"), "{}", metrics.text());
    let engine = app.engine.clone();
    tokio::task::spawn_blocking(move || engine.shutdown(Duration::ZERO)).await.unwrap();
    let metrics = app.get("/metrics").await;
    assert!(metrics.text().lines().any(|line| line == "pdr_audit_ready 0"), "{}", metrics.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_documentation_needs_no_other_host() {
    let app = App::start().await;
    for path in ["/docs", "/docs/"] {
        let page = app.get(path).await;
        assert_eq!(page.status, 200);
        assert!(page.header("content-type").starts_with("text/html"), "{}", page.header("content-type"));
        assert!(!page.text().contains("//"), "{}", page.text());
        assert_eq!(page.text().contains("<base href=\"docs/\">"), path == "/docs");
    }
    for file in ["swagger-ui.css", "index.css", "swagger-ui-bundle.js", "swagger-ui-standalone-preset.js"] {
        assert_eq!(app.get(&format!("/docs/{file}")).await.status, 200, "{file}");
    }
    let start = app.get("/docs/swagger-initializer.js").await;
    assert!(start.text().contains("\"/openapi.json\"") && !start.text().contains("://"), "{}", start.text());
}
