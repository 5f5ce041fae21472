//! Parts of an audit that the tables and figures of the PDR paper need, besides each method's own numbers.

use crate::common::app::App;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Labelled samples of different lengths in two groups of both classes and one of members alone; the last has no group.
fn samples() -> Vec<Value> {
    let words = ["the", "river", "town", "grew", "quickly", "and", "merchants", "built", "42", "houses"];
    let text = |n: usize| (0..6 + n % 5).map(|i| words[(n * 3 + i * i) % words.len()]).collect::<Vec<_>>().join(" ");
    let sample = |n: usize| {
        let group = if n % 7 == 1 { "members" } else { ["even", "odd"][n / 2 % 2] };
        json!({ "text": text(n), "label": n % 7 == 1 || n % 2 == 1, "group": group })
    };
    let mut samples: Vec<Value> = (0..40).map(sample).collect();
    samples.push(json!({ "text": "A text without a group.", "label": false }));
    samples
}

fn request(methods: Value, metrics: Value) -> Value {
    json!({ "samples": samples(), "methods": methods, "metrics": metrics })
}

/// The results of an audit.
async fn results(app: &App, request: &Value) -> Value {
    app.audit(request).await.ok()["results"].clone()
}

/// The tokens of every sample that have a log-probability.
async fn scored_tokens(app: &App, methods: Value) -> Vec<Vec<Value>> {
    let inputs: Vec<Value> = samples().iter().map(|sample| sample["text"].clone()).collect();
    let answer = app.score(&json!({ "inputs": inputs, "methods": methods, "details": ["tokens"] })).await;
    let tokens = |result: &Value| -> Vec<Value> {
        let tokens = result["tokens"].as_array().unwrap().iter();
        tokens.filter(|token| token["lp"].is_number()).cloned().collect()
    };
    answer["results"].as_array().unwrap().iter().map(tokens).collect()
}

fn is_member(sample: &Value) -> bool {
    sample["label"] == true
}

fn is_close(a: &Value, b: f64) -> bool {
    (a.as_f64().unwrap() - b).abs() < 1e-12
}

