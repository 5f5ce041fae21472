//! Contexts and spans: parts of a text that the model reads and that are not scored.

use crate::common::app::{App, REFERENCE, TINY};
use crate::common::goldens::numbers;
use serde_json::{Value, json};

const TEXT: &str = "The committee met again on a rainy Tuesday, and nobody had read the minutes.";
const CONTEXT: &str = "Question: what happened in the meeting?";

/// The tokens of the only text of an answer.
async fn tokens(app: &App, input: Value) -> (Value, Vec<Value>) {
    let request = json!({ "inputs": [input], "methods": ["loss"], "details": ["tokens"] });
    let result = app.score(&request).await["results"][0].clone();
    let tokens = result["tokens"].as_array().unwrap().clone();
    (result, tokens)
}

fn ids(tokens: &[Value]) -> Vec<u64> {
    tokens.iter().map(|token| token["id"].as_u64().unwrap()).collect()
}

fn scored(tokens: &[Value]) -> Vec<f64> {
    tokens.iter().filter_map(|token| token["lp"].as_f64()).collect()
}

/// The log-probabilities of all ids but the first.
async fn lps(app: &App, ids: &[u64]) -> Vec<f64> {
    let answer = app.post("/v1/token-stats", &json!({ "sequences": [ids] })).await.ok();
    numbers(&answer["sequences"][0]["lp"])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_is_read_and_not_scored() {
    let app = App::start().await;
    let (_, context) = tokens(&app, json!(CONTEXT)).await;
    let (_, text) = tokens(&app, json!(TEXT)).await;
    let (result, with_context) = tokens(&app, json!({ "text": TEXT, "context": CONTEXT })).await;
    let (context, text) = (ids(&context), ids(&text));
    assert_eq!(ids(&with_context), text);
    let all = lps(&app, &[context.clone(), text.clone()].concat()).await;
    // The statistic at 0 is that of the second id, and the text's first token is scored.
    let expected = &all[context.len() - 1..];
    assert_eq!((scored(&with_context), expected.len()), (expected.to_vec(), text.len()));
    assert_eq!(result["scored_tokens"], text.len());
    assert!((result["scores"]["loss"].as_f64().unwrap() - mean(expected)).abs() < 1e-12);
    // An empty context is none.
    let (empty, _) = tokens(&app, json!({ "text": TEXT, "context": "" })).await;
    assert_eq!(empty["scored_tokens"], text.len() - 1);
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_choose_the_tokens_that_are_scored() {
    let app = App::start().await;
    let (_, whole) = tokens(&app, json!(TEXT)).await;
    let spans = json!([[4, 13], [27, 42]]);
    let (result, chosen) = tokens(&app, json!({ "text": TEXT, "spans": spans })).await;
    let is_within = |token: &Value| {
        let text = token["text"].as_str().unwrap();
        let [start, end] = [0, 1].map(|place| token["offset"][place].as_u64().unwrap());
        let space = text.len() - text.trim_start().len();
        let start = if space < text.len() { start + space as u64 } else { start };
        [(4, 13), (27, 42)].iter().any(|&(from, to)| from <= start && end <= to)
    };
    let expected: Vec<f64> = whole.iter().filter(|token| is_within(token)).filter_map(|t| t["lp"].as_f64()).collect();
    assert!(expected.len() > 3 && expected.len() < whole.len() - 3, "{expected:?}");
    assert_eq!((scored(&chosen), &result["scored_tokens"]), (expected.clone(), &json!(expected.len())));
    // Positions and selections are those of the scored tokens alone.
    let linear = json!({ "name": "loss", "pdr": { "decay": "linear", "alpha": 1 } });
    let methods = json!([linear, "min_k", "zlib", "ref", "lowercase", "neighbor"]);
    let input = json!({ "text": TEXT, "spans": spans, "neighbors": ["The board met again."] });
    let request = json!({ "inputs": [input], "methods": methods, "model": TINY });
    let result = app.score(&request).await["results"][0].clone();
    let n = expected.len() as f64 - 1.0;
    let weighted: Vec<f64> = expected.iter().enumerate().map(|(t, lp)| lp * (1.0 - t as f64 / n)).collect();
    let score = |label: &str| result["scores"][label].as_f64().unwrap_or_else(|| panic!("no {label}: {result}"));
    assert!((score("loss+linear(alpha=1)") - mean(&weighted)).abs() < 1e-12);
    let mut sorted = expected.clone();
    sorted.sort_by(f64::total_cmp);
    let k = (expected.len() as f64 * 0.2).floor().max(1.0) as usize;
    assert!((score("min_k(k=0.2)") - mean(&sorted[..k])).abs() < 1e-12);
    let scored_text: String = TEXT.chars().skip(4).take(9).chain(TEXT.chars().skip(27).take(15)).collect();
    let bytes = mia::methods::zlib_bytes(&scored_text) as f64;
    assert!((score("zlib") - mean(&expected) / bytes).abs() < 1e-12);
    assert!(score(&format!("ref(reference={REFERENCE})")).is_finite());
    let codes: Vec<(&str, &str)> = result["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["label"].as_str().unwrap(), e["code"].as_str().unwrap()))
        .collect();
    assert_eq!(codes, [("lowercase", "spans_unknown"), ("neighbor", "spans_unknown")]);
}

/// Every method keeps the context before the text that it makes of it, and a reference model reads the same ids.
#[tokio::test(flavor = "multi_thread")]
async fn methods_keep_the_context() {
    let app = App::start().await;
    let loss = async |text: &str, context: &str| {
        let (result, _) = tokens(&app, json!({ "text": text, "context": context })).await;
        result["scores"]["loss"].as_f64().unwrap()
    };
    let [whole, lower, neighbor] =
        [loss(TEXT, CONTEXT).await, loss(&TEXT.to_lowercase(), CONTEXT).await, loss("Nobody came.", CONTEXT).await];
    let input = json!({ "text": TEXT, "context": CONTEXT, "neighbors": ["Nobody came."] });
    let prefix = "It rained all night.";
    let methods = json!(["lowercase", "neighbor", { "name": "recall", "prefix": [prefix], "label": "recall" }]);
    let result = app.score(&json!({ "inputs": [input], "methods": methods })).await["results"][0].clone();
    let score = |label: &str| result["scores"][label].as_f64().unwrap_or_else(|| panic!("no {label}: {result}"));
    assert!((score("lowercase") - lower / whole).abs() < 1e-12);
    assert!((score("neighbor") - (whole - neighbor)).abs() < 1e-12);
    let mut before = Vec::new();
    for text in [prefix, CONTEXT, TEXT] {
        before.push(ids(&tokens(&app, json!(text)).await.1));
    }
    let conditional = lps(&app, &before.concat()).await;
    let conditional = mean(&conditional[before[0].len() + before[1].len() - 1..]);
    assert!((score("recall") - conditional / whole).abs() < 1e-12);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_named() {
    let app = App::start().await;
    for (input, pointer, words) in [
        (json!({ "text": "abc", "spans": [] }), "/inputs/0/spans", "empty; without spans, leave it out"),
        (json!({ "text": "abc", "spans": [[0, 2], [1, 3]] }), "/inputs/0/spans", "overlap"),
        (json!({ "text": "abc", "spans": [[2, 2]] }), "/inputs/0/spans", "its end must be greater"),
        (json!({ "text": "abc", "spans": [[0, 4]] }), "/inputs/0/spans", "which has 3 characters"),
        (json!({ "text": "abc", "spans": [[0.5, 1]] }), "/inputs/0/spans/0/0", "whole number"),
        (json!({ "text": "abc", "context": 7 }), "/inputs/0/context", "string"),
    ] {
        let problem = app.post("/v1/score", &json!({ "inputs": [input] })).await.problem(422);
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    let long = "word ".repeat(1_000);
    let error = async |input: Value, overflow: &str| {
        let request = json!({ "inputs": [input], "methods": ["loss"], "overflow": overflow });
        let result = app.score(&request).await["results"][0].clone();
        let error = &result["errors"][0];
        format!("{}: {}", error["code"].as_str().unwrap_or_default(), error["detail"].as_str().unwrap_or_default())
    };
    let refused = error(json!({ "text": "a b c", "context": long }), "error").await;
    assert!(refused.starts_with("too_long: the text has "), "{refused}");
    let nothing = error(json!({ "text": "a b c", "context": long }), "truncate").await;
    assert!(nothing.starts_with("too_long: no scored token of the text is within the context of model"), "{nothing}");
    let unscored = error(json!({ "text": "word word", "spans": [[1, 2]] }), "error").await;
    assert!(unscored.starts_with("too_short: no token of the text is scored"), "{unscored}");
    // In windows every token of the text is scored once.
    let request =
        json!({ "inputs": [{ "text": "a b c", "context": long }], "methods": ["loss"], "overflow": "window" });
    let result = app.score(&request).await["results"][0].clone();
    let alone = app.score(&json!({ "inputs": ["a b c"], "methods": ["loss"] })).await["results"][0].clone();
    assert_eq!(result["scored_tokens"].as_u64().unwrap(), alone["scored_tokens"].as_u64().unwrap() + 1);
    assert!(result["windows"].as_u64().unwrap() > 1, "{result}");
}

/// Samples of one text with different contexts are different texts to score, and one cluster.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_scores_each_context() {
    let app = App::start().await;
    let contexts = ["One.", "Another one, longer.", "Another one, longer."];
    let samples: Vec<Value> = contexts.iter().map(|context| json!({ "text": TEXT, "context": context })).collect();
    let whole = [json!({ "text": TEXT }), json!({ "text": TEXT, "spans": [[0, 13]] })];
    let samples = [samples, whole.to_vec()].concat();
    let request = json!({ "samples": samples, "methods": ["loss"], "overflow": "truncate" });
    let audit = app.audit(&request).await.ok();
    let id = audit["id"].as_str().unwrap();
    let lines = app.get(&format!("/v1/audits/{id}/scores")).await;
    let lines: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let scores: Vec<f64> = lines.iter().map(|line| line["scores"]["loss"].as_f64().unwrap()).collect();
    assert!(scores[0] != scores[1] && scores[1] == scores[2] && scores[3] != scores[0] && scores[4] != scores[3]);
    assert!(lines.iter().all(|line| line["cluster"] == 0));
    for (sample, score) in samples.iter().zip(&scores) {
        let request = json!({ "inputs": [sample], "methods": ["loss"], "overflow": "truncate" });
        assert_eq!(app.score(&request).await["results"][0]["scores"]["loss"].as_f64(), Some(*score));
    }
    let tuned = json!({ "name": "a", "samples": vec![&samples[0]; 8] });
    let problem = app.post("/v1/finetunes", &tuned).await.problem(422);
    let detail = problem["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.starts_with("8 of 8 samples have `context` or `spans`"), "{problem}");
}
