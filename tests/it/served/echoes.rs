//! Servers of OpenAI's kind behind a front.

use super::fake_echo::{Beginning, EchoManners, Reading, Takes, llama_cpp_python, pieces};
use super::fake_server::{FakeServer, NAME};
use super::golden_scores::assert_scores_of_golden;
use super::{FRONT, opening_fault, served, silent};
use crate::common::app::{App, GOLDEN};
use crate::common::client::send;
use pdr_audit::config::{ServedKind, ServedSettings};
use reqwest::Method;
use serde_json::{Value, json};

/// A golden whose tokenizer puts a token before texts.
const WITH_BEGINNING: &str = "llama-gqa";

async fn front_of(golden: &str, server: &FakeServer, set: impl Fn(&mut ServedSettings)) -> App {
    App::with(|settings| {
        served(settings, ServedKind::Openai, NAME, golden, &[server.url()]);
        set(settings.models[0].served.as_mut().unwrap());
    })
    .await
}

async fn server(golden: &str, echo: EchoManners) -> FakeServer {
    let server = FakeServer::of(golden).await;
    server.state.lock().unwrap().echo = echo;
    server
}

/// The last request for an echo of one or more prompts, as it was read.
fn asked(server: &FakeServer) -> Value {
    server.state.lock().unwrap().asked.last().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_are_those_of_the_references_in_every_form() {
    let vllm = EchoManners::default();
    let plain = EchoManners { names_ids: false, ..vllm };
    let forms = [
        (vllm, json!(0), true),
        (EchoManners { takes_zero: false, ..plain }, json!(1), true),
        (EchoManners { takes: Takes::Ids, best: 1, ..plain }, json!(0), true),
        (EchoManners { takes: Takes::Text, ..plain }, json!(1), false),
    ];
    for (manners, max_tokens, in_ids) in forms {
        let server = server(GOLDEN, manners).await;
        let front = front_of(GOLDEN, &server, |_| ()).await;
        let answer = assert_scores_of_golden(&front).await;
        let backend = &answer["model"]["backend"];
        assert_eq!((&backend["kind"], &backend["weights"]), (&json!("openai"), &json!("not_attested")));
        let asked = asked(&server);
        for (key, value) in [("max_tokens", max_tokens), ("echo", json!(true)), ("logprobs", json!(1))] {
            assert_eq!(asked[key], value, "{key}");
        }
        assert_eq!(asked["prompt"].is_string(), !in_ids);
        front.assert_nothing_is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_leaves_out_the_beginning_scores_from_the_second_token_on() {
    for (beginning, skipped) in [(Beginning::Reported, 0), (Beginning::LeftOut, 1)] {
        let server = server(WITH_BEGINNING, EchoManners { beginning, ..llama_cpp_python() }).await;
        server.state.lock().unwrap().varied = true;
        let front = front_of(WITH_BEGINNING, &server, |_| ()).await;
        let text = "A text of some words.";
        let answer = front.score(&json!({ "inputs": text, "methods": ["loss"] })).await;
        let want = {
            let state = server.state.lock().unwrap();
            let ids = state.tokenizer.encode(text).unwrap().ids;
            let [lps, ..] = state.columns(&ids);
            // In the sequence with its beginning, the first number is that of the first token of the text.
            lps[skipped..].iter().sum::<f64>() / (lps.len() - skipped) as f64
        };
        let got = answer["results"][0]["scores"]["loss"].as_f64().unwrap();
        assert!((got - want).abs() < 1e-12, "{got}, not {want}");
        assert_eq!(asked(&server)["prompt"], json!(text));
        front.assert_nothing_is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_the_server_reads_otherwise_fails_alone() {
    let server = server(GOLDEN, EchoManners { takes: Takes::Text, names_ids: false, ..EchoManners::default() }).await;
    let front = front_of(GOLDEN, &server, |_| ()).await;
    // The other text, and those by which the server is checked, are read as they are.
    let reads: [(&str, Reading); 5] = [
        ("A text of some words.", |text| text.replace("some", "so me")),
        (" A text of some words.", |text| text.replace(" A", "A")),
        ("A text of some words.\n", |text| text.replace("words.\n", "words.")),
        ("A text  of some words.", |text| text.replace("text  of", "text of")),
        ("A text of some words.", |text| text.replace("words.", "words. More.")),
    ];
    for (text, reads) in reads {
        server.state.lock().unwrap().echo.reads = reads;
        let samples = [json!({ "text": text }), json!({ "text": "Another text." })];
        let audit = front.audit(&json!({ "samples": samples, "methods": ["loss"] })).await.json();
        assert_eq!(audit["status"], "succeeded", "{audit}");
        let scores = front.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await.text().to_owned();
        let rows: Vec<Value> = scores.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[0]["errors"][0]["code"], "model_failed", "{text:?}: {}", rows[0]);
        assert!(rows[1]["scores"]["loss"].is_number(), "{}", rows[1]);
        assert_eq!(silent(&front.engine), [None]);
    }
}

/// Change made to a text, and a part of the reason why the server is refused.
type Misread = (Reading, &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_read_texts_otherwise_are_refused_with_the_first_place() {
    let text_alone = EchoManners { takes: Takes::Text, names_ids: false, ..EchoManners::default() };
    let reads: [Misread; 3] = [
        (|text| text.replace("Monday", "monday"), "its text does not begin with the text that was sent"),
        (|text| text.trim_start_matches("One").to_owned(), "its text does not begin with"),
        (|text| format!("{text} More."), "log-probabilities for 64 tokens"),
    ];
    for (reads, reason) in reads {
        let server = server(GOLDEN, EchoManners { reads, ..text_alone }).await;
        let said = opening_fault(ServedKind::Openai, NAME, &server.url(), |_| ()).await;
        assert!(said.contains(reason), "{said}, not {reason}");
    }
    // One that has another tokenizer, and shows the text as it came.
    let server = server(GOLDEN, text_alone).await;
    let pieces = pieces(&server.state.lock().unwrap().tokenizer, "One, two, three");
    server.state.lock().unwrap().spoil = |answer| answer["choices"][0]["logprobs"]["tokens"][2] = json!("XY");
    let said = opening_fault(ServedKind::Openai, NAME, &server.url(), |_| ()).await;
    let offset = pieces[..2].iter().map(|piece| piece.chars().count()).sum::<usize>();
    let place = format!("token 2, at character {offset} is {:?} here and \"XY\" at the server", pieces[2]);
    assert!(said.contains(&place), "{said}, not {place}");
}

/// A server that cannot be right, and a part of what is said of it.
type Lie = (EchoManners, fn(&mut Value), &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_cannot_be_right_are_refused_when_they_are_opened() {
    let vllm = EchoManners::default();
    let nothing: fn(&mut Value) = |_| ();
    let lies: Vec<Lie> = vec![
        (EchoManners { is_shifted: true, ..vllm }, nothing, "those of other positions"),
        (
            EchoManners { is_shifted: true, takes: Takes::Text, names_ids: false, ..vllm },
            nothing,
            "those of other positions",
        ),
        (EchoManners { best: 0, ..vllm }, nothing, "set `served.top_logprobs = false`"),
        // The server of llama.cpp.
        (
            vllm,
            |answer| {
                answer["choices"][0]["logprobs"] = json!({ "content": [{ "id": 5, "token": "a", "logprob": -0.1 }] })
            },
            "without log-probabilities of the prompt",
        ),
        // Ollama, which takes texts and does not know `echo`.
        (
            EchoManners { takes: Takes::Text, names_ids: false, ..vllm },
            |answer| {
                answer["choices"][0] = json!({
                    "index": 0, "text": " a", "finish_reason": "length",
                    "logprobs": { "tokens": [" a"], "token_logprobs": [-0.1], "top_logprobs": [{ " a": -0.1 }], "text_offset": [0] },
                });
            },
            "without log-probabilities of the prompt",
        ),
        (vllm, |answer| answer["choices"][0]["prompt_token_ids"][5] = json!(7), "about other token ids"),
    ];
    for (manners, spoil, reason) in lies {
        let server = server(GOLDEN, manners).await;
        server.state.lock().unwrap().varied = true;
        server.state.lock().unwrap().spoil = spoil;
        let said = opening_fault(ServedKind::Openai, NAME, &server.url(), |_| ()).await;
        assert!(said.contains(reason), "{said}, not {reason}");
        assert!(!said.contains("127.0.0.1"), "the URL is told: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_begins_texts_otherwise_is_refused() {
    // The tokenizer puts a token before texts, and the server does not.
    let without = server(WITH_BEGINNING, EchoManners { beginning: Beginning::Absent, ..llama_cpp_python() }).await;
    let front = |settings: &mut pdr_audit::config::Settings| {
        served(settings, ServedKind::Openai, NAME, WITH_BEGINNING, &[without.url()]);
    };
    let said = super::fault_of(front).await;
    assert!(said.contains("do not begin texts alike"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_most_probable_tokens_the_methods_that_need_them_are_unavailable() {
    let server = server(GOLDEN, EchoManners { best: 0, ..EchoManners::default() }).await;
    let front = front_of(GOLDEN, &server, |served| served.top_logprobs = false).await;
    assert_scores_of_golden(&front).await;
    let answer =
        front.score(&json!({ "inputs": "A text of words.", "details": ["tokens"], "methods": ["loss"] })).await;
    let token = &answer["results"][0]["tokens"][1];
    assert!(token["lp"].is_number() && token["max_lp"].is_null(), "{token}");
    let methods = front.get(&format!("/v1/methods?model={FRONT}")).await.ok();
    let ez = methods["methods"].as_array().unwrap().iter().find(|entry| entry["name"] == "ez").unwrap().clone();
    assert!(ez["unavailable"].as_str().unwrap().contains("first_choice"), "{ez}");
    let ez = json!({ "name": "ez", "reference": FRONT });
    let refused = front.post("/v1/score", &json!({ "inputs": "A text.", "methods": [ez] })).await;
    assert!(refused.text().contains("`first_choice`"), "{}", refused.text());
    let work = "A text of some words that is long enough for a window. ".repeat(20);
    let body = json!({ "texts": [work], "prefix": 8, "suffix": 8 });
    let job = send(front.request(Method::POST, "/v1/memorization").header("prefer", "wait=20").json(&body)).await;
    assert!(job.text().contains("reports no most probable tokens"), "{}", job.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_that_would_cost_too_much_is_refused_before_it_is_scored() {
    let server = server(GOLDEN, EchoManners::default()).await;
    let front = front_of(GOLDEN, &server, |served| served.price_per_million_tokens = Some(2.5)).await;
    let samples: Vec<Value> = (0..4).map(|_| json!({ "text": "x".repeat(400) })).collect();
    let body = |most: f64| json!({ "samples": samples, "methods": ["loss", "lowercase"], "max_cost": most });
    let before = server.state.lock().unwrap().batches.len();
    let refused = front.post("/v1/audits", &body(0.0019)).await;
    assert_eq!(refused.pointers(), ["/max_cost"]);
    // Two passes over four texts of about 100 tokens, 2.5 a million.
    assert!(refused.text().contains("cost about 0.0020 (8 requests, about 800 tokens)"), "{}", refused.text());
    assert_eq!(front.post("/v1/audits", &body(-1.0)).await.pointers(), ["/max_cost"]);
    assert_eq!(server.state.lock().unwrap().batches.len(), before, "nothing is scored");
    let plan = front.post("/v1/plans", &body(0.01)).await.json();
    let served = json!({ "requests": 8, "estimated_tokens": 800, "estimated_cost": 0.002 });
    assert_eq!(plan["served"], served);
    let audit = front.audit(&body(0.01)).await.json();
    assert_eq!(audit["status"], "succeeded", "{audit}");
    assert_eq!(audit["progress"]["forecast"]["served"], served);
    let unpriced = front_of(GOLDEN, &server, |_| ()).await;
    let refused = unpriced.post("/v1/audits", &body(1.0)).await;
    assert!(refused.text().contains("price_per_million_tokens"), "{}", refused.text());
}