#[tokio::test(flavor = "multi_thread")]
async fn the_macro_mean_is_over_groups_of_both_classes() {
    let app = App::start().await;
    let metrics = json!({ "average": ["group"], "fpr_targets": [0.1, 0.5], "bootstrap": null });
    let results = results(&app, &request(json!(["loss", "min_k"]), metrics)).await;
    let groups: Vec<&str> =
        results["groups"].as_array().unwrap().iter().map(|g| g["group"].as_str().unwrap()).collect();
    assert_eq!(groups, ["even", "members", "odd"]);
    for (place, method) in results["methods"].as_array().unwrap().iter().enumerate() {
        let average = &method["average"]["group"];
        assert_eq!((&average["groups"], &average["left_out"]), (&json!(2), &json!(1)));
        let of_group = |group: usize| &results["groups"][group]["methods"][place];
        let mean = |number: &dyn Fn(&Value) -> f64| (number(of_group(0)) + number(of_group(2))) / 2.0;
        assert!(is_close(&average["auroc"], mean(&|method| method["auroc"].as_f64().unwrap())), "{average}");
        for (target, fpr) in [0.1, 0.5].into_iter().enumerate() {
            let tpr = mean(&|method| method["tpr_at_fpr"][target]["tpr"].as_f64().unwrap());
            let rate = &average["tpr_at_fpr"][target];
            assert!(rate["fpr"] == fpr && is_close(&rate["tpr"], tpr), "{average}");
        }
        assert!(of_group(1)["auroc"].is_null());
    }
    assert_eq!(results["provenance"]["request"]["metrics"]["average"], json!(["group"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_by_group_and_over_texts_of_full_length() {
    let app = App::start().await;
    let tokens = scored_tokens(&app, json!(["loss"])).await;
    let lengths: Vec<usize> = tokens.iter().map(Vec::len).collect();
    let positions = lengths.iter().sum::<usize>() / lengths.len();
    assert!(lengths.iter().any(|length| *length < positions), "{lengths:?}");
    let profile = json!({ "by_group": true, "positions": positions });
    let asked = request(json!(["loss"]), json!({ "position_profile": profile, "bootstrap": null }));
    let results = results(&app, &asked).await;

    let samples = samples();
    let mean = |position: usize, label: bool, group: Option<&str>| {
        let of_class = tokens.iter().zip(&samples).filter(|(tokens, sample)| {
            tokens.len() >= positions
                && is_member(sample) == label
                && group.is_none_or(|group| sample["group"] == group)
        });
        let lps: Vec<f64> = of_class.map(|(tokens, _)| tokens[position]["lp"].as_f64().unwrap()).collect();
        (lps.len(), lps.iter().sum::<f64>() / lps.len() as f64)
    };
    let check = |rows: &Value, group: Option<&str>| {
        assert_eq!(rows.as_array().unwrap().len(), positions, "{rows}");
        for (position, row) in rows.as_array().unwrap().iter().enumerate() {
            for (label, class) in [(true, "members"), (false, "non_members")] {
                let (count, mean) = mean(position, label, group);
                match count {
                    0 => assert!(row.get(class).is_none(), "{row}"),
                    _ => assert!(row[class]["count"] == count && is_close(&row[class]["mean_lp"], mean), "{row}"),
                }
            }
        }
    };
    check(&results["position_profile"], None);
    for group in results["groups"].as_array().unwrap() {
        check(&group["position_profile"], group["group"].as_str());
    }
    let plain = self::results(&app, &request(json!(["loss"]), json!({ "bootstrap": null }))).await;
    assert_eq!(plain["position_profile"].as_array().unwrap().len(), *lengths.iter().max().unwrap());
    assert!(plain["groups"][0].get("position_profile").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_that_are_selected_most() {
    let app = App::start().await;
    let linear = json!({ "decay": "linear", "alpha": 1 });
    let methods = json!(["loss", "min_k", { "name": "min_k", "pdr": linear }, { "name": "min_k_plus_plus", "k": 0.5 }]);
    let asked = request(methods.clone(), json!({ "selected_tokens": 4, "bootstrap": null }));
    let results = results(&app, &asked).await;
    let tokens = scored_tokens(&app, methods).await;
    let selections = results["selected_tokens"].as_array().unwrap();
    let labels = [json!(["min_k(k=0.2)", "min_k(k=0.2)+linear(alpha=1)"]), json!(["min_k_plus_plus(k=0.5)"])];
    assert_eq!(selections.iter().map(|selection| selection["methods"].clone()).collect::<Vec<_>>(), labels);
    for selection in selections {
        for (class, label) in [("members", true), ("non_members", false)] {
            // By id: how often it is selected, how often it occurs, and its text.
            let mut counts = BTreeMap::<u64, (u64, u64, String)>::new();
            for (tokens, sample) in tokens.iter().zip(samples()) {
                for token in tokens.iter().filter(|_| is_member(&sample) == label) {
                    let count = counts.entry(token["id"].as_u64().unwrap()).or_default();
                    let selected = token["selected"].as_array().unwrap().contains(&selection["methods"][0]);
                    *count = (count.0 + u64::from(selected), count.1 + 1, token["text"].as_str().unwrap().to_owned());
                }
            }
            let total: u64 = counts.values().map(|(selected, ..)| selected).sum();
            let mut expected: Vec<_> = counts.into_iter().filter(|(_, (selected, ..))| *selected > 0).collect();
            expected.sort_by_key(|(id, (selected, ..))| (std::cmp::Reverse(*selected), *id));
            let expected: Vec<Value> = expected
                .into_iter()
                .take(4)
                .map(|(id, (count, occurrences, text))| {
                    json!({ "id": id, "text": text, "count": count, "occurrences": occurrences })
                })
                .collect();
            assert_eq!(selection[class], json!({ "selected": total, "tokens": expected }));
        }
        assert!(selection.get("all").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_presets_of_the_ablation_and_of_truncation() {
    let app = App::start().await;
    let ablation = json!({ "preset": "paper_ablation", "length": 32 });
    let methods = json!([ablation, { "preset": "paper_truncation" }]);
    let metrics = json!({ "bootstrap": { "replicates": 20 }, "selected_tokens": 1 });
    let mut asked = request(methods, metrics);
    let problem = app.post("/v1/audits", &asked).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/metrics/selected_tokens");
    asked["metrics"] = json!({ "bootstrap": { "replicates": 20 } });
    let results = results(&app, &asked).await;
    let methods = results["methods"].as_array().unwrap();
    let labels: Vec<&str> = methods.iter().map(|method| method["label"].as_str().unwrap()).collect();
    // The plain methods are in both; at 32 words linear decay has another alpha.
    assert_eq!(labels.len(), 2 * 9 + 2 * 10 + 4 * 10);
    let number = |label: &str| {
        let method = methods.iter().find(|method| method["label"] == label).unwrap();
        method["auroc"].as_f64().unwrap()
    };
    assert!(number("loss+entropy_dataset").is_finite() && number("min_k(k=0.2,truncate=0.9)").is_finite());

    // The catalogue says which presets need an audit.
    let catalogue = app.get("/v1/methods").await.ok();
    let audits_only: Vec<&Value> =
        catalogue["presets"].as_array().unwrap().iter().filter(|preset| preset["audit_only"] == true).collect();
    assert_eq!(audits_only.len(), 1);
    assert_eq!(audits_only[0]["name"], "paper_ablation");
    let refused = app.post("/v1/score", &json!({ "inputs": "A text.", "methods": [ablation] })).await;
    assert_eq!(refused.pointers(), ["/methods/0/preset"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_audit_cannot_report_is_refused_by_name() {
    let app = App::start().await;
    for (metrics, pointer, words) in [
        (json!({ "average": ["model"] }), "/metrics/average/0", "`group`"),
        (json!({ "average": "group" }), "/metrics/average", "expected a sequence"),
        (json!({ "position_profile": { "positions": 5000 } }), "/metrics/position_profile/positions", "1 to 4096"),
        (json!({ "position_profile": { "by": "group" } }), "/metrics/position_profile/by", "by_group"),
        (json!({ "selected_tokens": 0 }), "/metrics/selected_tokens", "1 to 1000"),
        (json!({ "selected_tokens": 3 }), "/metrics/selected_tokens", "`min_k_plus_plus`"),
    ] {
        let problem = app.post("/v1/audits", &request(json!(["loss"]), metrics)).await.problem(422);
        let fault = &problem["errors"][0];
        assert_eq!((&fault["pointer"], problem["errors"].as_array().unwrap().len()), (&json!(pointer), 1), "{problem}");
        assert!(fault["detail"].as_str().unwrap().contains(words), "{fault}");
    }
    let mut without_groups = request(json!(["loss"]), json!({ "average": ["group"] }));
    for sample in without_groups["samples"].as_array_mut().unwrap() {
        sample.as_object_mut().unwrap().remove("group");
    }
    let problem = app.post("/v1/audits", &without_groups).await;
    assert_eq!(problem.pointers(), ["/metrics/average"]);
}
