//! Audits: their scores and profiles, against tokens that are asked for one by one.

use super::rig::{Local, assert_same, column, mean, results, score, serve};
use crate::common::app::App;
use serde_json::{Value, json};

pub const MODELS: [&str; 2] = ["gptneox-parallel", "gptneox-sequential"];

/// Thirty texts of different lengths.
pub fn texts() -> Vec<String> {
    let words = ["the", "river", "Town", "grew", "quickly", "and", "merchants", "built", "42", "houses"];
    let text = |at: usize| (0..5 + at % 7).map(|i| words[(at * 3 + i * i) % words.len()]).collect::<Vec<_>>().join(" ");
    (0..30).map(|at| format!("{at} {}", text(at))).collect()
}

/// True if the text is a member.
pub fn label(at: usize) -> bool {
    at % 3 != 1
}

/// The texts with their labels.
pub fn labelled() -> Vec<Value> {
    let numbered = texts().into_iter().enumerate();
    numbered.map(|(at, text)| json!({ "text": text, "label": u8::from(label(at)) })).collect()
}

/// An audit that ran to its end.
pub async fn audit(app: &App, body: &Value) -> Value {
    let audit = app.audit(body).await.ok();
    assert_eq!(audit["status"], "succeeded", "{}", audit["error"]);
    assert_eq!(audit["progress"]["done"], audit["progress"]["total"]);
    audit
}

