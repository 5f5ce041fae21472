//! The life of an audit over HTTP: submitted once, followed, compared.

use crate::common::app::App;
use crate::common::client::{Answer, send};
use reqwest::Method;
use serde_json::{Value, json};

fn samples(count: usize) -> Value {
    let sample =
        |number: usize| json!({ "id": number, "text": format!("Sample {number} of an audit."), "label": number % 2 });
    Value::Array((0..count).map(sample).collect())
}

async fn submit(app: &App, body: &Value, key: &str) -> Answer {
    let request = app.request(Method::POST, "/v1/audits").json(body);
    send(request.header("idempotency-key", key).header("prefer", "wait=60")).await
}

fn id(audit: &Value) -> &str {
    audit["id"].as_str().unwrap()
}

async fn events(app: &App, audit: &str, last: Option<&str>) -> Answer {
    let request = app.request(Method::GET, &format!("/v1/audits/{audit}/events"));
    send(last.into_iter().fold(request, |request, last| request.header("last-event-id", last))).await
}

/// Id, name and data of each event.
fn read(answer: &Answer) -> Vec<(i64, String, Value)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"), "{}", answer.text());
    let event = |block: &str| {
        let field =
            |name: &str| block.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).map(str::to_owned);
        Some((field("id")?.parse().unwrap(), field("event")?, serde_json::from_str(&field("data")?).unwrap()))
    };
    answer.text().split("\n\n").filter_map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_with_a_key_is_submitted_once() {
    let app = App::start().await;
    let body = json!({ "samples": samples(4), "methods": ["loss"], "name": "first" });
    let first = submit(&app, &body, "k").await.ok();
    let again = submit(&app, &body, "k").await.ok();
    assert_eq!((id(&again), &again["results"]), (id(&first), &first["results"]));
    for other in [
        json!({ "samples": samples(6), "methods": ["loss"], "name": "first" }),
        json!({ "samples": samples(4), "methods": ["min_k"], "name": "first" }),
        json!({ "samples": samples(4), "methods": ["loss"], "name": "second" }),
    ] {
        let problem = submit(&app, &other, "k").await.problem(422);
        assert!(problem["detail"].as_str().unwrap().contains("`Idempotency-Key` belongs to"), "{problem}");
    }
    assert_ne!(id(&submit(&app, &body, "l").await.ok()), id(&first));
    // An audit that is deleted frees its key.
    assert_eq!(app.delete(&format!("/v1/audits/{}", id(&first))).await.status, 204);
    assert_ne!(id(&submit(&app, &body, "k").await.ok()), id(&first));
    for key in ["", &"x".repeat(256)] {
        submit(&app, &body, key).await.problem(422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_tell_how_an_audit_gets_on_and_resume() {
    let app = App::start().await;
    let submitted = app.post("/v1/audits", &json!({ "samples": samples(400), "methods": ["loss"] })).await.json();
    let audit = id(&submitted).to_owned();
    let all = read(&events(&app, &audit, None).await);
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{all:?}");
    assert_eq!((all[0].1.as_str(), &all[0].2["total"]), ("progress", &json!(400)));
    let (last, name, data) = all.last().unwrap();
    assert_eq!((name.as_str(), data), ("status", &json!({ "status": "succeeded" })));
    let (_, _, progress) = all.iter().rfind(|(_, name, _)| name == "progress").unwrap();
    assert_eq!((&progress["done"], &progress["total"]), (&json!(400), &json!(400)));
    assert_eq!((&progress["forecast"]["texts"], progress.get("testing")), (&json!(400), None), "{progress}");

    assert_eq!(read(&events(&app, &audit, Some(&last.to_string())).await), []);
    let rest = read(&events(&app, &audit, Some(&(last - 1).to_string())).await);
    assert_eq!(rest, [(*last, name.clone(), data.clone())]);
    events(&app, &audit, Some("seven")).await.problem(422);
    events(&app, "01a20295-b1f8-7331-b7f3-b1ed78fe0ef8", None).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_audits_are_compared_on_the_samples_that_both_have() {
    let app = App::start().await;
    let (all, some) = (samples(40), Value::Array(samples(40).as_array().unwrap()[10..].to_vec()));
    let methods = json!(["loss", { "name": "min_k", "k": 0.5, "label": "mine" }]);
    let a = app.audit(&json!({ "samples": all, "methods": methods })).await.ok();
    let b =
        app.audit(&json!({ "samples": some, "methods": ["loss"], "model": crate::common::app::REFERENCE })).await.ok();
    let compared = app.get(&format!("/v1/audits/{}/compare/{}", id(&a), id(&b))).await.ok();
    assert_eq!(compared["samples"], json!({ "paired": 30, "only_a": 10, "only_b": 0, "label_conflicts": 0 }));
    assert_eq!((&compared["a"]["id"], &compared["b"]["model"]["id"]), (&a["id"], &b["model"]));
    let [loss] = compared["methods"].as_array().unwrap().as_slice() else { panic!("{compared}") };
    assert_eq!(
        (&loss["label"], &loss["scored"], &loss["auroc_b"]),
        (&json!("loss"), &json!(30), &b["results"]["methods"][0]["auroc"])
    );
    let delta = loss["auroc_b"].as_f64().unwrap() - loss["auroc_a"].as_f64().unwrap();
    assert_eq!(loss["delta"].as_f64(), Some(delta));

    let same = app.get(&format!("/v1/audits/{}/compare/{}", id(&a), id(&a))).await.ok();
    assert_eq!(same["methods"].as_array().unwrap().len(), 2);
    assert!(same["methods"].as_array().unwrap().iter().all(|method| method["delta"] == 0.0), "{same}");
    app.get(&format!("/v1/audits/{}/compare/{}", id(&a), uuid::Uuid::now_v7())).await.problem(404);
    app.get(&format!("/v1/audits/{}/compare/x", id(&a))).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_without_scores_is_not_compared() {
    let app = App::start().await;
    let ended = app.audit(&json!({ "samples": samples(4), "methods": ["loss"] })).await.ok();
    let running = app.post("/v1/audits", &json!({ "samples": samples(2_000), "methods": ["loss"] })).await.json();
    let cancelled = app.post(&format!("/v1/audits/{}/cancel", id(&running)), &json!({})).await.ok();
    assert_eq!(cancelled["status"], "cancelled");
    let problem = app.get(&format!("/v1/audits/{}/compare/{}", id(&ended), id(&running))).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("is cancelled"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_known_after_its_dataset_is_gone() {
    let app = App::start().await;
    let lines: String = samples(8).as_array().unwrap().iter().map(|sample| format!("{sample}\n")).collect();
    let upload = async |path: &str| app.post_bytes(path, Some("application/x-ndjson"), lines.clone().into()).await;
    let dataset = upload("/v1/datasets").await.json()["id"].clone();
    let body = json!({ "dataset": dataset, "methods": ["loss", { "name": "min_k", "k": 0.5 }], "name": "first" });
    let first = submit(&app, &body, "k").await.ok();
    assert_eq!(app.delete(&format!("/v1/datasets/{}", dataset.as_str().unwrap())).await.status, 204);

    let again = submit(&app, &body, "k").await.ok();
    assert_eq!((id(&again), &again["results"]), (id(&first), &first["results"]));
    let other_methods = json!({ "dataset": dataset, "methods": ["loss"], "name": "first" });
    let other_dataset = json!({ "dataset": "sha256:0", "methods": ["loss"], "name": "first" });
    for other in [other_methods, other_dataset] {
        let problem = submit(&app, &other, "k").await.problem(422);
        assert!(problem["detail"].as_str().unwrap().contains("`Idempotency-Key` belongs to"), "{problem}");
    }
    submit(&app, &body, "another key").await.problem(404);
    app.post("/v1/audits", &body).await.problem(404);

    // So is that of a dataset whose texts were not retained.
    assert_eq!(upload("/v1/datasets?retain=false").await.json()["id"], dataset);
    let second = submit(&app, &body, "l").await.ok();
    assert_eq!(id(&submit(&app, &body, "l").await.ok()), id(&second));
    submit(&app, &body, "m").await.problem(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_has_as_many_seconds_as_its_request_says() {
    let app = App::start().await;
    let body = |seconds: Value| json!({ "samples": samples(4), "methods": ["loss"], "timeout_seconds": seconds });
    for seconds in [json!(0), json!(31_536_001), json!(-1), json!(1.5), json!("60")] {
        assert_eq!(app.post("/v1/audits", &body(seconds.clone())).await.pointers(), ["/timeout_seconds"], "{seconds}");
    }
    let in_time = submit(&app, &body(json!(3_600)), "k").await.ok();
    assert_eq!(in_time["status"], "succeeded");
    assert!(in_time["deadline"].as_str().unwrap() > in_time["finished_at"].as_str().unwrap(), "{in_time}");
    submit(&app, &body(json!(60)), "k").await.problem(422);
    assert!(app.audit(&body(Value::Null)).await.ok().get("deadline").is_none());

    // More work than fits a second, even of a tiny model.
    let sample = |number: usize| json!({ "text": format!("{number} {}", "more and more words of it ".repeat(15)) });
    let many: Vec<Value> = (0..20_000).map(sample).collect();
    let late = app.audit(&json!({ "samples": many, "methods": ["loss"], "timeout_seconds": 1 })).await.ok();
    let error = &late["error"];
    assert_eq!((&late["status"], &error["status"]), (&json!("failed"), &json!(504)), "{late}");
    assert_eq!(error["type"], "urn:pdr-audit:problem:deadline-exceeded");
    assert_eq!(error["detail"], "the job did not end within its `timeout_seconds`");
}
