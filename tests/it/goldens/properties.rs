//! Properties that hold for every request.

use super::rig::{results, score, settings, text};
use crate::common::app::App;
use pdr_audit::config::ByteSize;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

const MODELS: [&str; 3] = ["gptneox-parallel", "gptneox-sequential", "bert-mlm"];

/// Texts of many lengths.
fn texts() -> Vec<String> {
    let golden =
        ["sentence_short", "sentence_medium", "accents", "emoji", "two_tokens", "repeated_tokens", "uppercase"];
    golden.map(|name| text(MODELS[0], name)).into()
}

/// Methods without weights that may take them, each under its own label.
fn weightable() -> Vec<Value> {
    let recall =
        |align: &str| json!({ "name": "recall", "prefix": ["rain fell", "all night"], "align": align, "label": align });
    vec![
        json!({ "name": "loss", "label": "loss" }),
        json!({ "name": "zlib", "label": "zlib" }),
        json!({ "name": "lowercase", "label": "lowercase" }),
        json!({ "name": "ref", "label": "ref" }),
        json!({ "name": "neighbor", "label": "neighbor" }),
        json!({ "name": "min_k", "k": 0.3, "label": "min_k" }),
        json!({ "name": "min_k_plus_plus", "k": 0.7, "label": "min_k_plus_plus" }),
        recall("shared"),
        recall("official"),
        json!({ "name": "con_recall", "non_members": ["rain fell"], "members": ["the sun"], "label": "con_recall" }),
        json!({ "name": "loss", "truncate": 0.4, "label": "truncated" }),
    ]
}

fn with(method: &Value, label: &str, pdr: Value) -> Value {
    let mut method = method.clone();
    method["label"] = json!(format!("{} {label}", method["label"].as_str().unwrap()));
    method["pdr"] = pdr;
    method
}

/// Every method plain, with a decay, in random order and by slope, and what takes no weights.
fn methods() -> Vec<Value> {
    let mut methods = vec![
        json!({ "name": "gap_k", "label": "gap_k" }),
        json!({ "name": "surp", "max_entropy": 20.0, "label": "surp" }),
    ];
    for method in weightable() {
        methods.push(with(&method, "polynomial", json!({ "decay": "polynomial", "alpha": 0.5 })));
        methods.push(with(&method, "random", json!({ "decay": "random", "alpha": 0.5, "seed": 7 })));
        methods.push(with(&method, "slope", json!({ "decay": "slope" })));
        methods.push(method);
    }
    methods
}

fn input(text: &str) -> Value {
    json!({ "text": text, "neighbors": [format!("{text} too"), "a neighbour of all"] })
}

/// Without a cache, so that every request computes anew.
async fn start() -> App {
    let mut settings = settings(&MODELS);
    settings.engine.cache = ByteSize::b(0);
    // Several batches for most requests.
    settings.engine.max_batch_tokens = Some(64);
    App::start_as_it_is(&settings).await
}

async fn ask(app: &App, texts: &[&str], methods: &[Value]) -> Vec<Map<String, Value>> {
    let inputs: Vec<Value> = texts.iter().map(|text| input(text)).collect();
    let answer = app.score(&json!({ "inputs": inputs, "methods": methods })).await;
    assert!(results(&answer).iter().all(|result| result["errors"] == json!([])), "{answer}");
    results(&answer).iter().map(|result| result["scores"].as_object().unwrap().clone()).collect()
}

/// Nor on which others there are.
#[test]
fn a_score_does_not_depend_on_the_order_of_texts_or_methods() {
    let (runtime, texts, methods) = (Runtime::new().unwrap(), texts(), methods());
    let app = runtime.block_on(start());
    let alone: Vec<Map<String, Value>> =
        texts.iter().map(|text| runtime.block_on(ask(&app, &[text], &methods)).remove(0)).collect();
    let orders = (prop::collection::vec(0..texts.len(), 1..8), subsequence(methods, 1..12).prop_shuffle());
    let check = |(places, methods): (Vec<usize>, Vec<Value>)| {
        let listed: Vec<&str> = places.iter().map(|&place| texts[place].as_str()).collect();
        let answers = runtime.block_on(ask(&app, &listed, &methods));
        for (place, answer) in places.iter().zip(answers) {
            let labels: Vec<&str> = methods.iter().map(|method| method["label"].as_str().unwrap()).collect();
            prop_assert_eq!(answer.keys().collect::<Vec<_>>(), labels, "in the order of the methods");
            for (label, score) in answer {
                prop_assert_eq!(&score, &alone[*place][&label], "{} of {:?}", label, texts[*place]);
            }
        }
        Ok(())
    };
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&orders, check).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alpha_of_zero_is_the_base_bit_for_bit() {
    let app = start().await;
    let texts = texts();
    let listed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let zero = |family: &str| json!({ "decay": family, "alpha": 0.0 });
    let reordered = |decay: &str| json!({ "decay": decay, "family": "exponential", "alpha": 0.0 });
    let pdrs = [zero("linear"), zero("exponential"), reordered("reverse"), reordered("random")];
    let decayed = |method: &Value| {
        pdrs.iter().enumerate().map(|(at, pdr)| with(method, &at.to_string(), pdr.clone())).collect::<Vec<_>>()
    };
    let methods: Vec<Value> =
        weightable().iter().flat_map(|method| [vec![method.clone()], decayed(method)].concat()).collect();
    let mut compared = 0;
    for scores in ask(&app, &listed, &methods).await {
        for base in weightable() {
            let label = base["label"].as_str().unwrap();
            for (at, pdr) in pdrs.iter().enumerate() {
                let bits = |label: &str| scores[label].as_f64().unwrap().to_bits();
                assert_eq!(bits(&format!("{label} {at}")), bits(label), "{label} with {pdr}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 7 * 11 * 4);
}

/// A token more at the end changes nothing before it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_truncated_away_does_not_matter() {
    let app = start().await;
    let words = |count: usize| vec!["!"; count].join("\n");
    let tokens = async |text: &str| {
        let answer = app.score(&json!({ "inputs": text, "methods": ["loss"] })).await;
        results(&answer)[0]["scored_tokens"].as_u64().unwrap()
    };
    let (short, long) = (words(20), words(40));
    let share = tokens(&short).await as f64 / tokens(&long).await as f64;
    let pdr = json!({ "decay": "linear", "alpha": 1.0 });
    for name in ["loss", "ref", "min_k", "min_k_plus_plus"] {
        let whole = json!({ "name": name, "pdr": pdr, "label": "it" });
        let cut = json!({ "name": name, "truncate": share, "pdr": pdr, "label": "it" });
        let whole = app.score(&json!({ "inputs": short, "methods": [whole] })).await;
        let cut = app.score(&json!({ "inputs": long, "methods": [cut] })).await;
        assert_eq!(score(&results(&cut)[0], "it").to_bits(), score(&results(&whole)[0], "it").to_bits(), "{name}");
    }
}
