//! `fsd` by hand, and what it refuses.

use super::*;
use serde_json::{Value, json};

const AFTER: [f64; 10] = [-2.1, -0.6, -4.0, -0.04, -1.5, -2.9, -0.25, -5.2, -0.7, -0.9];

fn adapted() -> Scope<'static> {
    let models = vec!["demo", "demo:tuned", "demo:other", "small", "small:tuned"];
    Scope { models, model: Some("demo"), ..Scope::default() }
}

fn request(request: Value) -> Result<Vec<LabelledMethod>, Vec<Fault>> {
    resolve(&parse(json!([request])), &adapted())
}

fn fsd(score: Value) -> Method {
    request(json!({ "name": "fsd", "adapter": "tuned", "score": score })).expect("a method").remove(0).method
}

#[test]
fn it_is_the_score_before_tuning_less_the_one_after() {
    let (before, after) = (tokens(&LPS), tokens(&AFTER));
    let passes = [(AuxiliaryPass::Tuned("demo:tuned".into()), Ok(vec![after.into()]))];
    let text = TextStats { passes: &passes, ..text(&before) };
    let linear = json!({ "decay": "linear", "alpha": 1.0 });
    for (request, expected) in [
        (json!({ "name": "loss" }), -0.376),
        (json!({ "name": "min_k" }), -1.05),
        (json!({ "name": "min_k", "k": 0.2, "pdr": linear }), -0.538888888888889),
    ] {
        let score = score(&fsd(request), &text).expect("a score");
        assert!((score - expected).abs() < 1e-12, "{score} {expected}");
    }
    // Truncation keeps the same tokens before and after: of six, the loss falls by (0.2 + 0.1 + 1.1 + 0.01 + 0.4 + 0.5) / 6.
    let cut = Method { truncate: Fraction::new(0.6), ..fsd(json!({ "name": "loss" })) };
    assert!((score(&cut, &text).expect("a score") + 0.385).abs() < 1e-12);
    let alone = TextStats { passes: &[], ..text };
    assert!(matches!(score(&cut, &alone), Err(ScoreError::Internal(_))));
}

#[test]
fn it_is_compared_with_its_own_score() {
    let pdr = json!({ "decay": "linear", "alpha": 0.5 });
    let method = fsd(json!({ "name": "min_k_plus_plus", "k": 0.3, "pdr": pdr }));
    let baseline = method.baseline().expect("a baseline");
    assert_eq!(baseline.label(), "min_k_plus_plus(k=0.3)+linear(alpha=0.5)");
    assert_eq!(method.label(), "fsd(adapter=demo:tuned,score=min_k_plus_plus(k=0.3)+linear(alpha=0.5))");
    assert!(!method.extension(), "the paper evaluates it with weights");
}

#[test]
fn adapters_are_those_of_the_model_asked_about() {
    let id = |adapter: &str| request(json!({ "name": "fsd", "adapter": adapter }));
    assert!(id("tuned").is_ok() && id("demo:other").is_ok());
    for other in ["small:tuned", "small", "absent"] {
        let fault = id(other).expect_err("a fault").remove(0);
        assert_eq!(fault.pointer, "/0/adapter");
        assert!(fault.detail.contains("demo:tuned, demo:other"), "{}", fault.detail);
    }
    for (model, words) in [("demo:other", "`demo:other` is tuned itself"), ("bare", "the model has no adapter")] {
        let scope = Scope { model: Some(model), ..adapted() };
        let fault = faults(json!([{ "name": "fsd", "adapter": "tuned" }]), &scope).remove(0);
        assert!(fault.pointer == "/0/adapter" && fault.detail.contains(words), "{}", fault.detail);
    }
}

#[test]
fn one_score_is_compared_and_no_other() {
    for (score, pointer, words) in [
        (json!({ "name": "ref" }), "/0/score/name", "loss, min_k, min_k_plus_plus"),
        (json!({ "name": "min_k", "k": 0.0 }), "/0/score/k", "k is 0.0, outside"),
        (json!({ "name": "loss", "pdr": { "decay": "linear", "alpha": [0.1, 1] } }), "/0/score/pdr/alpha", "takes one"),
        (json!({ "name": "loss", "pdr": { "decay": "linear" } }), "/0/score/pdr/alpha", "alpha is missing"),
        (json!({ "name": "loss", "pdr": { "decay": "entropy_dataset" } }), "/0/score/pdr/decay", "under two"),
        (
            json!({ "name": "loss", "pdr": { "decay": "linear", "alpha": 1, "select": "before" } }),
            "/0/score/pdr/select",
            "does not select",
        ),
    ] {
        let fault =
            request(json!({ "name": "fsd", "adapter": "tuned", "score": score })).expect_err("a fault").remove(0);
        assert_eq!(fault.pointer, pointer, "{}", fault.detail);
        assert!(fault.detail.contains(words), "{}", fault.detail);
    }
}
