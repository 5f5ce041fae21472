//! `POST /v1/score` through the front door.

use crate::common::app::{App, GOLDEN, REFERENCE, TINY};
use crate::common::goldens::expected;
use pdr_audit::config::ByteSize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// As for the scores in `parity.rs`.
fn assert_close(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-4 + 1e-3 * want.abs(), "{what}: {got} but the reference has {want}");
}

/// The score under a label.
fn score_of(result: &Value, label: &str) -> f64 {
    result["scores"][label].as_f64().unwrap_or_else(|| panic!("no score {label} in {result}"))
}

/// A text of the golden.
fn golden_text(name: &str) -> Value {
    let texts = expected(GOLDEN)["texts"].clone();
    texts.as_array().unwrap().iter().find(|text| text["name"] == name).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_golden_text_gets_the_scores_of_the_reference() {
    let app = App::start().await;
    let golden = expected(GOLDEN);
    let texts: Vec<&Value> = golden["texts"].as_array().unwrap().iter().collect();
    let inputs: Vec<&Value> = texts.iter().map(|text| &text["text"]).collect();
    let pdr = |decay: &str, alpha: f64| json!({ "decay": decay, "alpha": alpha });
    let methods = json!([
        "loss", "zlib", "min_k",
        { "name": "min_k_plus_plus", "k": 0.3 },
        { "name": "loss", "pdr": pdr("linear", 1.0), "label": "linear" },
    ]);
    let request = json!({ "inputs": inputs, "methods": methods, "overflow": "truncate" });
    let answer = app.score(&request).await;
    let mut compared = 0;
    for (index, (text, result)) in texts.iter().zip(answer["results"].as_array().unwrap()).enumerate() {
        assert_eq!(result["index"], index);
        let truncated = text["truncated"].is_object();
        assert_eq!(result["truncated"], truncated);
        let want = if truncated { &text["truncated"]["scores"] } else { &text["scores"] };
        let wanted = [
            ("loss", &want["loss"]),
            ("zlib", &want["zlib"]),
            ("min_k(k=0.2)", &want["mink"]["0.2"]),
            ("min_k_plus_plus(k=0.3)", &want["mink++"]["0.3"]),
            ("linear", &want["pdr"]["linear"]["1.0"]["loss"]),
        ];
        for (label, want) in wanted.iter().filter_map(|(label, want)| Some((label, want.as_f64()?))) {
            assert_close(&format!("{label} of {}", text["name"]), score_of(result, label), want);
            compared += 1;
        }
    }
    assert!(compared > 70, "only {compared} scores compared");
    let scored: u64 = answer["results"].as_array().unwrap().iter().map(|r| r["scored_tokens"].as_u64().unwrap()).sum();
    assert_eq!(answer["usage"]["tokens"], scored);
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_has_the_shape_of_the_contract() {
    let app = App::start().await;
    let answer = app.score(&json!({ "inputs": ["The cat sat.", { "id": "b", "text": "On the mat." }] })).await;
    assert_eq!(answer["model"]["id"], TINY);
    assert_eq!((&answer["model"]["dtype"], &answer["model"]["device"]), (&json!("f32"), &json!("cpu")));
    for digest in ["digest", "tokenizer_digest"] {
        assert!(answer["model"][digest].as_str().unwrap().starts_with("sha256:"));
    }
    assert_eq!(answer["methods"].as_array().unwrap().len(), 8);
    assert_eq!(answer["methods"][2], json!({ "label": "min_k(k=0.2)", "name": "min_k", "k": 0.2 }));
    let [first, second] = [&answer["results"][0], &answer["results"][1]];
    assert!(first.get("id").is_none() && first.get("tokens").is_none());
    assert_eq!((&second["id"], &second["index"]), (&json!("b"), &json!(1)));
    for label in answer["methods"].as_array().unwrap().iter().map(|method| method["label"].as_str().unwrap()) {
        assert!(score_of(first, label).is_finite() && score_of(second, label).is_finite());
    }
    assert_eq!(first["errors"], json!([]));
    assert_eq!((&answer["usage"]["forward_passes"], &answer["usage"]["cached_passes"]), (&json!(2), &json!(0)));
    let again = app.score(&json!({ "inputs": "The cat sat.", "model": TINY })).await;
    assert_eq!(again["results"][0]["scores"], first["scores"], "one string is a list of one");
    assert_eq!((&again["usage"]["forward_passes"], &again["usage"]["cached_passes"]), (&json!(0), &json!(1)));
    let other = app.score(&json!({ "inputs": "The cat sat.", "model": REFERENCE })).await;
    assert_ne!(other["results"][0]["scores"], first["scores"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn contributions_sum_to_the_score() {
    let app = App::start().await;
    let text = golden_text("sentence_medium");
    let answer = app.score(&json!({ "inputs": text["text"], "details": ["tokens"] })).await;
    let result = &answer["results"][0];
    let tokens = result["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), text["ids"].as_array().unwrap().len());
    assert!(tokens[0]["lp"].is_null() && tokens[0]["contributions"] == json!({}));
    assert_eq!(tokens.last().unwrap()["offset"][1], text["text"].as_str().unwrap().chars().count());
    for (label, score) in result["scores"].as_object().unwrap() {
        let sum: f64 = tokens[1..].iter().map(|token| token["contributions"][label].as_f64().unwrap()).sum();
        assert!((sum - score.as_f64().unwrap()).abs() < 1e-9, "{label}: {sum} is not {score}");
    }
    assert_close("lp", tokens[1]["lp"].as_f64().unwrap(), text["tokens"]["logp"][0].as_f64().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_text_fails_alone() {
    let app = App::start().await;
    let huge = "word ".repeat(2_000_000);
    let long = golden_text("longer_than_context")["text"].clone();
    let inputs = json!([
        "a",
        "",
        huge,
        long,
        "\u{1f680}\u{1f680} \u{2764}\u{fe0f}",
        "nul \0 and \u{1} too",
        "\u{feff}\u{202e}x"
    ]);
    let answer = app.score(&json!({ "inputs": inputs, "details": ["tokens"] })).await;
    let codes = [Some("too_short"), Some("too_short"), Some("too_long"), Some("too_long"), None, None, None];
    for (result, code) in answer["results"].as_array().unwrap().iter().zip(codes) {
        match code {
            Some(code) => {
                assert_eq!(result["errors"].as_array().unwrap().len(), 1, "{result}");
                assert_eq!(result["errors"][0]["code"], code);
                assert!(result["errors"][0].get("label").is_none() && result["scores"] == json!({}));
                assert!(!result["errors"][0]["detail"].as_str().unwrap().is_empty());
            }
            None => assert_eq!((result["errors"].clone(), result["scores"].as_object().unwrap().len()), (json!([]), 8)),
        }
    }
    assert!(answer["results"][2]["errors"][0]["detail"].as_str().unwrap().contains("limits.text"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once_get_what_one_would_get_alone() {
    // Without a cache every text is computed anew, among ever other neighbours.
    let app = App::with(|settings| settings.engine.cache = ByteSize::b(0)).await;
    let words = ["the", "committee", "3.14", "Zürich", "\u{1f680}", "met", "again", "quietly"];
    let text = |client: usize| {
        let count = 2 + client * 7 % 40;
        (0..count).map(|at| words[(client + at * at) % words.len()]).collect::<Vec<_>>().join(" ")
    };
    let request = |client: usize| json!({ "inputs": [text(client)], "overflow": "truncate" });
    let ask = |client: usize| {
        let (http, body) = ((*app).clone(), request(client));
        tokio::spawn(async move { http.score(&body).await["results"][0]["scores"].to_string() })
    };
    let together: Vec<_> = (0..200).map(ask).collect();
    let mut answers = Vec::new();
    for answer in together {
        answers.push(answer.await.unwrap());
    }
    app.assert_nothing_is_left().await;
    for (client, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, ask(client).await.unwrap(), "client {client}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_nothing() {
    let app = App::start().await;
    let inputs: Vec<String> =
        (0..10_000).map(|at| format!("text number {at} of a client that does not wait")).collect();
    let body = json!({ "inputs": inputs });
    // 499 counts the handlers that were dropped. No other test goes away from this route.
    let series = "pdr_audit_http_requests_total{method=\"POST\",route=\"/v1/score\",status=\"499\"}";
    let before = app.counter(series).await;
    let asked = tokio::time::timeout(Duration::from_millis(200), app.post("/v1/score", &body)).await;
    assert!(asked.is_err(), "the answer came before the client went away");
    let until = Instant::now() + Duration::from_secs(10);
    while app.counter(series).await != before + 1 {
        assert!(Instant::now() < until, "the service did not notice");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    app.assert_nothing_is_left().await;
    app.score(&json!({ "inputs": "Still there." })).await;
}
