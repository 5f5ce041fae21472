//! The OpenAPI document: the committed one is the one of the routes, and its examples work.

use crate::common::app::App;
use crate::common::client::send;
use reqwest::Method;
use serde_json::Value;

/// The committed document.
fn committed() -> Value {
    serde_json::from_str(include_str!("../../openapi/openapi.json")).unwrap()
}

#[test]
fn the_committed_document_is_up_to_date() {
    let mut document = pdr_audit::api::document(&pdr_audit::api::JobKinds::all()).to_pretty_json().unwrap();
    document.push('\n');
    assert!(
        document == include_str!("../../openapi/openapi.json"),
        "the routes have changed; regenerate the document: cargo run -- openapi > openapi/openapi.json"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_gives_its_document() {
    let app = App::start().await;
    assert_eq!(app.get("/openapi.json").await.ok(), committed());
}

#[test]
fn every_reference_leads_somewhere() {
    let document = committed();
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 30, "{found:?}");
    for reference in found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference} leads nowhere");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_work() {
    let app = App::start().await;
    let document = committed();
    let body = |path: &str| &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
    for (name, example) in body("/v1/score")["examples"].as_object().unwrap() {
        let answer = app.score(&example["value"]).await;
        assert!(!answer["results"].as_array().unwrap().is_empty(), "{name}");
    }
    assert_eq!(app.audit(&body("/v1/audits")["example"]).await.ok()["status"], "succeeded");
    let request = app.request(Method::POST, "/v1/memorization").header("prefer", "wait=60");
    let done = send(request.json(&body("/v1/memorization")["example"])).await.ok();
    assert!(done["results"]["summary"]["control"]["windows"].as_u64().unwrap() > 0, "{done}");
}

#[test]
fn every_parameter_of_a_path_is_documented() {
    let document = committed();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            for name in path.split('{').skip(1).map(|part| part.split('}').next().unwrap()) {
                let is_documented = parameters.iter().any(|known| known["name"] == name && known["in"] == "path");
                assert!(is_documented, "{method} {path}: {name}");
            }
        }
    }
}
