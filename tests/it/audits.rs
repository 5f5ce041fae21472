//! `/v1/audits` through the front door.

use crate::common::app::{App, TINY};
use crate::common::client::send;
use mia::statistics::{LabelledScore, auroc};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Forty labelled samples of different lengths.
fn samples() -> Vec<Value> {
    let words = ["the", "river", "town", "grew", "quickly", "and", "merchants", "built", "42", "houses"];
    let text = |at: usize| (0..6 + at % 5).map(|i| words[(at * 3 + i * i) % words.len()]).collect::<Vec<_>>().join(" ");
    let sample = |at: usize| json!({ "id": format!("s{at}"), "input": text(at), "label": at % 2 });
    (0..40).map(sample).collect()
}

/// Enough texts, none of them cached, that an audit does not finish at once.
fn many() -> Value {
    let sample = |at: usize| json!({ "text": format!("{at} is the number of this sample, and {at} again") });
    json!({ "samples": (0..20_000).map(sample).collect::<Vec<_>>() })
}

const METHODS: &str =
    r#"["loss", { "name": "min_k", "k": 0.4, "pdr": { "decay": "linear", "alpha": 0.9 }, "label": "mine" }]"#;

fn request() -> Value {
    let methods: Value = serde_json::from_str(METHODS).unwrap();
    json!({ "samples": samples(), "methods": methods, "metrics": { "fpr_targets": [0.1], "roc": true } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waited_for_audit_reports_what_the_scores_say() {
    let app = App::start().await;
    let answer = app.audit(&request()).await;
    assert_eq!(answer.header("preference-applied"), "wait=60");
    let audit = answer.ok();
    assert_eq!((&audit["status"], &audit["error"]), (&json!("succeeded"), &Value::Null));
    let forecast = json!({ "works": 40, "texts": 40, "estimated_tokens": 444 });
    assert_eq!(audit["progress"], json!({ "done": 40, "total": 40, "forecast": forecast }));
    for moment in ["created_at", "started_at", "finished_at"] {
        assert!(audit[moment].as_str().unwrap().ends_with('Z'), "{moment} of {audit}");
    }
    let results = &audit["results"];
    assert_eq!((&results["samples"]["members"], &results["samples"]["non_members"]), (&json!(20), &json!(20)));
    assert_eq!(results["provenance"]["model"], TINY);

    let methods: Value = serde_json::from_str(METHODS).unwrap();
    let inputs: Vec<Value> = samples().iter().map(|sample| sample["input"].clone()).collect();
    let scores = app.score(&json!({ "inputs": inputs, "methods": methods })).await;
    for (at, label) in ["loss", "mine"].into_iter().enumerate() {
        let of = |(result, sample): (&Value, &Value)| LabelledScore {
            score: result["scores"][label].as_f64().unwrap(),
            member: sample["label"] == 1,
        };
        let pairs: Vec<LabelledScore> = scores["results"].as_array().unwrap().iter().zip(&samples()).map(of).collect();
        let method = &results["methods"][at];
        assert_eq!(method["label"], label);
        assert_eq!(method["auroc"].as_f64().unwrap(), auroc(&pairs).unwrap());
        assert_eq!((&method["scored"], method["tpr_at_fpr"].as_array().unwrap().len()), (&json!(40), 1));
        assert!(method["roc"].as_array().unwrap().len() > 2);
    }
    assert!(results["methods"][0].get("versus_baseline").is_none());
    assert_eq!(results["methods"][1]["versus_baseline"]["baseline"], "min_k(k=0.4)");
    assert!(results["methods"][1]["versus_baseline"]["delta"].is_number());
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_can_be_polled_listed_and_deleted() {
    let app = App::start().await;
    let answer = app.post("/v1/audits", &request()).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    assert_eq!(answer.header("preference-applied"), "");
    let (location, id) = (answer.header("location").to_owned(), answer.json()["id"].clone());
    assert_eq!(location, format!("/v1/audits/{}", id.as_str().unwrap()));
    assert!(answer.json()["results"].is_null());
    let audit = loop {
        let audit = app.get(&location).await.ok();
        if audit["status"] == "succeeded" {
            break audit;
        }
        assert!(["queued", "running"].contains(&audit["status"].as_str().unwrap()), "{audit}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(audit["results"].is_object());
    let newer = app.audit(&request()).await.ok()["id"].clone();
    let list = app.get("/v1/audits").await.ok();
    let ids: Vec<&Value> = list["audits"].as_array().unwrap().iter().map(|audit| &audit["id"]).collect();
    assert_eq!(ids, [&newer, &id]);
    assert!(list["audits"][0].get("results").is_none());
    assert_eq!(app.delete(&location).await.status, 204);
    app.get(&location).await.problem(404);
    app.delete(&location).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_are_listed_with_their_subject_and_in_pages() {
    let app = App::start().await;
    let mut named = request();
    named["name"] = json!("towns and rivers");
    let first = app.audit(&named).await.ok();
    let mut ids = vec![first["id"].clone()];
    for _ in 0..4 {
        let other = json!({ "samples": [{ "text": "a b c" }], "model": "tiny-reference", "methods": ["loss"] });
        ids.push(app.audit(&other).await.ok()["id"].clone());
    }
    ids.reverse();
    let list = |query: &'static str| {
        let app = &app;
        async move { app.get(&format!("/v1/audits?{query}")).await.ok() }
    };
    let listed = list("model=tiny").await;
    assert_eq!(listed["audits"].as_array().unwrap().len(), 1);
    let audit = &listed["audits"][0];
    assert_eq!((&audit["id"], &audit["name"]), (&first["id"], &json!("towns and rivers")));
    assert_eq!((&audit["model"], &audit["methods"]), (&json!(TINY), &json!(["loss", "mine"])));
    assert_eq!(audit["samples"], json!({ "total": 40, "members": 20, "non_members": 20 }));
    assert_eq!((&audit["status"], &audit["progress"]["done"]), (&json!("succeeded"), &json!(40)));

    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/audits?limit=2{after}")).await.ok();
        let audits = page["audits"].as_array().unwrap();
        assert!(audits.len() <= 2 && audits.iter().all(|audit| audit.get("results").is_none()));
        seen.extend(audits.iter().map(|audit| audit["id"].clone()));
        let Some(next) = page.get("next") else { break };
        after = format!("&after={}", next.as_str().unwrap());
    }
    assert_eq!(seen, ids);
    assert!(list("status=failed").await["audits"].as_array().unwrap().is_empty());
    assert_eq!(list("status=succeeded&model=tiny-reference").await["audits"].as_array().unwrap().len(), 4);
    for name in [String::new(), "x".repeat(201)] {
        named["name"] = json!(name);
        assert_eq!(app.post("/v1/audits", &named).await.pointers(), ["/name"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_come_as_lines_of_json_and_as_csv() {
    let app = App::start().await;
    let mut request = request();
    request["samples"][3]["text"] = json!("a");
    request["samples"][3].as_object_mut().unwrap().remove("input");
    request["samples"][4]["id"] = json!("comma, \"quote\"\nline");
    let id = app.audit(&request).await.ok()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/audits/{id}/scores");

    let lines = app.get(&path).await;
    assert_eq!((lines.status, lines.header("content-type")), (200, "application/x-ndjson"));
    let rows: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 40);
    assert_eq!((&rows[5]["index"], &rows[5]["id"], &rows[5]["label"]), (&json!(5), &json!("s5"), &json!(1)));
    assert_eq!(rows[5]["scores"].as_object().unwrap().keys().collect::<Vec<_>>(), ["loss", "mine"]);
    assert_eq!((&rows[3]["scores"], &rows[3]["errors"][0]["code"]), (&json!({}), &json!("too_short")));

    let csv = send(app.request(Method::GET, &path).header("accept", "text/csv")).await;
    assert_eq!((csv.status, csv.header("content-type")), (200, "text/csv; charset=utf-8"));
    let mut reader = csv::Reader::from_reader(csv.body.as_slice());
    let leading = ["index", "id", "label", "group", "document", "cluster", "scored_tokens", "truncated", "windows"];
    let columns = [
        &leading[..],
        &["loss", "mine", "alpha_used", "errors", "posterior", "p_values", "p_value_adjusted", "flagged"],
        &["control_scores", "control_measures", "log_odds", "text_digest", "baseline_scores"],
    ]
    .concat();
    assert_eq!(reader.headers().unwrap(), &csv::StringRecord::from(columns));
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), 40);
    assert_eq!(&records[4][1], "comma, \"quote\"\nline");
    assert_eq!((&records[3][9], records[3][12].contains("too_short")), ("", true));
    for (row, record) in rows.iter().zip(&records) {
        let in_csv: Option<f64> = record[10].parse().ok();
        assert_eq!(in_csv, row["scores"]["mine"].as_f64());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_without_labels_are_a_scoring_job() {
    let app = App::start().await;
    let samples: Vec<Value> = samples().iter().map(|sample| json!({ "text": sample["input"] })).collect();
    let audit = app.audit(&json!({ "samples": samples, "methods": ["zlib"] })).await.ok();
    let method = &audit["results"]["methods"][0];
    assert_eq!((&method["label"], &method["scored"]), (&json!("zlib"), &json!(40)));
    assert!(method.get("auroc").is_none());
    let lines = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    let first: Value = serde_json::from_str(lines.text().lines().next().unwrap()).unwrap();
    assert!(first.get("label").is_none() && first["scores"]["zlib"].is_number());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_can_be_cancelled() {
    let app = App::start().await;
    let answer = app.post("/v1/audits", &many()).await;
    let path = answer.header("location").to_owned();
    assert_eq!(answer.status, 202);
    app.delete(&path).await.problem(409);
    app.get(&format!("{path}/scores")).await.problem(409);
    let cancel = || send(app.request(Method::POST, &format!("{path}/cancel")));
    let audit = cancel().await.ok();
    assert_eq!((&audit["status"], &audit["results"]), (&json!("cancelled"), &Value::Null));
    assert!(audit["finished_at"].is_string());
    cancel().await.problem(409);
    app.get(&format!("{path}/scores")).await.problem(409);
    app.assert_nothing_is_left().await;
    assert_eq!(app.delete(&path).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_too_short_gives_the_unfinished_audit() {
    let app = App::with(|settings| settings.server.request_timeout = Duration::from_secs(5)).await;
    let request = app.request(Method::POST, "/v1/audits").header("prefer", "respond-async, wait=0").json(&many());
    let answer = send(request).await;
    assert_eq!((answer.status, answer.header("preference-applied")), (202, "wait=0"));
    let path = answer.header("location").to_owned();
    // Interactive work is served all the while.
    app.score(&json!({ "inputs": "A text in between." })).await;
    assert_eq!(send(app.request(Method::POST, &format!("{path}/cancel"))).await.ok()["status"], "cancelled");
    let nonsense = app.request(Method::POST, "/v1/audits").header("prefer", "wait=soon").json(&many());
    let answer = send(nonsense).await;
    assert_eq!((answer.status, answer.header("preference-applied")), (202, ""));
    send(app.request(Method::POST, &format!("{}/cancel", answer.header("location")))).await.ok();
    app.assert_nothing_is_left().await;
}

/// Half a minute of resampling on two cores is the most that a client may ask for. While it lasts, others are answered, and
/// it can be cancelled; that it then stops is tested where it is done.
#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_is_bounded_and_can_be_cancelled() {
    let app = App::start().await;
    let sample = |n: usize| json!({ "text": format!("Text {} of a few words.", n % 50), "label": n % 2 });
    let samples: Vec<Value> = (0..2_000).map(sample).collect();
    let grid: Vec<f64> = (1..=100).map(|k| k as f64 / 100.0).collect();
    let body = |replicates: usize| {
        let metrics = json!({ "bootstrap": { "replicates": replicates }, "fpr_targets": [0.05] });
        json!({ "samples": samples, "methods": [{ "name": "min_k", "k": grid }], "metrics": metrics })
    };
    let problem = app
        .post(
            "/v1/audits",
            &json!({
                "samples": (0..6_000).map(sample).collect::<Vec<_>>(),
                "methods": [{ "name": "min_k", "k": grid }],
                "metrics": { "bootstrap": { "replicates": 100_000 } }
            }),
        )
        .await
        .problem(413);
    assert!(problem["detail"].as_str().unwrap().contains("the limit is 40000000000"), "{problem}");

    let audit = app.post("/v1/audits", &body(100_000)).await;
    assert_eq!(audit.status, 202);
    let id = audit.json()["id"].as_str().unwrap().to_owned();
    while app.get(&format!("/v1/audits/{id}")).await.ok()["progress"]["done"] != 2_000 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(app.post(&format!("/v1/audits/{id}/cancel"), &json!({})).await.ok()["status"], "cancelled");
}

/// Samples of one text cost what one of them costs.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_scored_once_however_often_it_is_a_sample() {
    let app = App::start().await;
    let samples: Vec<Value> = (0..20).map(|n| json!({ "text": "One text of some words.", "label": n % 2 })).collect();
    let audit =
        app.audit(&json!({ "samples": samples, "methods": ["loss", "lowercase", "ref"], "control": null })).await.ok();
    let usage = &audit["results"]["usage"];
    assert_eq!((&usage["forward_passes"], &usage["cached_passes"]), (&json!(3), &json!(0)));
    let position = &audit["results"]["position_profile"][0];
    assert_eq!((&position["members"]["count"], &position["non_members"]["count"]), (&json!(10), &json!(10)));
    assert_eq!(usage["tokens"].as_u64().unwrap() % 20, 0);
}
