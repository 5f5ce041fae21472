//! Reports as pages: `/v1/{kind}/{id}/report`, `pdr-audit audit --report` and `pdr-audit report`.

use crate::common::app::App;
use crate::common::client::{Answer, send};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const HOSTILE: &str = "</svg><script>alert('1')</script>\u{202e}<img src=x>";

async fn report(app: &App, job: &str, accept: &str) -> Answer {
    send(app.request(Method::GET, &format!("{job}/report")).header("accept", accept)).await
}

/// Asserts that each `data` element has the number that the report has at its place; returns the number of elements.
fn assert_numbers(page: &str, report: &Value) -> usize {
    let elements = page.split("<data value=\"").skip(1).map(|element| {
        let (value, rest) = element.split_once("\" data-at=\"").unwrap();
        let pointer = rest.split_once("\">").unwrap().0.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        assert_eq!(report.pointer(&pointer).map(ToString::to_string).as_deref(), Some(value), "{pointer}");
    });
    elements.count()
}

fn samples() -> Vec<Value> {
    let text =
        |n: usize| format!("Sample {n}: the brass clock struck {} in Fallowfield, and then again at {n}.", n * 7);
    let group = |n: usize| if n.is_multiple_of(3) { HOSTILE } else { "others" };
    (0..60).map(|n| json!({ "text": text(n), "label": n % 2, "id": HOSTILE, "group": group(n) })).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_has_a_page_with_the_numbers_of_its_report() {
    let app = App::start().await;
    let methods = json!(["loss", { "name": "min_k", "k": 0.2, "pdr": { "decay": "linear", "alpha": 0.5 } }]);
    let audit = app.audit(&json!({ "samples": samples(), "methods": methods })).await.ok();
    let path = format!("/v1/audits/{}", audit["id"].as_str().unwrap());
    for accept in ["*/*", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"] {
        let page = report(&app, &path, accept).await;
        assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"), "{accept}");
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
        assert_eq!((page.header("vary"), page.header("x-content-type-options")), ("accept", "nosniff"));
        let html = page.text();
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(assert_numbers(html, &audit["results"]) > 50, "{html}");
        // Curves of both methods, and the distribution of the first.
        assert!(html.contains("ROC, logarithmic scale") && html.contains("in 40 equal intervals"), "{html}");
        assert!(html.contains(audit["id"].as_str().unwrap()), "{html}");
    }
    let json = report(&app, &path, "application/json").await;
    assert_eq!(json.header("content-type"), "application/json");
    assert_eq!(json.json(), audit["results"]);
    assert!(report(&app, &path, "image/png").await.problem(406)["detail"].as_str().unwrap().contains("text/html"));
    report(&app, "/v1/audits/01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87", "*/*").await.problem(404);
    report(&app, &path.replace("audits", "tests"), "*/*").await.problem(404);
    let comparison = format!("{path}/compare/{}", audit["id"].as_str().unwrap());
    let json = app.get(&comparison).await;
    assert_eq!(json.header("vary"), "accept");
    let json = json.ok();
    let page = send(app.request(Method::GET, &comparison).header("accept", "text/html")).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(assert_numbers(page.text(), &json) > 5, "{}", page.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_shown_token_by_token_on_request_alone() {
    let app = App::start().await;
    let methods = json!(["loss", { "name": "min_k", "k": 0.2, "pdr": { "decay": "linear", "alpha": 0.5 } }]);
    let primary = "min_k(k=0.2)+linear(alpha=0.5)";
    let body = json!({ "samples": samples(), "methods": methods, "primary": primary, "control": null });
    let retained = app.audit(&body).await.ok();
    let path = format!("/v1/audits/{}/report", retained["id"].as_str().unwrap());
    let page = app.get(&format!("{path}?texts=3")).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let html = page.text();
    assert!(html.contains("The first 3 texts by <code>min_k(k=0.2)+linear(alpha=0.5)</code>"), "{html}");
    assert_eq!(html.matches("<p class=\"strip\">").count(), 3);
    assert!(html.contains("Text 0, non-member") && html.contains("selected"), "{html}");
    let scores = app.get(&format!("/v1/audits/{}/scores", retained["id"].as_str().unwrap())).await;
    let first: Value = serde_json::from_str(scores.text().lines().next().unwrap()).unwrap();
    assert!(html.contains(&format!("Score {:.4}", first["scores"][primary].as_f64().unwrap())), "{html}");
    assert!(!app.get(&path).await.text().contains("class=\"strip\""));
    for bad in ["101", "-1", "many"] {
        app.get(&format!("{path}?texts={bad}")).await.problem(422);
    }
    let lines: String = samples().iter().map(|sample| format!("{sample}\n")).collect();
    let upload = app.request(Method::POST, "/v1/datasets?retain=false").header("content-type", "application/x-ndjson");
    let dataset = send(upload.body(lines)).await.json();
    let of_dataset = json!({ "dataset": dataset["id"], "methods": ["loss"], "control": null });
    let forgotten = app.audit(&of_dataset).await.ok();
    let path = format!("/v1/audits/{}/report", forgotten["id"].as_str().unwrap());
    let refused = app.get(&format!("{path}?texts=3")).await.problem(409);
    assert_eq!(refused["detail"], "the texts of the audit are not kept, so that none can be shown");
    assert_eq!(app.get(&path).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_job_has_a_report_once_it_has_succeeded() {
    let app = App::start().await;
    let texts: Vec<Value> = samples().iter().map(|sample| json!({ "text": sample["text"] })).collect();
    let (suspects, held_out) = texts.split_at(30);
    for (path, body) in [
        ("/v1/memorization", json!({ "texts": suspects, "prefix": 4, "suffix": 4 })),
        ("/v1/tests", json!({ "kind": "dataset", "suspects": suspects, "held_out": held_out })),
        ("/v1/calibrations", json!({ "samples": texts, "methods": ["loss"] })),
        ("/v1/audits", json!({ "samples": texts, "methods": ["loss"], "control": null })),
    ] {
        let job = send(app.request(Method::POST, path).header("prefer", "wait=60").json(&body)).await.ok();
        assert_eq!(job["status"], "succeeded", "{path}: {job}");
        let path = format!("{path}/{}", job["id"].as_str().unwrap());
        let page = report(&app, &path, "text/html").await;
        assert_eq!(page.status, 200, "{path}: {}", page.text());
        let json = report(&app, &path, "application/json").await.json();
        assert!(assert_numbers(page.text(), &json) > 3, "{path}: {}", page.text());
        // The command line makes pages of the same kind of the job and of its report.
        let title = page.text().split_once("<h1>").unwrap().1.split_once(" of ").unwrap().0.to_owned();
        for (name, content) in [("job.json", &job), ("report.json", &json)] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(name), content.to_string()).unwrap();
            let page = ran(directory.path(), &["report", name]);
            assert!(page.contains(&format!("<h1>{title} of ")), "{path}: {page}");
        }
    }
    let samples: Vec<Value> = (0..2_000).map(|n| json!({ "text": format!("{n} brass clocks ").repeat(20) })).collect();
    let long =
        app.post("/v1/audits", &json!({ "samples": samples, "methods": ["loss"], "control": null })).await.json();
    let path = format!("/v1/audits/{}", long["id"].as_str().unwrap());
    app.post(&format!("{path}/cancel"), &json!({})).await.ok();
    let refused = report(&app, &path, "*/*").await.problem(409);
    assert_eq!(refused["detail"], "the audit is cancelled; it has a report once it has succeeded");
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pdr-audit")).current_dir(directory).args(arguments).output().unwrap()
}

fn ran(directory: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(directory, arguments);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[test]
fn the_command_line_writes_pages() {
    let directory = tempfile::tempdir().unwrap();
    let (root, at) = (directory.path(), |name: &str| directory.path().join(name));
    let lines: String = samples().iter().map(|sample| format!("{sample}\n")).collect();
    fs::write(at("texts.jsonl"), lines).unwrap();
    let audit = ["audit", "texts.jsonl", "--model", "demo", "--methods", "loss,zlib", "--replicates", "0"];
    let json = ran(root, &[&audit[..], &["--report", "page.html", "--out", "run", "--format", "json"]].concat());
    let (json, page): (Value, String) =
        (serde_json::from_str(&json).unwrap(), fs::read_to_string(at("page.html")).unwrap());
    assert!(assert_numbers(&page, &json) > 40);
    assert!(page.contains("pdr-audit audit texts.jsonl --model demo"), "{page}");
    assert_eq!(fs::read_to_string(at("run/report.html")).unwrap(), page);
    // The same again of the folder, and of the report alone, which has no curves.
    ran(root, &["report", "run/report.json", "--output", "again.html"]);
    assert_eq!(fs::read_to_string(at("again.html")).unwrap(), page);
    fs::write(at("alone.json"), json.to_string()).unwrap();
    fs::copy(at("run/scores.ndjson"), at("scores.ndjson")).unwrap();
    let alone = ran(root, &["report", "alone.json"]);
    let with_scores = ran(root, &["report", "alone.json", "--scores", "scores.ndjson"]);
    assert!(with_scores.contains("ROC, linear scale"));
    for (line, fault) in [
        (r#"{"label": 7, "scores": {"loss": 1}}"#, "line 1: the label is 0, 1 or null, not 7"),
        (
            r#"{"label": 1, "scores": {"loss": 1}}"#,
            "these are scores of another audit: 1 of `loss`, where the report has 60",
        ),
    ] {
        fs::write(at("other.ndjson"), line).unwrap();
        let Output { status, stderr, .. } = run(root, &["report", "alone.json", "--scores", "other.ndjson"]);
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!status.success() && stderr.contains(fault), "{stderr}");
    }
    assert!(assert_numbers(&alone, &json) > 40 && !alone.contains("ROC, linear scale"));
    for (content, fault) in [
        ("{", "EOF while parsing"),
        ("[]", "a report is a JSON object"),
        ("{}", "no report of this program is like this"),
        (r#"{"status": "running", "results": null}"#, r#"the job is "running"; it has a report once it has succeeded"#),
    ] {
        fs::write(at("wrong.json"), content).unwrap();
        let Output { status, stderr, .. } = run(root, &["report", "wrong.json", "--output", "never.html"]);
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!status.success() && stderr.contains("wrong.json") && stderr.contains(fault), "{stderr}");
    }
    assert!(!at("never.html").exists());
    let Output { status, stderr, .. } = run(root, &[&audit[..], &["--report", "absent/page.html"]].concat());
    assert!(!status.success() && String::from_utf8_lossy(&stderr).contains("cannot write absent/page.html"));
}
