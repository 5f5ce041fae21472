//! LoRA adapters as clients see them: models of their own over the weights of their base, and the method `fsd`.

use crate::common::app::{App, GOLDEN, TINY};
use crate::goldens::rig::{ROUNDING, column, mean, results, score};
use futures::future::join_all;
use pdr_audit::config::{AdapterSettings, ByteSize, Settings};
use pdr_audit::pool::Retry;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The adapter of a golden.
fn saved(golden: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lora").join(golden)
}

fn tuned(settings: &mut Settings) {
    let source = saved(GOLDEN);
    settings.models[0].adapters = vec![AdapterSettings { name: "tuned".into(), source }];
}

/// Texts and log-probabilities that PEFT gives them.
fn expected() -> Vec<(String, Vec<f64>)> {
    let json = std::fs::read(saved(GOLDEN).join("expected.json")).unwrap();
    let value: Value = serde_json::from_slice(&json).unwrap();
    let text = |text: &Value| {
        let lp = text["logp"].as_array().unwrap().iter().map(|lp| lp.as_f64().unwrap()).collect();
        (text["text"].as_str().unwrap().to_owned(), lp)
    };
    value["texts"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_under_an_adapter_scores_as_peft_does() {
    let app = App::with(tuned).await;
    let expected = expected();
    let texts: Vec<&str> = expected.iter().map(|(text, _)| text.as_str()).collect();
    let request = |model: &str| json!({ "model": model, "inputs": texts, "methods": ["loss"], "details": ["tokens"] });
    let adapted = app.score(&request("tiny:tuned")).await;
    for ((_, reference), result) in expected.iter().zip(results(&adapted)) {
        let ours = column(result, "lp");
        assert_eq!(ours.len(), reference.len());
        for (ours, theirs) in ours.iter().zip(reference) {
            assert!((ours - theirs).abs() < 2e-4, "{ours} {theirs}");
        }
    }
    // The statistics of the one are not those of the other, in whatever order they are asked for.
    let base = app.score(&request(TINY)).await;
    let again = app.score(&request("tiny:tuned")).await;
    assert_eq!(adapted["results"], again["results"]);
    assert_ne!(adapted["results"][0]["scores"], base["results"][0]["scores"]);
    assert_eq!(again["usage"]["forward_passes"], 0);
    assert_eq!(adapted["model"]["id"], "tiny:tuned");
    assert_eq!(adapted["model"]["digest"], base["model"]["digest"]);
    let digest = adapted["model"]["adapter"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && base["model"].get("adapter").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_base_of_an_adapter_is_the_control_by_default() {
    let app = App::with(tuned).await;
    let text = |number: usize| json!({ "text": format!("the {number} towns of the river grew"), "label": number % 2 });
    let samples: Vec<Value> = (0..8).map(text).collect();
    let audit = async |options: Value| {
        let mut body = json!({ "samples": samples, "methods": ["loss"] });
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        app.audit(&body).await
    };
    let provenance = audit(json!({ "model": "tiny:tuned" })).await.ok()["results"]["provenance"].clone();
    assert_eq!(
        (&provenance["control"]["model"], &provenance["request"]["control_default"]),
        (&json!(TINY), &json!("base"))
    );
    let provenance =
        audit(json!({ "model": "tiny:tuned", "control": TINY })).await.ok()["results"]["provenance"].clone();
    assert_eq!((&provenance["control"]["model"], provenance["request"].get("control_default")), (&json!(TINY), None));
    let provenance =
        audit(json!({ "model": "tiny:tuned", "control": null })).await.ok()["results"]["provenance"].clone();
    assert_eq!(provenance.get("control"), None);
    // The fine-tune has seen what its base has seen.
    let refused = audit(json!({ "model": TINY, "control": "tiny:tuned" })).await;
    assert!(refused.text().contains("has the weights of `tiny`"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_wait_together_run_under_their_own_adapter() {
    // Nothing is remembered, so every text of every request runs.
    let app = App::with(|settings| {
        tuned(settings);
        settings.engine.cache = ByteSize::b(0);
    })
    .await;
    let request = |i: usize| {
        let model = if i.is_multiple_of(2) { TINY } else { "tiny:tuned" };
        json!({ "model": model, "inputs": [format!("the {} towns of the river grew", i / 2)], "methods": ["loss"] })
    };
    let mut alone = Vec::new();
    for i in 0..40 {
        alone.push(app.score(&request(i)).await["results"].clone());
    }
    let requests: Vec<Value> = (0..40).map(request).collect();
    let together = join_all(requests.iter().map(|request| app.score(request))).await;
    for (i, (alone, together)) in alone.iter().zip(&together).enumerate() {
        assert_eq!(*alone, together["results"], "request {i}");
    }
    assert_ne!(alone[0][0]["scores"], alone[1][0]["scores"], "the adapter changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn fsd_is_the_score_before_tuning_less_the_one_after() {
    let app = App::with(tuned).await;
    let texts: Vec<String> = expected().into_iter().map(|(text, _)| text).collect();
    let linear = json!({ "decay": "linear", "alpha": 1.0 });
    let scores = [
        json!({ "name": "loss" }),
        json!({ "name": "min_k", "k": 0.3 }),
        json!({ "name": "min_k_plus_plus", "k": 0.2, "pdr": linear }),
        json!({ "name": "loss", "pdr": { "decay": "exponential", "alpha": 0.1 } }),
    ];
    let labelled = |mut method: Value, label: String| {
        method["label"] = label.into();
        method
    };
    let plain: Vec<Value> = (0..).zip(&scores).map(|(i, score)| labelled(score.clone(), format!("s{i}"))).collect();
    let fsd = |score: &Value| json!({ "name": "fsd", "adapter": "tuned", "score": score });
    let compared: Vec<Value> = (0..).zip(&scores).map(|(i, score)| labelled(fsd(score), format!("s{i}"))).collect();
    let ask = async |model: &str, methods: &[Value]| {
        app.score(&json!({ "model": model, "inputs": texts, "methods": methods })).await
    };
    let (before, after) = (ask(TINY, &plain).await, ask("tiny:tuned", &plain).await);
    let both = ask(TINY, &compared).await;
    for i in 0..scores.len() {
        let label = format!("s{i}");
        for ((before, after), both) in results(&before).iter().zip(results(&after)).zip(results(&both)) {
            let expected = score(before, &label) - score(after, &label);
            assert!((score(both, &label) - expected).abs() < ROUNDING, "{label}");
        }
    }
    // All passes were known: those of the base, and those under the adapter.
    assert_eq!(both["usage"]["forward_passes"], 0);
    let by_default = ask(TINY, &[json!({ "name": "fsd", "adapter": "tiny:tuned" })]).await;
    let label = "fsd(adapter=tiny:tuned,score=min_k(k=0.2))";
    assert!(by_default["results"][0]["scores"][label].is_f64(), "{by_default}");
    let echo = &by_default["methods"][0];
    assert_eq!((&echo["adapter"], &echo["score"]), (&json!("tiny:tuned"), &json!({ "name": "min_k", "k": 0.2 })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_base_is_the_reference_of_its_own_fine_tune() {
    let app = App::with(tuned).await;
    let text = expected().remove(0).0;
    let lp = async |model: &str| {
        let answer =
            app.score(&json!({ "model": model, "inputs": [text], "methods": ["loss"], "details": ["tokens"] })).await;
        mean(&column(&results(&answer)[0], "lp"))
    };
    let methods = json!([{ "name": "ref", "label": "ref" }]);
    let answer = app.score(&json!({ "model": "tiny:tuned", "inputs": [text], "methods": methods })).await;
    let expected = lp("tiny:tuned").await - lp(TINY).await;
    assert!((score(&results(&answer)[0], "ref") - expected).abs() < ROUNDING);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_compares_fsd_with_the_score_that_was_not_tuned() {
    let app = App::with(tuned).await;
    let samples: Vec<Value> = (0..24)
        .map(|i| json!({ "text": format!("the {i} towns of the river grew {}", i * i), "label": i % 2 }))
        .collect();
    let score = json!({ "name": "min_k", "k": 0.2, "pdr": { "decay": "linear", "alpha": 1.0 } });
    let body = json!({ "samples": samples, "methods": [{ "name": "fsd", "adapter": "tuned", "score": score, "label": "fsd" }],
        "metrics": { "bootstrap": { "replicates": 20 } } });
    let audit = app.audit(&body).await.ok();
    assert_eq!(audit["status"], "succeeded", "{}", audit["error"]);
    let method = &audit["results"]["methods"][0];
    assert_eq!((&method["label"], &method["scored"]), (&json!("fsd"), &json!(24)));
    assert_eq!(method["versus_baseline"]["baseline"], "min_k(k=0.2)+linear(alpha=1)", "{method}");
}

#[tokio::test(flavor = "multi_thread")]
async fn adapters_stand_under_their_model() {
    let app = App::with(tuned).await;
    let adapter = async || app.get("/v1/models").await.ok()["models"][0]["adapters"][0].clone();
    let known = adapter().await;
    assert_eq!(known, json!({ "id": "tiny:tuned", "name": "tuned", "state": "unloaded" }));
    app.post("/v1/models/tiny:tuned/load", &json!({})).await.ok();
    let open = adapter().await;
    assert_eq!((&open["state"], &open["rank"], &open["alpha"]), (&json!("ready"), &json!(4), &json!(8.0)));
    assert_eq!(open["target_modules"], json!(["query_key_value"]));
    // Two layers of [4, 48] and [144, 4] in f32.
    assert_eq!(open["weight_bytes"], 2 * 4 * (4 * 48 + 144 * 4));
    app.post("/v1/models/tiny:tuned/unload", &json!({})).await.ok();
    assert_eq!(adapter().await["state"], "unloaded");
    assert_eq!(app.get("/v1/models").await.ok()["models"][0]["state"], "ready", "the base stays");
    // Whoever has it open uses it.
    let held = app.engine.pool().open("tiny:tuned", Retry::Now).await.unwrap();
    for refused in
        [app.delete("/v1/models/tiny/adapters/tuned").await, app.post("/v1/models/tiny:tuned/unload", &json!({})).await]
    {
        assert_eq!(refused.problem(409)["detail"], "`tiny:tuned` is in use");
    }
    drop(held);
    assert_eq!(app.delete("/v1/models/tiny/adapters/tuned").await.status, 204);
    assert!(app.get("/v1/models").await.ok()["models"][0].get("adapters").is_none());
    let gone = app.delete("/v1/models/tiny/adapters/tuned").await.problem(404);
    assert!(gone["detail"].as_str().unwrap().contains("model `tiny` has no adapter `tuned`"), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_by_name() {
    let app = App::with(|settings| {
        tuned(settings);
        let foreign = saved("llama-gqa");
        settings.models[0].adapters.push(AdapterSettings { name: "foreign".into(), source: foreign });
    })
    .await;
    let refusal = async |body: Value, status: u16| app.post("/v1/score", &body).await.problem(status);
    let unknown = refusal(json!({ "model": "tiny:absent", "inputs": ["a b"] }), 404).await;
    let known = "configured: tiny, tiny:tuned, tiny:foreign, tiny-reference";
    assert!(unknown["detail"].as_str().unwrap().contains(known), "{unknown}");
    let foreign = refusal(json!({ "model": "tiny:foreign", "inputs": ["a b"] }), 503).await;
    assert_eq!(foreign["detail"], "the adapter failed; the service's log says why");
    let itself =
        json!({ "model": "tiny:tuned", "inputs": ["a b"], "methods": [{ "name": "fsd", "adapter": "tuned" }] });
    let itself = refusal(itself, 422).await;
    assert!(itself["errors"][0]["detail"].as_str().unwrap().contains("is tuned itself"), "{itself}");
    let methods = |method: Value| json!({ "inputs": ["a b"], "methods": [method] });
    for (method, pointer, detail) in [
        (json!("fsd"), "/methods/0", "no adapter: name one"),
        (json!({ "name": "fsd", "adapter": "none" }), "/methods/0/adapter", "tiny:tuned, tiny:foreign"),
        (json!({ "name": "fsd", "adapter": "tuned", "pdr": { "decay": "slope" } }), "/methods/0/pdr", "as `score.pdr`"),
        (
            json!({ "name": "fsd", "adapter": "tuned", "score": { "name": "zlib" } }),
            "/methods/0/score/name",
            "loss, min_k, min_k_plus_plus",
        ),
        (
            json!({ "name": "fsd", "adapter": "tuned", "score": { "name": "min_k", "k": 2 } }),
            "/methods/0/score/k",
            "k is 2.0, outside",
        ),
        (
            json!({ "name": "fsd", "adapter": "tuned", "score": { "name": "loss", "k": 0.2 } }),
            "/methods/0/score/k",
            "`loss` takes no `k`",
        ),
        (
            json!({ "name": "fsd", "adapter": "tuned", "score": { "name": "loss", "pdr": { "decay": "linear", "alpha": [0.5, 1] } } }),
            "/methods/0/score/pdr/alpha",
            "takes one",
        ),
    ] {
        let problem = refusal(methods(method.clone()), 422).await;
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{method}: {problem}");
        assert!(fault["detail"].as_str().unwrap().contains(detail), "{method}: {fault}");
    }
}
