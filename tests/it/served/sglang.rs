//! SGLang behind a front, in the form of its answers of version 0.5.23.

use super::fake_server::{FakeServer, NAME};
use super::golden_scores::assert_scores_of_golden;
use super::{FRONT, Spoiled, assert_spoiled_answers_are_not_taken, opening_fault, served};
use crate::common::app::{App, GOLDEN};
use pdr_audit::config::ServedKind;
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

const SPOILS: [Spoiled; 10] = [
    (|answer| drop(answer.as_array_mut().unwrap().pop()), "answers for"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][1][1] = json!(77_777), "not about the token"),
    (
        |answer| answer[0]["meta_info"]["input_token_logprobs"][1][0] = Value::Null,
        "position 1: it has no log-probability",
    ),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][0][0] = json!(-1.0), "the first token has"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][1][0] = json!(0.5), "0.5 is no log-probability"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"] = Value::Null, "no `input_token_logprobs`"),
    (|answer| answer[0]["meta_info"]["input_top_logprobs"] = Value::Null, "no `input_top_logprobs`"),
    (|answer| answer[0]["meta_info"]["input_top_logprobs"][1] = Value::Null, "lacks the most probable token"),
    (|answer| answer[0]["meta_info"]["prompt_tokens"] = json!(3), "it read 3 tokens"),
    (|answer| *answer = json!({}), "cannot be read"),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_make_sense_is_not_taken() {
    let server = FakeServer::of(GOLDEN).await;
    assert_spoiled_answers_are_not_taken(&front(&server).await, &server, &SPOILS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_right_is_refused_when_it_is_opened() {
    let server = FakeServer::of(GOLDEN).await;
    for (spoil, reason) in SPOILS {
        server.state.lock().unwrap().spoil = spoil;
        let said = opening_fault(ServedKind::Sglang, NAME, &server.url(), |_| ()).await;
        assert!(said.contains(reason), "{said}, not {reason}");
    }
    server.state.lock().unwrap().spoil = |_| ();
    let said = opening_fault(ServedKind::Sglang, "another", &server.url(), |_| ()).await;
    assert!(said.contains("it does not serve `another`; it serves golden"), "{said}");
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
