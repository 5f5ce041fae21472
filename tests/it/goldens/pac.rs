//! The method `pac`, against scores by transformers.

use super::rig::{code, results, score, serve};
use crate::common::app::GOLDEN;
use mia::methods::{Fraction, WordSwaps};
use serde_json::{Value, json};

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../fixtures/pac.json")).unwrap()
}

#[test]
fn copies_are_those_of_the_documentation() {
    for case in cases() {
        let share = Fraction::new(case["settings"]["swaps"].as_f64().unwrap()).unwrap();
        let [copies, seed] = ["copies", "seed"].map(|name| case["settings"][name].as_u64().unwrap());
        let swaps = WordSwaps { share, copies: copies as usize, seed };
        assert_eq!(json!(swaps.apply(case["text"].as_str().unwrap()).unwrap()), case["copies"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_are_those_of_transformers() {
    let app = serve(&[GOLDEN]).await;
    for case in cases() {
        let mut method = json!({ "name": "pac", "label": "pac" });
        method.as_object_mut().unwrap().extend(case["settings"].as_object().unwrap().clone());
        let answer = app.score(&json!({ "inputs": case["text"], "methods": [method] })).await;
        let (scored, expected) = (score(&results(&answer)[0], "pac"), case["score"].as_f64().unwrap());
        // Logits in f32 on both sides, summed in other orders.
        assert!((scored - expected).abs() < 1e-5, "{scored} where transformers has {expected}: {case}");
        let copies = case["settings"]["copies"].as_u64().unwrap();
        assert!(answer["usage"]["forward_passes"].as_u64().unwrap() <= 1 + copies, "{}", answer["usage"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_word_has_nothing_to_swap() {
    let app = serve(&[GOLDEN]).await;
    let answer = app.score(&json!({ "inputs": "Fallowfield.", "methods": ["pac", "loss"] })).await;
    let result = &results(&answer)[0];
    assert_eq!(code(result, "pac(low=0.3,high=0.05,swaps=0.3,copies=5,seed=0)"), "too_few_words");
    assert!(result["scores"]["loss"].is_number());
}
