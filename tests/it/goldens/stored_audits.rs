//! Audits as data: what is stored is what is run, a report is a function of what the run leaves, and neither depends on when
//! things happen.

use super::audits::texts;
use super::rig::settings;
use super::tokens::counts;
use crate::common::app::App;
use lm::hub::Hub;
use pdr_audit::app::start_scorer;
use pdr_audit::audits::{AuditOutcome, AuditRequest, AuditResults, build_report, run};
use pdr_audit::config::{ByteSize, Settings};
use pdr_audit::datasets::{Sample, SampleBlocks};
use pdr_audit::scorer::Scorer;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const MODEL: &str = "gptneox-parallel";
const MODELS: [&str; 4] = [MODEL, "gptneox-sequential", "llama-gqa", "bert-mlm"];

/// A scorer over the goldens, with counts of tokens of the first one in `place`. Its caches are empty.
fn scorer(place: &Path, change: impl FnOnce(&mut Settings)) -> Scorer {
    let mut settings = settings(&MODELS);
    settings.token_counts = vec![counts(MODEL, place).0];
    change(&mut settings);
    start_scorer(&settings, Hub::from_environment(|_| None)).unwrap()
}

/// Methods as they are stored: every kind of method, weights and selection.
fn methods() -> Value {
    let linear = json!({ "decay": "linear", "alpha": 0.3, "normalize": true });
    let random = json!({ "decay": "random", "family": "exponential", "alpha": 0.1, "seed": 7, "normalize": false });
    let before = json!({ "decay": "polynomial", "alpha": 2.5, "select": "before", "normalize": false });
    let dataset = json!({ "decay": "entropy_dataset", "normalize": false });
    json!([
        { "label": "loss", "name": "loss" },
        { "label": "loss by entropy", "name": "loss", "pdr": dataset },
        { "label": "zlib", "name": "zlib", "pdr": { "decay": "reverse", "family": "linear", "alpha": 1.0, "normalize": false } },
        { "label": "ref", "name": "ref", "reference": "gptneox-sequential", "pdr": dataset },
        { "label": "ref in its own ids", "name": "ref", "reference": "llama-gqa" },
        { "label": "lowercase", "name": "lowercase", "pdr": linear },
        { "label": "neighbor", "name": "neighbor" },
        { "label": "generated", "name": "neighbor", "generator": { "model": "bert-mlm", "count": 2 } },
        { "label": "min_k", "name": "min_k", "k": 0.37, "truncate": 0.9, "pdr": before },
        { "label": "min_k by entropy", "name": "min_k", "k": 0.1, "pdr": dataset },
        { "label": "min_k++", "name": "min_k_plus_plus", "k": 0.3, "pdr": random },
        { "label": "recall", "name": "recall", "prefix": ["It rained.", "A river."], "align": "official" },
        { "label": "con_recall", "name": "con_recall", "non_members": ["Snow."], "members": ["Sun."], "gamma": 0.7 },
        { "label": "gap_k", "name": "gap_k", "k": 0.2, "window": 4 },
        { "label": "surp", "name": "surp", "k": 0.4, "max_entropy": 50.0 },
        { "label": "dc_pdd", "name": "dc_pdd", "counts": format!("counts of {MODEL}"), "a": 0.02 },
        { "label": "slope", "name": "loss", "pdr": { "decay": "slope", "normalize": false } },
    ])
}

fn request(methods: Value) -> AuditRequest {
    let bootstrap = json!({ "replicates": 50, "seed": 3, "confidence": 0.9 });
    let metrics = json!({
        "fpr_targets": [0.1, 0.25], "roc": true, "bootstrap": bootstrap, "average": ["group"],
        "position_profile": { "by_group": true, "positions": 3 }, "selected_tokens": 5
    });
    let request = json!({ "model": MODEL, "methods": methods, "overflow": "truncate", "metrics": metrics });
    serde_json::from_value(request).unwrap()
}

/// Labelled samples in groups, one of them twice, one without a token.
fn samples() -> SampleBlocks {
    let mut texts = texts();
    texts.push(texts[3].clone());
    texts.push(String::new());
    let sample = |(at, text): (usize, String)| {
        let neighbors = [format!("{text} again"), format!("so {text}")];
        json!({ "id": at, "text": text, "label": at % 2, "group": format!("g{}", at % 3), "neighbors": neighbors })
    };
    let samples: Vec<Sample> = serde_json::from_value(texts.into_iter().enumerate().map(sample).collect()).unwrap();
    SampleBlocks::Memory(samples.into())
}

async fn audit(request: AuditRequest, scorer: &Scorer) -> AuditOutcome {
    run(Arc::new(request), &samples(), None, scorer, |_| {}).await.unwrap()
}

