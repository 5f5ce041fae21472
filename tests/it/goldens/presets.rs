//! The presets by their paper's parameters, with the goldens' scores.

use super::rig::{results, score, serve, texts};
use serde_json::{Value, json};

const TARGET: &str = "gptneox-parallel";
const REFERENCE: &str = "gptneox-sequential";

/// As for every golden in `reproduced.rs`; no sigma of this one is far below 1.
const TOLERANCE: f64 = 5e-5;

/// Where the golden has the score of a method, by its echo.
fn pointer(method: &Value) -> String {
    let name = match method["name"].as_str().unwrap() {
        "min_k" => "mink",
        "min_k_plus_plus" => "mink++",
        name => name,
    };
    let k = method["k"].as_f64();
    assert!(k.is_none_or(|k| k == 0.2), "{method}");
    let (pdr, key) = (&method["pdr"], k.map_or(name.to_owned(), |_| format!("{name}_0.2")));
    match pdr["decay"].as_str() {
        None => k.map_or(format!("/{name}"), |_| format!("/{name}/0.2")),
        Some("slope") => format!("/ablation/slope_linear/{key}"),
        Some(decay) => format!("/pdr/{decay}/{:?}/{key}", pdr["alpha"].as_f64().unwrap()),
    }
}

/// The alphas of the paper: linear, exponential, polynomial.
fn alphas(length: Option<u64>, name: &str) -> [f64; 3] {
    let steep = matches!(name, "ref" | "min_k_plus_plus");
    match length {
        Some(32) => [0.1, if steep { 0.02 } else { 0.002 }, 0.1],
        Some(_) => [1.0, if steep { 0.02 } else { 0.002 }, 2.0],
        None => [1.0, 0.002, 0.1],
    }
}

fn assert_weightings(methods: &[Value], length: Option<u64>, bases: &[&str]) {
    for name in bases {
        let own: Vec<&Value> =
            methods.iter().filter(|method| method["name"] == *name).map(|method| &method["pdr"]).collect();
        let [linear, exponential, polynomial] = alphas(length, name);
        let decay = |at: usize, name: &str, alpha: f64| {
            assert_eq!((&own[at]["decay"], &own[at]["alpha"]), (&json!(name), &json!(alpha)), "{own:?}");
        };
        assert!(own.len() == 5 && own[0].is_null() && own[1]["decay"] == "slope", "{own:?}");
        decay(2, "linear", linear);
        decay(3, "exponential", exponential);
        decay(4, "polynomial", polynomial);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_score_of_a_preset_is_the_goldens() {
    let app = serve(&[TARGET, REFERENCE]).await;
    let fitting = |text: &Value| text["T"].as_u64().is_some_and(|n| (5..128).contains(&n));
    let texts: Vec<Value> = texts(TARGET).into_iter().filter(fitting).collect();
    let inputs: Vec<&Value> = texts.iter().map(|text| &text["text"]).collect();
    let wikimia = |length: u64| (json!({ "preset": "paper_wikimia", "length": length }), Some(length), 22);
    let mut compared = 0;
    for (preset, length, count) in
        [wikimia(32), wikimia(64), wikimia(128), (json!({ "preset": "paper_mimir" }), None, 17)]
    {
        let answer = app.score(&json!({ "inputs": inputs, "methods": [preset] })).await;
        let methods = answer["methods"].as_array().unwrap();
        assert_eq!(methods.len(), count);
        let bases = ["loss", "min_k", "min_k_plus_plus", "ref"];
        assert_weightings(methods, length, if length.is_some() { &bases } else { &bases[..3] });
        for (text, result) in texts.iter().zip(results(&answer)) {
            for method in methods {
                let want = text["scores"].pointer(&pointer(method)).and_then(Value::as_f64).unwrap();
                let got = score(result, method["label"].as_str().unwrap());
                assert!((got - want).abs() < TOLERANCE, "{method} of {}: {got} instead of {want}", text["name"]);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, (3 * 22 + 17) * texts.len());
    // Neighbours are among the comparisons where there are some.
    let input = json!([{ "text": "a text", "neighbors": ["a test"] }]);
    let preset = json!({ "preset": "paper_wikimia", "length": 64 });
    let answer = app.score(&json!({ "inputs": input, "methods": [preset] })).await;
    assert_eq!(answer["methods"].as_array().unwrap().len(), 23);
    assert!(score(&results(&answer)[0], "neighbor").is_finite());
}
