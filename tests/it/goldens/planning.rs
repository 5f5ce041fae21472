//! Planning of forward passes: every sequence runs once, however many methods use it.

use super::rig::{results, serve};
use crate::common::app::App;
use serde_json::{Value, json};

const TARGET: &str = "gptneox-parallel";
const REFERENCE: &str = "gptneox-sequential";
const TEXT: &str = "The Cat sat on the mat, and the Dog beside it.";

/// Every method that uses only the target, the reference and the lower-cased text, each with every weighting.
fn methods() -> Vec<Value> {
    let names = ["loss", "zlib", "min_k", "min_k_plus_plus", "ref", "lowercase"];
    let mut methods: Vec<Value> = names.iter().map(|&name| json!(name)).collect();
    // The golden is never sure of anything.
    methods.extend([json!("gap_k"), json!({ "name": "surp", "max_entropy": 20.0 })]);
    for name in names {
        for decay in ["linear", "exponential", "polynomial", "reverse", "random"] {
            methods.push(json!({ "name": name, "pdr": { "decay": decay, "alpha": 0.5 } }));
        }
        for decay in ["slope", "entropy_sample"] {
            methods.push(json!({ "name": name, "pdr": { "decay": decay } }));
        }
    }
    methods
}

/// Twenty alphas and ten ks.
fn sweep() -> Value {
    let alphas: Vec<f64> = (1..=20).map(|step| f64::from(step) / 20.0).collect();
    let ks: Vec<f64> = (1..=10).map(|step| f64::from(step) / 10.0).collect();
    json!({ "name": "min_k", "k": ks, "pdr": { "decay": "linear", "alpha": alphas }, "label": "swept" })
}

/// Forward and cached passes of a request that every method of has a score.
async fn passes(app: &App, inputs: &Value, methods: &[Value]) -> (u64, u64) {
    let answer = app.score(&json!({ "inputs": inputs, "methods": methods })).await;
    for result in results(&answer) {
        assert_eq!(result["errors"], json!([]));
        assert_eq!(result["scores"].as_object().unwrap().len(), answer["methods"].as_array().unwrap().len());
    }
    let usage = |field: &str| answer["usage"][field].as_u64().unwrap();
    (usage("forward_passes"), usage("cached_passes"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_runs_once_on_each_model_however_many_methods_look_at_it() {
    let app = serve(&[TARGET, REFERENCE]).await;
    assert_eq!(passes(&app, &json!(TEXT), &methods()).await, (3, 0), "target, reference and lower-cased");
    assert_eq!(passes(&app, &json!(TEXT), &methods()).await, (0, 3));
    let other = json!("Another Text, of which nothing is known yet.");
    let swept: Vec<Value> = methods().into_iter().chain([sweep()]).collect();
    assert_eq!(passes(&app, &other, &swept).await, (3, 0), "two hundred more methods and no more passes");
    assert_eq!(passes(&app, &json!("a single method"), &[sweep()]).await, (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_same_runs_once() {
    let app = serve(&[TARGET, REFERENCE]).await;
    let same = json!([TEXT, TEXT, { "id": "again", "text": TEXT }]);
    assert_eq!(passes(&app, &same, &methods()).await, (3, 0), "duplicates count once");
    assert_eq!(passes(&app, &same, &methods()).await, (0, 3));
    let lower = json!("a text that is lower-case already");
    assert_eq!(passes(&app, &lower, &methods()).await, (2, 0), "it is its own lower-cased text");
    // One text is what another is when lower-cased.
    let pair = json!(["ONE of the two", "one of the two"]);
    assert_eq!(passes(&app, &pair, &["loss".into(), "lowercase".into()]).await, (2, 0));
    // A model as its own reference differs from itself by nothing.
    let own = json!({ "name": "ref", "reference": TARGET, "label": "own" });
    let answer = app.score(&json!({ "inputs": "nothing is as like", "methods": ["loss", own] })).await;
    assert_eq!((&answer["usage"]["forward_passes"], &results(&answer)[0]["scores"]["own"]), (&json!(1), &json!(0.0)));
    // The reference model's own scores are known from its work as a reference.
    let answer = app.score(&json!({ "model": REFERENCE, "inputs": TEXT, "methods": ["loss"] })).await;
    assert_eq!((&answer["usage"]["forward_passes"], &answer["usage"]["cached_passes"]), (&json!(0), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_and_prefixes_run_once_each() {
    let app = serve(&[TARGET, "bert-mlm"]).await;
    let inputs = json!([{ "text": "the cat sat", "neighbors": ["the dog sat", "the cat ran", "the dog sat"] }]);
    let decayed = json!({ "name": "neighbor", "pdr": { "decay": "linear", "alpha": 1.0 } });
    assert_eq!(passes(&app, &inputs, &["neighbor".into(), decayed, "loss".into()]).await, (3, 0));
    let recall = |align: &str| json!({ "name": "recall", "prefix": ["rain fell"], "align": align });
    let con_recall = json!({ "name": "con_recall", "non_members": ["rain fell"], "members": ["the sun rose"] });
    let methods = [recall("shared"), recall("official"), con_recall];
    assert_eq!(passes(&app, &json!("a text behind others"), &methods).await, (3, 0), "alone and after two prefixes");
    // Nine words are masked, and what comes of it is known afterwards, for every method with that generator.
    let text = json!("The quick brown fox jumps over the lazy dog.");
    let generated = json!({ "name": "neighbor", "generator": { "model": "bert-mlm", "count": 5 } });
    let (forward, cached) = passes(&app, &text, std::slice::from_ref(&generated)).await;
    assert_eq!(cached, 0);
    let decayed = json!({ "name": "neighbor", "generator": { "model": "bert-mlm", "count": 5 },
        "pdr": { "decay": "exponential", "alpha": 0.1 } });
    assert_eq!(passes(&app, &text, &[generated, decayed]).await, (0, forward));
}