/// The scores of an audit by sample.
async fn rows(app: &App, audit: &Value) -> Vec<Value> {
    let lines = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The tokens of every text.
async fn details(app: &App, texts: &[String]) -> Vec<Value> {
    let answer = app.score(&json!({ "inputs": texts, "methods": ["loss"], "details": ["tokens"] })).await;
    results(&answer).to_vec()
}

/// Log-probabilities and entropies of each text.
fn tokens(details: &[Value]) -> Vec<(Vec<f64>, Vec<f64>)> {
    let of = |result: &Value| (column(result, "lp"), column(result, "mu").into_iter().map(|mu| -mu).collect());
    details.iter().map(of).collect()
}

/// The means of some texts at each position, as a report lists them.
fn assert_profile(profile: &[Value], class: &str, texts: &[&(Vec<f64>, Vec<f64>)]) {
    let longest = texts.iter().map(|(lp, _)| lp.len()).max().unwrap();
    assert!(profile.len() >= longest);
    for (at, row) in profile.iter().enumerate() {
        assert_eq!(row["position"], at + 1);
        let there: Vec<_> = texts.iter().filter(|(lp, _)| lp.len() > at).collect();
        if there.is_empty() {
            assert!(row.get(class).is_none(), "{row}");
            continue;
        }
        assert_eq!(row[class]["count"], there.len());
        for (field, values) in [
            ("mean_lp", there.iter().map(|(lp, _)| lp[at]).collect::<Vec<_>>()),
            ("mean_entropy", there.iter().map(|(_, entropy)| entropy[at]).collect()),
        ] {
            assert_same(&format!("{class} {field} at {at}"), row[class][field].as_f64().unwrap(), mean(&values));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_labels_there_are_scores_and_a_profile_and_no_areas() {
    let app = serve(&MODELS).await;
    let texts = texts();
    let samples: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    let methods =
        json!(["loss", "lowercase", { "name": "ref", "pdr": { "decay": "linear", "alpha": 1.0 }, "label": "ref" }]);
    let found = audit(&app, &json!({ "samples": samples, "methods": methods })).await;
    let report = &found["results"];
    for method in report["methods"].as_array().unwrap() {
        assert_eq!(method["scored"], texts.len());
        for absent in ["auroc", "tpr_at_fpr", "bootstrap", "versus_baseline", "roc"] {
            assert!(method.get(absent).is_none(), "{absent} of {method}");
        }
    }
    let profile = report["position_profile"].as_array().unwrap();
    let tokens = tokens(&details(&app, &texts).await);
    assert_profile(profile, "all", &tokens.iter().collect::<Vec<_>>());
    assert!(profile.iter().all(|row| row.get("members").is_none() && row.get("non_members").is_none()));
    let alone = app.score(&json!({ "inputs": texts, "methods": methods })).await;
    for (row, result) in rows(&app, &found).await.iter().zip(results(&alone)) {
        assert_eq!(row["scores"], result["scores"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_of_each_class_is_the_mean_of_its_tokens() {
    let app = serve(&MODELS).await;
    let found = audit(&app, &json!({ "samples": labelled(), "methods": ["loss"] })).await;
    let profile = found["results"]["position_profile"].as_array().unwrap();
    let tokens = tokens(&details(&app, &texts()).await);
    for (class, member) in [("members", true), ("non_members", false)] {
        let of: Vec<_> =
            tokens.iter().enumerate().filter(|(at, _)| label(*at) == member).map(|(_, text)| text).collect();
        assert_profile(profile, class, &of);
    }
    assert!(profile.iter().all(|row| row.get("all").is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_by_the_entropy_of_a_dataset_are_those_of_its_texts() {
    let app = serve(&MODELS).await;
    let pdr = json!({ "decay": "entropy_dataset" });
    let methods = json!([{ "name": "loss", "pdr": pdr, "label": "loss by entropy" }, "loss",
        { "name": "min_k", "k": 0.4, "pdr": pdr, "label": "min_k by entropy" },
        { "name": "loss", "pdr": { "decay": "entropy_dataset", "normalize": true }, "label": "normalized" }]);
    // One text that has no token counts nowhere.
    let mut samples = labelled();
    samples.push(json!({ "text": "", "label": 1 }));
    let found = audit(&app, &json!({ "samples": samples, "methods": methods, "control": null })).await;

    let tokens = tokens(&details(&app, &texts()).await);
    let longest = tokens.iter().map(|(lp, _)| lp.len()).max().unwrap();
    let at_position =
        |at: usize| mean(&tokens.iter().filter_map(|(_, entropy)| entropy.get(at).copied()).collect::<Vec<_>>());
    let means: Vec<f64> = (0..longest).map(at_position).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let rows = rows(&app, &found).await;
    for ((lp, _), row) in tokens.iter().zip(&rows) {
        let weighted: Vec<f64> = lp.iter().zip(&means).map(|(lp, mean)| lp * mean / most).collect();
        let weights: f64 = means[..lp.len()].iter().map(|mean| mean / most).sum();
        let mut lowest: Vec<usize> = (0..lp.len()).collect();
        lowest.sort_by(|&a, &b| lp[a].total_cmp(&lp[b]));
        lowest.truncate(((lp.len() as f64 * 0.4) as usize).max(1));
        assert_same("loss", score(row, "loss by entropy"), mean(&weighted));
        assert_same(
            "min_k",
            score(row, "min_k by entropy"),
            mean(&lowest.iter().map(|&at| weighted[at]).collect::<Vec<_>>()),
        );
        assert_same("normalized", score(row, "normalized"), weighted.iter().sum::<f64>() / weights);
        assert_same("loss", score(row, "loss"), mean(lp));
    }
    assert_eq!((&rows[30]["scores"], &rows[30]["errors"][0]["code"]), (&json!({}), &json!("too_short")));
    let report = &found["results"];
    assert_eq!(report["samples"]["excluded"], json!([{ "index": 30, "code": "too_short" }]));
    assert_eq!(
        report["usage"]["tokens"].as_u64().unwrap() as usize,
        tokens.iter().map(|(lp, _)| lp.len()).sum::<usize>()
    );
    // The second round finds what the first one ran, duplicates too.
    let usage = |field: &str| report["usage"][field].as_u64().unwrap();
    assert_eq!((usage("forward_passes"), usage("cached_passes")), (30, 30));
    assert_eq!(report["methods"][0]["versus_baseline"]["baseline"], "loss");
    assert_eq!(report["methods"][2]["versus_baseline"]["baseline"], "min_k(k=0.4)");
    let labels: Vec<&Value> = report["methods"].as_array().unwrap().iter().map(|method| &method["label"]).collect();
    assert_eq!(labels, ["loss by entropy", "loss", "min_k by entropy", "normalized"], "in the order of the request");
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_bring_neighbours_along() {
    let app = serve(&["gptneox-parallel", "bert-mlm"]).await;
    let model = Local::open("gptneox-parallel");
    let neighbors = |text: &str| vec![format!("{text} twice"), text.to_uppercase()];
    let samples: Vec<Value> = texts()[..8]
        .iter()
        .enumerate()
        .map(|(at, text)| json!({ "text": text, "label": at % 2, "neighbors": neighbors(text) }))
        .collect();
    let generated =
        json!({ "name": "neighbor", "generator": { "model": "bert-mlm", "count": 2 }, "label": "generated" });
    let found = audit(&app, &json!({ "samples": samples, "methods": ["neighbor", generated] })).await;
    let alone = app.score(&json!({ "inputs": texts()[..8], "methods": [generated] })).await;
    let loss = |text: &str| mean(&model.lps(&model.ids(text)));
    for ((row, text), alone) in rows(&app, &found).await.iter().zip(texts()).zip(results(&alone)) {
        let around: Vec<f64> = neighbors(&text).iter().map(|text| loss(text)).collect();
        assert_same(&text, score(row, "neighbor"), loss(&text) - mean(&around));
        assert_eq!(row["scores"]["generated"], alone["scores"]["generated"]);
    }
    let others = &found["results"]["provenance"]["other_models"];
    assert_eq!((others.as_array().unwrap().len(), &others[0]["model"]), (1, &json!("bert-mlm")));
}
