//! Long answers: of audits in which no text has a score, and compressed as the client takes them.

use crate::common::app::App;
use crate::common::client::{Answer, Client, send};
use flate2::bufread::GzDecoder;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Read;

const FORMATS: [&str; 3] = ["application/x-ndjson", "text/csv", "application/vnd.apache.parquet"];

/// Samples that are all longer than the model's context.
fn too_long(count: usize) -> Vec<Value> {
    let text = |number: usize| format!("Number {number} {}", "has more words than the context ".repeat(30));
    (0..count)
        .map(|number| json!({ "id": format!("sample {number}"), "text": text(number), "label": number % 2 }))
        .collect()
}

/// Samples that all have a score.
fn short(count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| json!({ "id": number, "text": format!("Sample {number} of an audit."), "label": number % 2 }))
        .collect()
}

/// An audit of them, which succeeds; its path.
async fn audited(app: &App, samples: Vec<Value>) -> (String, Value) {
    let methods = json!(["loss", "min_k", { "name": "loss", "pdr": { "decay": "linear", "alpha": 1.0 } }]);
    let body = json!({ "samples": samples, "methods": methods, "metrics": { "bootstrap": { "replicates": 20 } } });
    let audit = app.audit(&body).await.ok();
    assert_eq!(audit["status"], "succeeded", "{}", audit["error"]);
    (format!("/v1/audits/{}", audit["id"].as_str().unwrap()), audit)
}

async fn get(client: &Client, path: &str, accept: &str, encoding: Option<&str>) -> Answer {
    let request = client.request(Method::GET, path).header("accept", accept);
    send(encoding.into_iter().fold(request, |request, encoding| request.header("accept-encoding", encoding))).await
}

/// The body of an answer that is compressed.
fn unpacked(answer: &Answer) -> Vec<u8> {
    assert_eq!((answer.status, answer.header("content-encoding")), (200, "gzip"));
    let mut unpacked = Vec::new();
    let mut decoder = GzDecoder::new(answer.body.as_slice());
    decoder.read_to_end(&mut unpacked).expect("the answer is whole");
    assert!(decoder.into_inner().is_empty(), "nothing follows the end");
    unpacked
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_of_texts_of_which_none_has_a_score_says_so_of_each() {
    const SAMPLES: usize = 2_000;
    let app = App::start().await;
    let (path, audit) = audited(&app, too_long(SAMPLES)).await;
    let results = &audit["results"];
    let methods = results["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 3);
    for method in methods {
        assert_eq!((&method["scored"], &method["auroc"]), (&json!(0), &Value::Null), "{method}");
    }
    // The first are named, and all are counted.
    let excluded = results["samples"]["excluded"].as_array().unwrap();
    assert_eq!((excluded.len(), &excluded[999]["id"]), (1_000, &json!("sample 999")));
    assert_eq!(results["samples"]["exclusions"], json!([{ "code": "too_long", "samples": SAMPLES }]));
    assert_eq!(results["verdict"]["state"], "inconclusive", "{}", results["verdict"]);
    assert_eq!(results["usage"]["forward_passes"], 0);

    let lines = get(&app, &format!("{path}/scores"), FORMATS[0], None).await;
    let lines: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let csv = get(&app, &format!("{path}/scores"), FORMATS[1], None).await;
    let mut reader = csv::Reader::from_reader(csv.body.as_slice());
    let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let place = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let (id, loss, errors) = (place("id"), place("loss"), place("errors"));
    let records: Vec<csv::StringRecord> = reader.records().map(|record| record.unwrap()).collect();
    assert_eq!((lines.len(), records.len()), (SAMPLES, SAMPLES));
    for (number, (line, record)) in lines.iter().zip(&records).enumerate() {
        let name = format!("sample {number}");
        assert_eq!((&line["index"], &line["id"], &line["scores"]), (&json!(number), &json!(name), &json!({})));
        assert_eq!((line["errors"].as_array().unwrap().len(), &line["errors"][0]["code"]), (1, &json!("too_long")));
        assert_eq!((&record[id], &record[loss]), (name.as_str(), ""));
        assert_eq!(serde_json::from_str::<Value>(&record[errors]).unwrap(), line["errors"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_one_method_does_not_score_are_counted_beyond_those_that_are_named() {
    let app = App::start().await;
    let methods = json!(["loss", { "name": "surp", "max_entropy": 1e-300, "label": "nothing" }]);
    let samples = [short(1_200), too_long(3)].concat();
    let body = json!({ "samples": samples, "methods": methods, "metrics": { "bootstrap": { "replicates": 20 } } });
    let results = app.audit(&body).await.ok()["results"]["samples"].clone();
    assert_eq!(results["excluded"].as_array().unwrap().len(), 1_000);
    let nothing = json!({ "label": "nothing", "code": "nothing_selected", "samples": 1_200 });
    // By their first sample; those of the second are named nowhere.
    assert_eq!(results["exclusions"], json!([nothing, { "code": "too_long", "samples": 3 }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_scores_are_the_scores_byte_for_byte() {
    let app = App::start().await;
    let mixed = [short(1_500), too_long(1_500)].concat();
    let (path, _) = audited(&app, mixed).await;
    let path = format!("{path}/scores");
    for format in FORMATS {
        let plain = get(&app, &path, format, None).await;
        assert_eq!((plain.status, plain.header("content-encoding")), (200, ""), "{format}");
        let packed = get(&app, &path, format, Some("gzip")).await;
        assert_eq!(packed.header("content-type"), plain.header("content-type"));
        if format == FORMATS[2] {
            // Tables of Parquet are compressed already.
            assert!(packed.header("content-encoding").is_empty() && packed.body == plain.body);
        } else {
            assert!(packed.header("vary").to_ascii_lowercase().contains("accept-encoding"), "{format}");
            // In several parts.
            assert!(plain.body.len() > 200_000, "{format}: {}", plain.body.len());
            assert!(packed.body.len() < plain.body.len(), "{format}: {}", packed.body.len());
            assert!(unpacked(&packed) == plain.body, "{format}: other bytes");
        }
        for encoding in ["identity", "gzip;q=0", "br"] {
            let answer = get(&app, &path, format, Some(encoding)).await;
            assert_eq!((answer.status, answer.header("content-encoding")), (200, ""), "{format}, {encoding}");
            assert!(answer.body == plain.body, "{format}, {encoding}: other bytes");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_answers_are_compressed_and_problems_are_not() {
    let app = App::start().await;
    let inputs: Vec<String> = (0..500).map(|number| format!("Text {number} of a request.")).collect();
    let body = json!({ "inputs": inputs, "methods": ["loss"], "details": ["tokens"] });
    let plain = app.score(&body).await;
    let packed = send(app.request(Method::POST, "/v1/score").header("accept-encoding", "gzip").json(&body)).await;
    let packed: Value = serde_json::from_slice(&unpacked(&packed)).unwrap();
    assert_eq!(packed["results"], plain["results"]);
    let problem = get(&app, "/v1/audits/nothing", "*/*", Some("gzip")).await;
    assert_eq!(problem.header("content-encoding"), "");
    problem.problem(404);
}
