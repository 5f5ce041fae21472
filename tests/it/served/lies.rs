//! Servers that lie: whatever a server of another's answers, no wrong number comes of it, neither when the model is opened nor later.

use super::fake_server::{FakeServer, FakeState, NAME};
use super::kinds::{FAKES, Kind, Server};
use super::{Spoiled, assert_spoiled_answers_are_not_taken, opening_fault, silent, until, until_said};
use crate::common::app::{App, GOLDEN};
use crate::common::client::send;
use crate::common::relay::Act;
use futures::future::join_all;
use pdr_audit::config::ServedKind;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Answers that tell by themselves that they are wrong.
fn lies(kind: ServedKind) -> Vec<Spoiled> {
    match kind {
        ServedKind::Vllm => VLLM.to_vec(),
        ServedKind::Sglang => SGLANG.to_vec(),
        ServedKind::Openai => OPENAI.to_vec(),
        ServedKind::PdrAudit => Vec::new(),
    }
}

/// The candidates of vLLM for the second id of the first prompt.
fn candidates(answer: &mut Value) -> impl Iterator<Item = &mut Value> {
    answer["choices"][0]["prompt_logprobs"][1].as_object_mut().unwrap().values_mut()
}

const VLLM: [Spoiled; 14] = [
    (|answer| drop(answer["choices"].as_array_mut().unwrap().pop()), "choices for"),
    (|answer| answer["choices"][0]["index"] = json!(9), "there is no choice 0"),
    (|answer| answer["choices"][0]["prompt_token_ids"][0] = json!(77), "other token ids"),
    (|answer| answer["choices"][0]["prompt_logprobs"] = Value::Null, "no `prompt_logprobs`"),
    (|answer| answer["choices"][0]["prompt_logprobs"][1] = Value::Null, "position 1: it has no log-probability"),
    (|answer| drop(answer["choices"][0]["prompt_logprobs"].as_array_mut().unwrap().pop()), "positions for"),
    (
        |answer| answer["choices"][0]["prompt_logprobs"][0] = json!({ "5": { "logprob": -1.0, "rank": 1 } }),
        "the first token has",
    ),
    (
        |answer| answer["choices"][0]["prompt_logprobs"][1] = json!({ "77777": { "logprob": -1.0, "rank": 1 } }),
        "not about the token",
    ),
    (|answer| candidates(answer).for_each(|entry| entry["logprob"] = json!(0.5)), "0.5 is no log-probability"),
    (|answer| candidates(answer).for_each(|entry| entry["logprob"] = Value::Null), "cannot be read"),
    (|answer| candidates(answer).for_each(|entry| entry["rank"] = json!(2)), "lacks the most probable token"),
    (
        |answer| {
            candidates(answer).filter(|entry| entry["rank"] != 1).for_each(|entry| entry["logprob"] = json!(-0.001));
        },
        "more probable than the most",
    ),
    (|answer| answer["choices"] = json!({}), "cannot be read"),
    (|answer| *answer = json!("half an answ"), "cannot be read"),
];

const SGLANG: [Spoiled; 14] = [
    (|answer| drop(answer.as_array_mut().unwrap().pop()), "answers for"),
    (|answer| answer[0]["meta_info"]["prompt_tokens"] = json!(3), "it read 3 tokens"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][1][1] = json!(77_777), "not about the token"),
    // An id that SGLang has for the last one alone.
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][1][1] = json!(0), "not about the token"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"] = Value::Null, "no `input_token_logprobs`"),
    (
        |answer| answer[0]["meta_info"]["input_token_logprobs"][1][0] = Value::Null,
        "position 1: it has no log-probability",
    ),
    (
        |answer| {
            for column in ["input_token_logprobs", "input_top_logprobs"] {
                answer[0]["meta_info"][column].as_array_mut().unwrap().pop();
            }
        },
        "positions for",
    ),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][0][0] = json!(-1.0), "the first token has"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][1][0] = json!(0.5), "0.5 is no log-probability"),
    (|answer| answer[0]["meta_info"]["input_token_logprobs"][1][0] = json!(-0.001), "more probable than the most"),
    (|answer| answer[0]["meta_info"]["input_top_logprobs"] = Value::Null, "no `input_top_logprobs`"),
    (|answer| answer[0]["meta_info"]["input_top_logprobs"][1] = Value::Null, "lacks the most probable token"),
    (|answer| *answer = json!({}), "cannot be read"),
    (|answer| *answer = json!("half an answ"), "cannot be read"),
];