fn text(report: &impl serde::Serialize) -> String {
    serde_json::to_string(report).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_request_gives_the_same_report() {
    let place = tempfile::tempdir().unwrap();
    let request = request(methods());
    let stored = serde_json::to_string(&request).unwrap();
    let read: AuditRequest = serde_json::from_str(&stored).unwrap();
    assert_eq!((&read, serde_json::to_string(&read).unwrap()), (&request, stored));

    let (first, second) = (scorer(place.path(), |_| {}), scorer(place.path(), |_| {}));
    let first = audit(request, &first).await;
    let report = serde_json::to_value(&first.report).unwrap();
    assert_eq!(report["groups"].as_array().unwrap().len(), 3);
    for method in report["methods"].as_array().unwrap() {
        // All but the text without a token.
        assert_eq!(method["scored"], first.results.rows.len() - 1, "{method}");
        assert!(method["bootstrap"]["auroc"].is_object() && method["auroc"].is_number(), "{method}");
    }
    let second = audit(read, &second).await;
    assert_eq!(text(&second.report), text(&first.report));
    assert_eq!(second.results, first.results);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_a_function_of_stored_results() {
    let place = tempfile::tempdir().unwrap();
    let request = request(methods());
    let outcome = audit(request.clone(), &scorer(place.path(), |_| {})).await;
    let stored = serde_json::to_string(&outcome.results).unwrap();
    let read: AuditResults = serde_json::from_str(&stored).unwrap();
    let again = build_report(&request, &read, &|| true).unwrap();
    assert_eq!(text(&again), text(&outcome.report));

    let mut fewer = read;
    fewer.rows[0].scores.pop();
    let foreign = build_report(&request, &fewer, &|| true).unwrap_err();
    assert_eq!(foreign.to_string(), "the results do not belong to the request of the audit");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_run_twice_are_warned_of() {
    let place = tempfile::tempdir().unwrap();
    let methods = || {
        json!([
            { "label": "loss", "name": "loss" },
            { "label": "by entropy", "name": "loss", "pdr": { "decay": "entropy_dataset", "normalize": false } }
        ])
    };
    let codes = |outcome: &AuditOutcome| -> Vec<String> {
        let report = serde_json::to_value(&outcome.report).unwrap();
        let warnings = report["warnings"].as_array().unwrap();
        warnings.iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
    };
    let cached = audit(request(methods()), &scorer(place.path(), |_| {})).await;
    let uncached = scorer(place.path(), |settings| settings.engine.cache = ByteSize::b(0));
    let twice = audit(request(methods()), &uncached).await;
    let once = audit(request(json!([{ "label": "loss", "name": "loss" }])), &uncached).await;
    assert_eq!((twice.results.repeated_passes, cached.results.repeated_passes), (texts().len(), 0));
    assert!(codes(&twice).contains(&"repeated_passes".to_owned()), "{:?}", codes(&twice));
    assert!(!codes(&cached).contains(&"repeated_passes".to_owned()), "{:?}", codes(&cached));
    assert!(!codes(&once).contains(&"repeated_passes".to_owned()), "{:?}", codes(&once));
    assert_eq!((twice.results.rows, twice.results.profile), (cached.results.rows, cached.results.profile));
}

/// Enough texts that an audit of them lasts a while.
fn many() -> Value {
    let sample =
        |at: usize| json!({ "text": format!("{at} is the number of this sample, and {at} again"), "label": at % 2 });
    let by_entropy = json!({ "name": "loss", "pdr": { "decay": "entropy_dataset" } });
    json!({ "samples": (0..1_500).map(sample).collect::<Vec<_>>(), "methods": ["min_k", by_entropy] })
}

/// The results of an audit of many samples whose model is unloaded and loaded at these numbers of finished samples.
async fn reloaded_at(samples: &[u64]) -> Value {
    let app = App::start_as_it_is(&settings(&[MODEL])).await;
    let submitted = app.post("/v1/audits", &many()).await;
    assert_eq!(submitted.status, 202, "{}", submitted.text());
    let path = submitted.header("location").to_owned();
    for &done in samples {
        loop {
            let audit = app.get(&path).await.ok();
            assert_eq!(audit["error"], Value::Null);
            assert_ne!(audit["status"], "succeeded", "the audit must still run when the model is unloaded");
            if audit["progress"]["done"].as_u64().unwrap() >= done {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        app.post(&format!("/v1/models/{MODEL}/unload"), &json!({})).await.ok();
        app.post(&format!("/v1/models/{MODEL}/load"), &json!({})).await.ok();
    }
    loop {
        let audit = app.get(&path).await.ok();
        match audit["status"].as_str().unwrap() {
            "queued" | "running" => tokio::time::sleep(Duration::from_millis(20)).await,
            status => {
                assert_eq!(status, "succeeded", "{}", audit["error"]);
                app.assert_nothing_is_left().await;
                return audit["results"].clone();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_in_the_middle_of_an_audit_is_waited_for() {
    let undisturbed = reloaded_at(&[]).await;
    // In the first round, and in the second.
    let reloaded = reloaded_at(&[200, 1_000]).await;
    assert_eq!(undisturbed["samples"]["excluded"], json!([]));
    assert_eq!(reloaded, undisturbed);
}
