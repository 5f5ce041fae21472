//! Scores through a server that has the numbers of a golden, which are those of the references.

use crate::common::app::{App, GOLDEN};
use crate::common::goldens::expected;
use serde_json::{Value, json};

/// The numbers of the golden have ten digits.
pub const DIGITS: f64 = 1e-9;

/// A method, and where its score stands among those of a text of the golden.
type WithScore = (&'static str, fn(&Value) -> &Value);

/// Methods that need log-probabilities alone.
fn methods() -> [WithScore; 7] {
    [
        (r#"{ "name": "loss" }"#, |scores| &scores["loss"]),
        (r#"{ "name": "zlib" }"#, |scores| &scores["zlib"]),
        (r#"{ "name": "min_k", "k": 0.2 }"#, |scores| &scores["mink"]["0.2"]),
        (r#"{ "name": "min_k", "k": 0.5 }"#, |scores| &scores["mink"]["0.5"]),
        (r#"{ "name": "loss", "pdr": { "decay": "linear", "alpha": 1.0 } }"#, |scores| {
            &scores["pdr"]["linear"]["1.0"]["loss"]
        }),
        (r#"{ "name": "min_k", "pdr": { "decay": "exponential", "alpha": 0.02 } }"#, |scores| {
            &scores["pdr"]["exponential"]["0.02"]["mink_0.2"]
        }),
        (r#"{ "name": "loss", "pdr": { "decay": "slope" } }"#, |scores| &scores["ablation"]["slope_linear"]["loss"]),
    ]
}

/// Scores the texts of the golden, compares the scores with those of the references, and returns the answer.
pub async fn assert_scores_of_golden(front: &App) -> Value {
    let golden = expected(GOLDEN);
    let texts: Vec<&Value> =
        golden["texts"].as_array().unwrap().iter().filter(|text| text["scores"].is_object()).collect();
    let inputs: Vec<&Value> = texts.iter().map(|text| &text["text"]).collect();
    let requests: Vec<Value> = methods().iter().map(|(request, _)| serde_json::from_str(request).unwrap()).collect();
    let answer = front.score(&json!({ "inputs": inputs, "methods": requests })).await;
    let mut compared = 0;
    for (text, result) in texts.iter().zip(answer["results"].as_array().unwrap()) {
        for ((request, score), method) in methods().iter().zip(answer["methods"].as_array().unwrap()) {
            let got = &result["scores"][method["label"].as_str().unwrap()];
            let (Some(want), Some(got)) = (score(&text["scores"]).as_f64(), got.as_f64()) else { continue };
            assert!(
                (got - want).abs() <= DIGITS * (1.0 + want.abs()),
                "{request}: {got}, not {want}, of {}",
                text["name"]
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
    answer
}