const OPENAI: [Spoiled; 13] = [
    (|answer| drop(answer["choices"].as_array_mut().unwrap().pop()), "choices for"),
    (|answer| answer["choices"][0]["logprobs"] = Value::Null, "without log-probabilities of the prompt"),
    (|answer| answer["choices"][0]["logprobs"]["token_logprobs"][1] = Value::Null, "position 1: it has no"),
    (|answer| answer["choices"][0]["logprobs"]["token_logprobs"][0] = json!(-1.0), "the first token has"),
    (|answer| answer["choices"][0]["logprobs"]["token_logprobs"][1] = json!(0.25), "0.25 is no log-probability"),
    (|answer| answer["choices"][0]["logprobs"]["token_logprobs"][1] = json!(-0.001), "more probable than the most"),
    (
        |answer| {
            let numbers = answer["choices"][0]["logprobs"]["token_logprobs"].as_array_mut().unwrap();
            numbers.truncate(numbers.len() - 2);
        },
        "log-probabilities for",
    ),
    (|answer| answer["choices"][0]["logprobs"]["token_logprobs"][1] = json!("-1.5"), "cannot be read"),
    (|answer| answer["choices"][0]["logprobs"]["tokens"][1] = json!("token_id:9999"), "token 1"),
    (|answer| answer["choices"][0]["logprobs"]["top_logprobs"] = Value::Null, "reports no most probable tokens"),
    (|answer| answer["choices"][0]["logprobs"]["top_logprobs"][1] = Value::Null, "reports no most probable tokens"),
    (|answer| answer["choices"] = json!({}), "cannot be read"),
    (|answer| *answer = json!("half an answ"), "cannot be read"),
];

