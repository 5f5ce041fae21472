//! Invalid requests: refused as a whole, with pointers to their faults.

use super::rig::Local;
use super::rig::{assert_same, mean, results, score, serve, settings};
use super::tokens::counts;
use crate::common::app::App;
use crate::common::client::Answer;
use serde_json::{Value, json};

/// The target, a reference with its tokens, one with others, one that fills blanks.
const MODELS: [&str; 4] = ["gptneox-parallel", "gptneox-sequential", "llama-gqa", "bert-mlm"];

/// A request and where its faults are.
type Case = (Value, Vec<&'static str>);

fn linear() -> Value {
    json!({ "decay": "linear", "alpha": 1.0 })
}

/// Lists of methods that no request may have, and the faults by their place in the list.
fn methods() -> Vec<Case> {
    let grid = |count: usize| (1..=count).map(|step| step as f64 / count as f64).collect::<Vec<_>>();
    let generator = |model: &str| json!({ "name": "neighbor", "generator": { "model": model } });
    vec![
        // Of models.
        (json!([{ "name": "ref", "reference": "llama-gqa", "pdr": linear() }]), vec!["/0/pdr"]),
        (
            json!(["loss", { "name": "ref", "reference": "llama-gqa", "pdr": { "decay": "linear", "alpha": grid(5) } }]),
            vec!["/1/pdr"],
        ),
        (json!([{ "name": "ref", "reference": "llama-gqa", "pdr": { "decay": "slope" } }]), vec!["/0/pdr"]),
        (json!([{ "name": "ref", "reference": "bert-mlm" }]), vec!["/0/reference"]),
        (json!([{ "name": "ref", "reference": "nobody" }]), vec!["/0/reference"]),
        (json!([generator("gptneox-sequential")]), vec!["/0/generator/model"]),
        (json!([generator("nobody")]), vec!["/0/generator/model"]),
        (
            json!([generator("bert-mlm"), generator("llama-gqa"), { "name": "ref", "reference": "bert-mlm" }]),
            vec!["/1/generator/model", "/2/reference"],
        ),
        (json!([{ "name": "dc_pdd", "counts": "counts of llama-gqa" }]), vec!["/0/counts"]),
        (json!([{ "name": "dc_pdd", "counts": "nothing" }]), vec!["/0/counts"]),
        (json!(["dc_pdd"]), vec!["/0"]),
        // Of parameters.
        (json!([{ "name": "recall" }]), vec!["/0/prefix"]),
        (json!([{ "name": "recall", "prefix": [] }]), vec!["/0/prefix"]),
        (json!([{ "name": "recall", "prefix": ["a", ""] }]), vec!["/0/prefix/1"]),
        (json!([{ "name": "con_recall", "members": ["a"] }]), vec!["/0/non_members"]),
        (json!([{ "name": "recall", "prefix": ["a text"], "gamma": 1.0 }]), vec!["/0/gamma"]),
        (json!([{ "name": "gap_k", "pdr": linear() }, { "name": "surp", "pdr": linear() }]), vec!["/0/pdr", "/1/pdr"]),
        (
            json!([{ "name": "loss", "pdr": { "decay": "linear", "alpha": 1.0, "select": "before" } }]),
            vec!["/0/pdr/select"],
        ),
        (json!([{ "name": "loss", "pdr": { "decay": "polynomial", "alpha": [0.1, 0.0] } }]), vec!["/0/pdr/alpha/1"]),
        (json!([{ "name": "gap_k", "window": 0 }]), vec!["/0/window"]),
        // Of labels and counts.
        (json!(["loss", "loss"]), vec!["/1"]),
        (json!([{ "name": "loss", "label": "a" }, { "name": "zlib", "label": "a" }]), vec!["/1/label"]),
        (json!([{ "name": "min_k", "k": [0.1, 0.2, 0.1] }]), vec!["/0"]),
        (json!([{ "name": "min_k", "k": 0.2 }, { "name": "min_k", "k": [0.1, 0.2] }]), vec!["/1"]),
        (
            json!(["loss", { "name": "min_k", "k": grid(16), "pdr": { "decay": "linear", "alpha": grid(16) } }]),
            vec!["/1"],
        ),
        (json!([{ "name": "min_k", "k": grid(257) }]), vec!["/0"]),
        (json!([]), vec![""]),
    ]
}

/// Refused by both ways in, each fault under `/methods`.
async fn assert_refused(app: &App, methods: &Value, faults: &[&str]) {
    let pointers: Vec<String> = faults.iter().map(|fault| format!("/methods{fault}")).collect();
    let score = app.post("/v1/score", &json!({ "inputs": "a text", "methods": methods })).await;
    assert_eq!(score.pointers(), pointers, "{methods}: {}", score.text());
    let audit = app.audit(&json!({ "samples": [{ "text": "a text" }], "methods": methods })).await;
    assert_eq!(audit.pointers(), pointers, "{methods}: {}", audit.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_do_not_fit_are_pointed_at() {
    let place = tempfile::tempdir().unwrap();
    let mut settings = settings(&MODELS);
    settings.token_counts = ["gptneox-parallel", "llama-gqa"].map(|name| counts(name, place.path()).0).into();
    let app = App::start_as_it_is(&settings).await;
    for (methods, faults) in methods() {
        assert_refused(&app, &methods, &faults).await;
    }
    // Two hundred and fifty-six are not too many.
    let grid: Vec<f64> = (1..=16).map(|step| f64::from(step) / 16.0).collect();
    let most = json!([{ "name": "min_k", "k": grid, "pdr": { "decay": "linear", "alpha": grid } }]);
    let answer = app.score(&json!({ "inputs": "a text", "methods": most })).await;
    assert_eq!(results(&answer)[0]["scores"].as_object().unwrap().len(), 256);
    // Of two counts a request names one; the right one serves.
    let answer = app
        .score(
            &json!({ "inputs": "a text", "methods": [{ "name": "dc_pdd", "counts": "counts of gptneox-parallel" }] }),
        )
        .await;
    assert_eq!(results(&answer)[0]["errors"], json!([]));
}

/// A reference with other tokens compares means, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_reference_with_other_tokens_is_compared_by_means() {
    let app = serve(&MODELS).await;
    let text = "Two models read the same text in their own ways.";
    let (target, other) = (Local::open(MODELS[0]), Local::open(MODELS[2]));
    let methods = json!([{ "name": "ref", "reference": "llama-gqa", "label": "other" }, { "name": "ref", "label": "same" },
        { "name": "ref", "reference": "llama-gqa", "truncate": 0.5, "label": "half" }]);
    let answer = app.score(&json!({ "inputs": text, "methods": methods, "details": ["tokens"] })).await;
    let result = &results(&answer)[0];
    let (own, others) = (target.lps(&target.ids(text)), other.lps(&other.ids(text)));
    assert_ne!(own.len(), others.len());
    assert_same("other", score(result, "other"), mean(&own) - mean(&others));
    assert_same("half", score(result, "half"), mean(&own[..own.len() / 2]) - mean(&others[..others.len() / 2]));
    assert!(answer["methods"][0]["note"].as_str().unwrap().contains("another tokenization"));
    assert!(answer["methods"][1].get("note").is_none());
    // Methods that compare token by token cannot be computed.
    for method in ["wbc", "ez"] {
        let body = json!({ "inputs": text, "methods": [{ "name": method, "reference": "llama-gqa" }] });
        let refused = app.post("/v1/score", &body).await;
        assert_pointers(&refused, &["/methods/0/reference"]);
        assert!(refused.text().contains("another tokenization"), "{}", refused.text());
    }
    // It is no sum over the text's tokens.
    assert_eq!(result["tokens"][1]["contributions"].as_object().unwrap().keys().collect::<Vec<_>>(), ["same"]);
}

fn assert_pointers(answer: &Answer, pointers: &[&str]) {
    assert_eq!(answer.pointers(), pointers, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_and_methods_that_do_not_go_together_are_pointed_at() {
    let app = serve(&MODELS).await;
    let recall = json!({ "name": "recall", "prefix": ["known", "also scored"] });
    let con_recall = json!({ "name": "con_recall", "non_members": ["also scored"], "members": ["known", "the other"] });
    let with = |inputs: Value, methods: Value| json!({ "inputs": inputs, "methods": methods });
    let audited = |samples: Value, methods: Value| json!({ "samples": samples, "methods": methods });
    let texts = json!(["the first", "also scored", "the other"]);
    let samples: Value = texts.as_array().unwrap().iter().map(|text| json!({ "text": text })).collect();

    // The prefixes would contain a scored text.
    let pointers = ["/methods/1/prefix/1", "/methods/2/non_members/0", "/methods/2/members/1"];
    let methods = json!(["loss", recall, con_recall]);
    assert_pointers(&app.post("/v1/score", &with(texts, methods.clone())).await, &pointers);
    assert_pointers(&app.audit(&audited(samples, methods)).await, &pointers);

    // Neighbours: empty, or missing where nothing makes them.
    let neighbors = |list: Value| json!({ "text": "the first", "neighbors": list });
    let mixed =
        json!([neighbors(json!(["a", "b"])), { "text": "the second" }, neighbors(json!([])), { "text": "the fourth" }]);
    let missing = ["/1/neighbors", "/2/neighbors", "/3/neighbors"];
    for (path, place) in [("/v1/score", "inputs"), ("/v1/audits", "samples")] {
        let pointers = missing.map(|end| format!("/{place}{end}"));
        let body = json!({ place: mixed, "methods": ["neighbor"] });
        assert_pointers(&app.post(path, &body).await, &pointers.each_ref().map(String::as_str));
        // An empty list is a fault whatever the methods.
        let body = json!({ place: mixed, "methods": ["loss"] });
        assert_pointers(&app.post(path, &body).await, &[&pointers[1]]);
    }
    let bare = app.post("/v1/score", &with(json!(["plain", "texts"]), json!(["neighbor"]))).await;
    assert_pointers(&bare, &["/inputs/0/neighbors", "/inputs/1/neighbors"]);

    // Weights made of a whole audit.
    let dataset = json!({ "name": "loss", "pdr": { "decay": "entropy_dataset" } });
    let alone = app.post("/v1/score", &with(json!("a text"), json!(["loss", dataset]))).await;
    assert_pointers(&alone, &["/methods/1/pdr/decay"]);
    let other_texts = json!({ "name": "lowercase", "pdr": { "decay": "entropy_dataset" } });
    let audit = app.audit(&audited(json!([{ "text": "a text" }]), json!([dataset, other_texts]))).await;
    assert_pointers(&audit, &["/methods/1/pdr/decay"]);

    // A model that scores nothing, and one that there is not.
    assert_pointers(&app.post("/v1/score", &json!({ "model": "bert-mlm", "inputs": "a text" })).await, &["/model"]);
    app.post("/v1/score", &json!({ "model": "nobody", "inputs": "a text" })).await.problem(404);
    app.audit(&json!({ "model": "nobody", "samples": [{ "text": "a text" }] })).await.problem(404);
}
