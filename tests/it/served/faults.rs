//! Faults between a front and its servers.

use super::kinds::{ENGINE, Kind, kinds};
use super::{fault_of, silent, until, until_said};
use crate::common::app::{App, TINY};
use crate::common::client::send;
use crate::common::relay::Act;
use crate::common::tampered::{Batch, MARK, tampered};
use futures::future::join_all;
use lm::models::ModelError;
use pdr_audit::config::{DeviceChoice, Settings};
use pdr_audit::pool::Retry;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn body() -> Value {
    json!({ "inputs": ["A text of some words.", "And another one."], "methods": ["loss"] })
}

/// Faults that say nothing of the texts, with a part of what is said of them.
fn passing() -> Vec<(Act, &'static str)> {
    let problem = |detail: &str| json!({ "detail": detail }).to_string();
    let late = Duration::from_secs(3);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n";
    vec![
        (Act::Close, "it closed the connection"),
        (Act::Cut(30), "it closed the connection"),
        (Act::Cut(600), "it closed the connection"),
        (Act::Delay(late), "it does not answer in time"),
        (Act::Stall(30, late), "it does not answer in time"),
        (Act::Stall(600, late), "it does not answer in time"),
        (Act::Say("503 Service Unavailable\r\nretry-after: 1\r\n", problem("the queue is full")), "the queue is full"),
        (
            Act::Say("429 Too Many Requests\r\nretry-after: 1\r\n", problem("quota")),
            "the server is busy (status 429): quota",
        ),
        (Act::Say("429 Too Many Requests\r\n", json!({ "error": { "message": "quota" } }).to_string()), "429): quota"),
        (Act::Say("500 Internal Server Error\r\n", "oops".to_owned()), "(status 500)"),
        (Act::Say("502 Bad Gateway\r\n", "<html>".to_owned()), "(status 502)"),
        (Act::Say("504 Gateway Timeout\r\n", "<html>".to_owned()), "(status 504)"),
        (Act::Say("401 Unauthorized\r\n", problem("a key is needed")), "refuses the key (status 401)"),
        (Act::Say("404 Not Found\r\n", problem("no such model")), "does not have the model that was opened"),
        (Act::Say("302 Found\r\nlocation: http://127.0.0.1:1/\r\n", String::new()), "redirects"),
        (Act::Say("200 OK\r\n", "{}".to_owned()), "its answer cannot be read"),
        (Act::Say("200 OK\r\n", String::new()), "its answer cannot be read"),
        (Act::Say("200 OK\r\n", r#"[{ "logprob": NaN }]"#.to_owned()), "its answer cannot be read"),
        (Act::Say("200 OK\r\n", "<html>".to_owned()), "its answer cannot be read"),
        (Act::Say("200 OK\r\n", "x".repeat(1 << 20)), "longer than"),
        // Shorter than what is there.
        (Act::Write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[[0.5]]".to_owned()), "its answer cannot be read"),
        (Act::Write(chunked.to_owned()), "its answer is not HTTP"),
        (Act::Write("SSH-2.0-OpenSSH_9.6\r\n".to_owned()), "its answer is not HTTP"),
    ]
}

/// Does this for all kinds at once, since most of the time is spent on waiting.
async fn for_all_kinds(check: impl AsyncFn(Kind)) {
    join_all(kinds().map(|kind| check(kind))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_server_pass_and_cost_no_text() {
    for_all_kinds(async |kind| {
        let server = kind.start().await;
        let relay = kind.relay(&server);
        let front = kind.front(&[relay.url()], Duration::from_secs(2)).await;
        let want = front.score(&body()).await["results"].clone();
        for (act, reason) in passing() {
            relay.state().next.push_back(act.clone());
            relay.state().holds_after = true;
            let request = front.request(Method::POST, "/v1/score").json(&body());
            let asked = tokio::spawn(send(request));
            let said = until_said(&front, reason).await;
            assert!(!said.contains("127.0.0.1"), "the URL is told: {said}");
            relay.state().holds_after = false;
            assert_eq!(asked.await.unwrap().ok()["results"], want, "{kind:?}: {act:?}");
            until("the server answers again", || silent(&front.engine)[0].is_none()).await;
        }
        front.assert_nothing_is_left().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_too_large_is_halved_and_a_text_that_is_refused_fails_alone() {
    for_all_kinds(async |kind| {
        let server = kind.start().await;
        let relay = kind.relay(&server);
        let front = kind.front(&[relay.url()], Duration::from_secs(20)).await;
        let want = front.score(&body()).await["results"].clone();
        let refuse = || Act::Say("422 Unprocessable Content\r\n", json!({ "detail": "no such id" }).to_string());
        relay.state().next.extend((0..kind.refusals()).map(|_| refuse()));
        front.post("/v1/score", &body()).await.problem(503);
        assert_eq!(silent(&front.engine), [None], "the server answers");
        assert_eq!(front.score(&body()).await["results"], want);
        // From here on batches are smaller, so this comes last.
        let before = relay.state().forwards;
        relay.state().next.push_back(Act::Say("413 Content Too Large\r\n", "{}".to_owned()));
        assert_eq!(front.score(&body()).await["results"], want);
        assert_eq!(relay.state().forwards - before, 3, "{kind:?}: the whole, and its halves");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_of_a_text_costs_that_text_alone() {
    for_all_kinds(async |kind| {
        let server = kind.start().await;
        let relay = kind.relay(&server);
        let front = kind.front(&[relay.url()], Duration::from_secs(20)).await;
        let before = relay.state().forwards;
        relay.state().next.extend(vec![Act::Close; 4]);
        let text = json!({ "inputs": "A text of some words.", "methods": ["loss"] });
        front.post("/v1/score", &text).await.problem(503);
        assert_eq!(relay.state().forwards - before, 4, "{kind:?}");
        until("the server answers again", || silent(&front.engine)[0].is_none()).await;
        front.score(&text).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_from_the_start_is_waited_for() {
    for_all_kinds(async |kind| {
        let server = kind.start().await;
        let (down, up) = (kind.relay(&server), kind.relay(&server));
        down.state().always = Act::Close;
        let both = kind.front(&[down.url(), up.url()], Duration::from_secs(20)).await;
        both.score(&body()).await;
        assert_eq!(both.get("/readyz").await.status, 200);

        let mut settings = Settings::default();
        kind.settings(&mut settings, &[down.url()], Duration::from_secs(20));
        settings.engine.device = DeviceChoice::Cpu;
        let alone = App::start_as_it_is(&settings).await;
        let failed = alone.engine.wait_until_loaded().await.unwrap_err().to_string();
        assert!(failed.contains("server 1: it closed the connection"), "{kind:?}: {failed}");
        alone.post("/v1/score", &body()).await.problem(503);
        assert_eq!(alone.get("/readyz").await.status, 503);
        down.state().always = Act::Pass;
        alone.engine.wait_until_ready().await;
        alone.score(&body()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_does_not_hold_up_the_start() {
    for_all_kinds(async |kind| {
        let server = kind.start().await;
        let (hangs, up) = (kind.relay(&server), kind.relay(&server));
        hangs.state().always = Act::Delay(Duration::from_secs(600));
        let urls = [hangs.url(), up.url()];
        // Asked for what it is, a server has 30 s.
        let front = kind.front(&urls, Duration::from_secs(120));
        let front = tokio::time::timeout(Duration::from_secs(25), front).await;
        front.expect("the other server says what it is").get("/readyz").await.ok();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_fill_the_context_are_taken() {
    for_all_kinds(async |kind| {
        let server = kind.start().await;
        let front = kind.front(&[kind.relay(&server).url()], Duration::from_secs(20)).await;
        let text = "The committee met again on a rainy Tuesday. ".repeat(40);
        for overflow in ["truncate", "window"] {
            let body = json!({ "inputs": [text], "methods": ["loss"], "overflow": overflow });
            let result = front.score(&body).await["results"][0].clone();
            // The first ids of a text need not be those of a text of their own.
            let is_scored = kind.takes_texts || result["scores"]["loss"].is_number();
            assert!(is_scored && silent(&front.engine) == [None], "{kind:?}: {overflow}: {result}");
        }
    })
    .await;
}

/// An engine tells a text that its model fails on from one that it is too busy for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `.ci/full` runs it"]
async fn a_text_that_the_model_of_an_engine_fails_on_costs_no_other() {
    let fails =
        |batch: &Batch| if batch.has_mark() { Err(ModelError::Forward("oops".to_owned())) } else { batch.run() };
    let one = tampered(|_| {}, vec![(TINY, Arc::new(fails))]).await;
    let front = ENGINE.front(&[format!("http://{}", one.address)], Duration::from_secs(20)).await;
    let texts = ["A text of some words.".to_owned(), format!("A text {MARK}"), "And another one.".to_owned()];
    let samples: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    let audit = front.audit(&json!({ "samples": samples, "methods": ["loss"] })).await.json();
    assert_eq!(audit["status"], "succeeded", "{audit}");
    let scores = front.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await.text().to_owned();
    let codes: Vec<Value> =
        scores.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["errors"][0]["code"].clone()).collect();
    assert_eq!(codes, [Value::Null, json!("model_failed"), Value::Null]);
    let opened = one.engine.pool().open(TINY, Retry::AfterPause).await.unwrap();
    let marked = [opened.tokenizer.plain_ids("A text").unwrap(), opened.tokenizer.plain_ids(MARK).unwrap()].concat();
    let refused = one.post("/v1/token-stats", &json!({ "sequences": [marked] })).await;
    refused.problem(500);
    assert!(!refused.text().contains("oops"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_do_not_resolve_and_ports_that_nobody_has_are_named() {
    for_all_kinds(async |kind| {
        for (url, reason) in
            [("http://no-such-host.invalid:1", "cannot be resolved"), ("http://127.0.0.1:9", "refuses the connection")]
        {
            let failed = fault_of(|settings| kind.settings(settings, &[url.to_owned()], Duration::from_secs(20))).await;
            assert!(failed.contains(reason), "{kind:?}: {failed}");
        }
    })
    .await;
}