/// Does this for servers of all kinds at once, since most of the time is spent on waiting.
async fn for_all_fakes(check: impl AsyncFn(Kind, FakeServer)) {
    let check = &check;
    let checked = FAKES.map(|kind| async move {
        match kind.start().await {
            Server::Fake(server) => check(kind, server).await,
            Server::Engine(_) => panic!("{kind:?} is no fake"),
        }
    });
    join_all(checked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_lie_are_refused_when_they_are_opened() {
    for_all_fakes(async |kind, server| {
        for (spoil, reason) in lies(kind.kind) {
            server.state.lock().unwrap().spoil = spoil;
            let said = opening_fault(kind.kind, NAME, &server.url(), |_| ()).await;
            assert!(said.contains(reason), "{kind:?}: {said}, not {reason}");
            assert!(!said.contains("127.0.0.1"), "the URL is told: {said}");
        }
        server.state.lock().unwrap().spoil = |_| ();
        server.state.lock().unwrap().is_decimal = true;
        let said = opening_fault(kind.kind, NAME, &server.url(), |_| ()).await;
        assert!(said.contains("no natural logarithms"), "{kind:?}: {said}");
        server.state.lock().unwrap().is_decimal = false;
        let said = opening_fault(kind.kind, "another", &server.url(), |_| ()).await;
        assert!(said.contains("it does not serve `another`; it serves golden"), "{kind:?}: {said}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_of_a_server_that_was_opened_is_not_taken() {
    for_all_fakes(async |kind, server| {
        let front = kind.front(&[server.url()], TIMEOUT).await;
        // A text that a server reads otherwise fails alone, and what it names otherwise is that.
        let is_reading = |reason: &str| ["log-probabilities for", "token 1"].contains(&reason);
        let mut lies = lies(kind.kind);
        lies.retain(|(_, reason)| !(kind.takes_texts && is_reading(reason)));
        assert_spoiled_answers_are_not_taken(&front, &server, &lies).await;
    })
    .await;
}

/// Change of a server that was opened, and a part of the reason why it is not used.
type Changed = (fn(&mut FakeState), &'static str);

const CHANGES: [Changed; 4] = [
    (|state| state.context = 40, "another model"),
    (|state| state.name = "another".to_owned(), "it does not serve `golden`; it serves another"),
    (|state| state.unknown = -4.0, "other weights"),
    (|state| state.is_decimal = true, "no natural logarithms"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_started_again_as_another_is_not_used() {
    for_all_fakes(async |kind, server| {
        let relay = kind.relay(&Server::Fake(FakeServer { state: server.state.clone(), ..server }));
        let front = kind.front(&[relay.url()], TIMEOUT).await;
        let body = json!({ "inputs": ["One text of words.", "Another text."], "methods": ["loss"] });
        let want = front.score(&body).await["results"].clone();
        for (change, reason) in CHANGES {
            let before = {
                let state = server.state.lock().unwrap();
                (state.context, state.unknown)
            };
            change(&mut server.state.lock().unwrap());
            relay.state().next.push_back(Act::Close);
            let asked = tokio::spawn(send(front.request(Method::POST, "/v1/score").json(&body)));
            until_said(&front, reason).await;
            {
                let mut state = server.state.lock().unwrap();
                (state.context, state.unknown) = before;
                (state.name, state.is_decimal) = (NAME.to_owned(), false);
            }
            assert_eq!(asked.await.unwrap().ok()["results"], want, "{kind:?}: {reason}");
            until("the server answers again", || silent(&front.engine)[0].is_none()).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_with_other_weights_is_not_used() {
    for_all_fakes(async |kind, right| {
        let wrong = FakeServer::of(GOLDEN).await;
        let manners = right.state.lock().unwrap().echo;
        wrong.state.lock().unwrap().echo = manners;
        wrong.state.lock().unwrap().unknown = -4.0;
        let front = kind.front(&[right.url(), wrong.url()], TIMEOUT).await;
        let samples: Vec<Value> =
            (0..200).map(|n| json!({ "text": format!("Text {n} of some words."), "label": n % 2 })).collect();
        let body =
            json!({ "samples": samples, "methods": ["loss"], "control": null, "metrics": { "bootstrap": null } });
        let losses = losses(&front, &body).await;
        assert_eq!(losses.len(), 200);
        assert!(losses.iter().all(|loss| (loss + 1.5).abs() < 1e-12), "{kind:?}: {losses:?}");
        until("the wrong server is found out", || silent(&front.engine)[1].is_some()).await;
        assert!(silent(&front.engine)[1].clone().unwrap().contains("other weights"));
    })
    .await;
}

/// The losses of the samples of an audit.
async fn losses(front: &App, body: &Value) -> Vec<f64> {
    let audit = front.audit(body).await.json();
    assert_eq!(audit["status"], "succeeded", "{audit}");
    let scores = front.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    let rows = scores.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter_map(|row| row["scores"]["loss"].as_f64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minus_infinity_is_an_error_of_its_text() {
    // What SGLang has in its place is no number.
    for kind in FAKES.into_iter().filter(|kind| kind.kind != ServedKind::Sglang) {
        let Server::Fake(server) = kind.start().await else { panic!("{kind:?} is no fake") };
        let front = kind.front(&[server.url()], TIMEOUT).await;
        // The server is checked before its first batch, and after that it is the same for a while.
        front.score(&json!({ "inputs": "Some words.", "methods": ["loss"] })).await;
        server.state.lock().unwrap().unknown = -9999.0;
        let before = server.state.lock().unwrap().batches.len();
        let answer = front.score(&json!({ "inputs": "Words that are impossible.", "methods": ["loss"] })).await;
        assert_eq!(answer["results"][0]["errors"][0]["code"], "non_finite", "{kind:?}: {answer}");
        assert_eq!(server.state.lock().unwrap().batches[before..], [1], "{kind:?}");
    }
}
