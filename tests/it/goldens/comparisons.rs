//! Reports of audits on methods and groups, against statistics over scores that are requested one by one.

use super::audits::{MODELS, audit, label, labelled};
use super::rig::{ROUNDING, results, serve};
use mia::statistics::{Bootstrap, BootstrapColumn, LabelledScore, auroc, bootstrap};
use serde_json::{Value, json};

/// The number of a report, or what it is a part of.
fn assert_close(what: &str, got: &Value, want: f64) {
    assert!((got.as_f64().unwrap() - want).abs() < ROUNDING, "{what}: {got} instead of {want}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_with_weights_is_compared_with_itself_without() {
    let app = serve(&MODELS).await;
    let settings = Bootstrap { replicates: 200, seed: 11, confidence: 0.9 };
    // A text that leaves the reference no room: it has a loss, and no `ref`.
    let linear = json!({ "decay": "linear", "alpha": 1.0 });
    let methods = json!([{ "name": "ref", "pdr": linear, "label": "decayed" },
        { "name": "recall", "prefix": ["and so on ".repeat(10)], "pdr": linear, "label": "recall" }, "loss"]);
    let mut samples = labelled();
    samples[3]["text"] = json!("rain ".repeat(40));
    samples[3]["id"] = json!("long");
    let body = json!({ "samples": samples, "methods": methods,
        "metrics": { "fpr_targets": [0.1], "bootstrap": settings } });
    let found = audit(&app, &body).await;
    let report = &found["results"];
    assert_eq!(
        report["samples"]["excluded"],
        json!([{ "index": 3, "id": "long", "label": "recall", "code": "too_long" }])
    );

    let texts: Vec<&Value> = samples.iter().map(|sample| &sample["text"]).collect();
    let plain = json!(["ref", { "name": "recall", "prefix": ["and so on ".repeat(10)] }]);
    let asked = [plain.as_array().unwrap().clone(), methods.as_array().unwrap().clone()].concat();
    let answer = app.score(&json!({ "inputs": texts, "methods": asked })).await;
    let labels: Vec<&str> =
        answer["methods"].as_array().unwrap().iter().map(|m| m["label"].as_str().unwrap()).collect();
    let of = |label: &str| -> Vec<Option<f64>> {
        results(&answer).iter().map(|result| result["scores"][label].as_f64()).collect()
    };
    let members: Vec<bool> = (0..texts.len()).map(label).collect();
    let area = |scores: &[Option<f64>]| {
        let scored =
            scores.iter().zip(&members).filter_map(|(score, &member)| Some(LabelledScore { score: (*score)?, member }));
        auroc(&scored.collect::<Vec<_>>()).unwrap()
    };
    for (at, (label, baseline)) in [("decayed", labels[0]), ("recall", labels[1])].into_iter().enumerate() {
        let (scores, base) = (of(label), of(baseline));
        let method = &report["methods"][at];
        assert_eq!((&method["label"], &method["scored"]), (&json!(label), &json!(30 - at)));
        assert_close("auroc", &method["auroc"], area(&scores));
        let versus = &method["versus_baseline"];
        assert_eq!(versus["baseline"], baseline, "unasked");
        assert_close("delta", &versus["delta"], area(&scores) - area(&base));
        // The same draws for both, and the same as the crate's own bootstrap over these scores.
        let columns =
            [BootstrapColumn { scores: &scores, baseline: Some(1) }, BootstrapColumn { scores: &base, baseline: None }];
        let drawn = bootstrap(&members, &[], &columns, &[0.1], &settings, &|| true).remove(0);
        assert_eq!(method["bootstrap"], serde_json::to_value(&drawn.summary).unwrap());
        let paired = drawn.versus_baseline.unwrap();
        assert_eq!(versus["p_value"].as_f64(), paired.p_value);
        assert_eq!(versus["p_value_raw"].as_f64(), paired.p_value_raw);
        assert_eq!(versus["interval"], json!(paired.interval));
        let kept = 200.0 - paired.discarded as f64;
        let raw = versus["p_value_raw"].as_f64().unwrap();
        assert_close("p", &versus["p_value"], (1.0 + raw * kept) / (1.0 + kept));
        assert!((0.0..=1.0).contains(&raw));
    }
    assert!(
        report["methods"][2].get("versus_baseline").is_none() && report["methods"][2]["bootstrap"]["auroc"].is_object()
    );
    assert_eq!(
        report["provenance"]["request"]["metrics"]["bootstrap"],
        json!({ "replicates": 200, "seed": 11, "confidence": 0.9 })
    );

    // The same again is the same; without a bootstrap there is a difference and no p.
    assert_eq!(audit(&app, &body).await["results"]["methods"], report["methods"]);
    let mut without = body.clone();
    without["metrics"]["bootstrap"] = Value::Null;
    let without = audit(&app, &without).await;
    let method = &without["results"]["methods"][0];
    assert!(method.get("bootstrap").is_none() && method["versus_baseline"].get("p_value").is_none());
    assert_eq!(method["versus_baseline"]["delta"], report["methods"][0]["versus_baseline"]["delta"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_reported_as_an_audit_of_its_own_would_be() {
    let app = serve(&MODELS).await;
    let group = |at: usize| match (at % 5, at % 2) {
        (0, _) => None,
        (_, 0) => Some("even"),
        _ => Some("odd"),
    };
    let mut samples = labelled();
    for (at, sample) in samples.iter_mut().enumerate() {
        if let Some(group) = group(at) {
            sample["group"] = json!(group);
        }
    }
    let methods =
        json!(["loss", { "name": "min_k", "pdr": { "decay": "reverse", "alpha": 0.5 }, "label": "reversed" }]);
    let metrics = json!({ "fpr_targets": [0.2], "bootstrap": { "replicates": 50 }, "roc": true });
    let body = |samples: &[Value]| json!({ "samples": samples, "methods": methods, "metrics": metrics });
    let found = audit(&app, &body(&samples)).await;
    let groups = found["results"]["groups"].as_array().unwrap();
    assert_eq!(groups.iter().map(|group| &group["group"]).collect::<Vec<_>>(), ["odd", "even"], "as they appear");
    for found in groups {
        let own: Vec<Value> = samples.iter().filter(|sample| sample["group"] == found["group"]).cloned().collect();
        let alone = &audit(&app, &body(&own)).await["results"];
        for (found, alone) in found["methods"].as_array().unwrap().iter().zip(alone["methods"].as_array().unwrap()) {
            // The parameters stand but once, with the methods of the whole audit.
            let findings = found.as_object().unwrap();
            // Adjusted for the methods of a whole audit.
            let mut alone = alone.clone();
            alone["versus_baseline"].as_object_mut().map(|versus| versus.remove("p_value_adjusted"));
            assert!(findings.iter().all(|(field, value)| alone[field] == *value), "{found} against {alone}");
            assert!(
                findings.contains_key("bootstrap") && findings.contains_key("auroc") && findings.contains_key("roc")
            );
        }
        for count in ["total", "members", "non_members"] {
            assert_eq!(found[count], alone["samples"][count]);
        }
        // The verdict is about the whole audit.
        let warnings = alone["warnings"].as_array().unwrap().iter().filter(|warning| warning["code"] != "no_power");
        assert_eq!(found["warnings"], warnings.cloned().collect::<Value>());
    }
    let all = &found["results"]["samples"];
    assert_eq!((&all["total"], &all["members"]), (&json!(30), &json!(20)));
    let none = audit(&app, &body(&labelled())).await;
    assert!(none["results"].get("groups").is_none());
    // Permutations are within groups.
    let without_tests = |report: &Value| {
        let mut methods = report["results"]["methods"].clone();
        for method in methods.as_array_mut().unwrap() {
            method
                .as_object_mut()
                .unwrap()
                .retain(|field, _| !["p_value", "p_value_adjusted", "control"].contains(&&**field));
        }
        methods
    };
    assert_eq!(without_tests(&none), without_tests(&found));
}
