//! SGLang behind a front, in the form of its answers of version 0.5.23.

use super::fake_server::{FakeServer, NAME};
use super::golden_scores::assert_scores_of_golden;
use super::{FRONT, served, silent};
use crate::common::app::{App, GOLDEN};
use pdr_audit::config::{ServedKind, Settings};
use serde_json::{Value, json};

async fn front(server: &FakeServer) -> App {
    App::with(|settings| served(settings, ServedKind::Sglang, NAME, GOLDEN, &[server.url()])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_are_those_of_the_references() {
    let server = FakeServer::of(GOLDEN).await;
    let front = front(&server).await;
    let answer = assert_scores_of_golden(&front).await;
    let backend = &answer["model"]["backend"];
    assert_eq!((&backend["kind"], &backend["version"]), (&json!("sglang"), &json!("0.5.23")));
    assert_eq!((&backend["weights"], &backend["rounding"]["measured"]), (&json!("not_attested"), &json!(0.0)));
    let asked = server.state.lock().unwrap().asked.last().unwrap().clone();
    assert_eq!(asked["sampling_params"], json!({ "max_new_tokens": 0, "temperature": 0.0 }));
    assert_eq!(asked["top_logprobs_num"], json!(1));
    front.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_of_earlier_versions_are_asked_where_there_are_no_others() {
    let server = FakeServer::of(GOLDEN).await;
    server.state.lock().unwrap().is_early = true;
    assert_scores_of_golden(&front(&server).await).await;
    let served =
        |settings: &mut Settings| served(settings, ServedKind::Sglang, "/models/golden", GOLDEN, &[server.url()]);
    assert_scores_of_golden(&App::with(served).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_id_comes_back_as_0() {
    let server = FakeServer::of(GOLDEN).await;
    let last = {
        let mut state = server.state.lock().unwrap();
        state.vocab_size = state.tokenizer.id_bound() as u32;
        state.vocab_size - 1
    };
    let front = front(&server).await;
    let answer = front.post("/v1/token-stats", &json!({ "sequences": [[last, 7, last, last]] })).await.ok();
    assert_eq!(answer["sequences"][0]["lp"], json!([-1.5, -1.5, -1.5]));
    assert_eq!(silent(&front.engine), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_does_not_give_is_unavailable_by_name() {
    let server = FakeServer::of(GOLDEN).await;
    let front = front(&server).await;
    let methods = front.get(&format!("/v1/methods?model={FRONT}")).await.ok();
    let lacks = |name: &str| {
        let entries = methods["methods"].as_array().unwrap();
        entries.iter().find(|entry| entry["name"] == name).unwrap()["unavailable"].clone()
    };
    for name in ["min_k_plus_plus", "gap_k", "surp"] {
        assert!(lacks(name).as_str().unwrap().contains("full_logits"), "{name}");
    }
    assert!(lacks("fsd").as_str().unwrap().contains("served elsewhere"));
    assert_eq!((lacks("loss"), lacks("min_k"), lacks("ez")), (Value::Null, Value::Null, Value::Null));
}
