//! Verdicts of audits.

use crate::common::app::{App, REFERENCE, golden};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

#[derive(Deserialize)]
struct Labelled {
    text: String,
    label: u64,
}

/// The demo model and its reference, as they come with the program.
pub async fn demo() -> App {
    App::with(|settings| {
        settings.models.clear();
        settings.engine.default_model = None;
    })
    .await
}

/// Texts that the demo model was trained on (1), or was not (0).
pub fn texts(label: u64, range: std::ops::Range<usize>) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl");
    let lines = std::fs::read_to_string(file).unwrap();
    let samples = lines.lines().map(|line| serde_json::from_str::<Labelled>(line).unwrap());
    let texts: Vec<String> = samples.filter(|sample| sample.label == label).map(|sample| sample.text).collect();
    texts[range].to_vec()
}

fn samples(members: &[String], non_members: &[String]) -> Vec<Value> {
    let sample = |label: u8| move |text: &String| json!({ "text": text, "label": label });
    members.iter().map(sample(1)).chain(non_members.iter().map(sample(0))).collect()
}

/// The results of an audit with few replicates.
async fn results(app: &App, samples: &[Value], options: Value) -> Value {
    let mut body =
        json!({ "samples": samples, "metrics": { "bootstrap": { "replicates": 50 }, "fpr_targets": [0.1] } });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let audit = app.audit(&body).await.ok();
    assert_eq!(audit["status"], "succeeded", "{}", audit["error"]);
    audit["results"].clone()
}

fn codes(results: &Value) -> Vec<&str> {
    results["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_an_association_and_non_members_are_not() {
    let app = demo().await;
    let methods = json!(["loss", "ref", { "name": "loss", "pdr": { "decay": "linear", "alpha": 1 } }]);
    let both = samples(&texts(1, 0..150), &texts(0, 0..150));
    let found = results(&app, &both, json!({ "methods": methods })).await;
    let verdict = &found["verdict"];
    assert_eq!((&verdict["state"], &verdict["reason"]), (&json!("association"), &json!("above_control")), "{verdict}");
    assert_eq!(
        (&verdict["primary"], &verdict["design"]),
        (&json!("ref(reference=demo-reference)"), &json!("observational"))
    );
    assert_eq!((&verdict["clusters"], &verdict["level"]), (&json!([150, 150]), &json!(0.01)));
    assert_eq!(verdict["model"]["digest"], found["provenance"]["model_digest"]);
    assert!(verdict["sentence"].as_str().unwrap().starts_with("Association: under the model `demo` ("), "{verdict}");
    assert_eq!(verdict["comparability"]["state"], "comparable");
    assert_eq!((&found["samples"]["clusters"], &found["samples"]["largest_cluster"]), (&json!(300), &json!(1)));
    assert_eq!(found["blind"]["words"]["shift"], "none", "{}", found["blind"]);
    assert!(found["prior_test"]["positions"].as_u64().unwrap() >= 30, "{}", found["prior_test"]);
    let [loss, reference, decayed] = [0, 1, 2].map(|place| &found["methods"][place]);
    // The control of `ref` is `loss` under the control.
    assert_eq!(loss["control"]["auroc"], reference["control"]["auroc"]);
    assert_eq!(verdict["control"]["p_value"], reference["control"]["p_value"]);
    for method in [loss, reference] {
        let difference = method["auroc"].as_f64().unwrap() - method["control"]["auroc"].as_f64().unwrap();
        assert!((method["control"]["difference"].as_f64().unwrap() - difference).abs() < 1e-12);
    }
    for method in [loss, reference, decayed] {
        let [alone, adjusted] = ["p_value", "p_value_adjusted"].map(|field| method[field].as_f64().unwrap());
        assert!(0.0 < alone && alone <= adjusted && adjusted <= 1.0, "{method}");
    }
    let versus = &decayed["versus_baseline"];
    assert_eq!(versus["p_value_adjusted"], versus["p_value"], "one comparison is not adjusted");
    // `ref` runs the control on every text, so that the other methods cost it nothing.
    assert_eq!(found["usage"]["forward_passes"], 600);
    assert_eq!(found["provenance"]["control"]["model"], "demo-reference");
    assert_eq!(found["provenance"]["request"]["control"], "demo-reference");

    let neither = samples(&texts(0, 0..75), &texts(0, 75..150));
    let found = results(&app, &neither, json!({ "methods": methods })).await;
    assert_ne!(found["verdict"]["state"], "association", "{}", found["verdict"]);
    // Labels the wrong way round.
    let flipped = samples(&texts(0, 0..150), &texts(1, 0..150));
    let found = results(&app, &flipped, json!({ "methods": ["ref"] })).await;
    assert_eq!(found["verdict"]["reason"], "members_score_lower", "{}", found["verdict"]);
    assert_eq!(found["verdict"]["state"], "no_association");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_other_kinds_decide_nothing() {
    let app = demo().await;
    let options = json!({ "methods": ["min_k_plus_plus"], "control": null });
    let (members, others) = (texts(1, 0..150), texts(0, 0..150));
    let alike = results(&app, &samples(&members, &others), options.clone()).await;
    assert_eq!(alike["verdict"]["reason"], "above_chance", "{}", alike["verdict"]);
    assert!(alike["methods"][0].get("control").is_none() && alike["provenance"].get("control").is_none());
    assert!(!codes(&alike).contains(&"distribution_shift"));
    // Members of another source, each of which says so.
    let marked: Vec<String> = members.iter().map(|text| format!("Archive of Fallowfield. {text}")).collect();
    let apart = results(&app, &samples(&marked, &others), options.clone()).await;
    let words = &apart["blind"]["words"];
    assert_eq!((&words["shift"], &apart["verdict"]["reason"]), (&json!("total"), &json!("lists_differ")), "{words}");
    assert_eq!(apart["verdict"]["state"], "inconclusive");
    assert!(words["top_words"]["members"].as_array().unwrap().contains(&json!("archive")), "{words}");
    assert!(codes(&apart).contains(&"distribution_shift"));
    // White space alone, which words do not show.
    let spaced: Vec<String> = others.iter().map(|text| text.replace(' ', "  ")).collect();
    let apart = results(&app, &samples(&members, &spaced), options).await;
    let verdict = &apart["verdict"];
    assert_eq!((&verdict["state"], &verdict["reason"]), (&json!("inconclusive"), &json!("lists_differ")), "{verdict}");
    let measures = verdict["comparability"]["measures"].as_array().unwrap();
    let characters = measures.iter().find(|measure| measure["measure"] == "characters").expect("characters");
    assert!(
        characters["separating"].as_array().unwrap().iter().any(|separating| separating["ngram"] == "  "),
        "{characters}"
    );
    let words = &apart["blind"]["words"];
    assert_eq!(words["shift"], "none", "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn repeating_texts_adds_no_evidence() {
    let app = demo().await;
    let options = json!({ "methods": ["loss", "min_k"] });
    let once = samples(&texts(1, 0..120), &texts(0, 0..120));
    let thrice: Vec<Value> = once.iter().chain(&once).chain(&once).cloned().collect();
    let (single, repeated) =
        (results(&app, &once, options.clone()).await, results(&app, &thrice, options.clone()).await);
    assert_eq!((&repeated["samples"]["clusters"], &repeated["samples"]["largest_cluster"]), (&json!(240), &json!(3)));
    assert!(codes(&repeated).contains(&"duplicates") && !codes(&single).contains(&"duplicates"));
    assert_eq!(single["blind"], repeated["blind"]);
    let [verdict, of_copies] = [&single, &repeated].map(|results| {
        let mut verdict = results["verdict"].clone();
        // The digest of the texts is that of the three lists together.
        verdict["sentence"].take();
        verdict
    });
    assert_eq!(verdict, of_copies);
    for (single, repeated) in single["methods"].as_array().unwrap().iter().zip(repeated["methods"].as_array().unwrap())
    {
        let [once, thrice] = [single, repeated].map(|method| method["auroc_standard_error"].as_f64().unwrap());
        assert!((once - thrice).abs() < 1e-9, "as if there were more texts: {once} and {thrice}");
        assert_eq!(single["p_value"], repeated["p_value"]);
    }
    // A text in another spelling of the white space is in the cluster of the first.
    let spaced = |sample: &Value| json!({ "text": sample["text"].as_str().unwrap().replacen(' ', "  ", 1), "label": sample["label"] });
    let both: Vec<Value> = once.iter().cloned().chain(once.iter().map(spaced)).collect();
    assert_eq!(results(&app, &both, options).await["samples"]["clusters"], 240);
    // Texts of one document are one cluster, whatever they say.
    let documents: Vec<Value> = once
        .iter()
        .enumerate()
        .map(|(place, sample)| json!({ "text": sample["text"], "label": sample["label"], "document": place / 2 }))
        .collect();
    let grouped = results(&app, &documents, json!({ "methods": ["loss"] })).await;
    assert_eq!(grouped["samples"]["clusters"], 120);
    assert_eq!(grouped["verdict"]["texts_per_cluster"], 2);
    // One text by itself: of each cluster a single one counts.
    let place = |sample: &Value, document: Value| json!({ "text": sample["text"], "label": sample["label"], "document": document });
    let unequal: Vec<Value> = (once.iter().enumerate())
        .map(|(n, sample)| place(sample, if n == 0 { json!("alone") } else { json!(n / 4) }))
        .collect();
    let unequal = results(&app, &unequal, json!({ "methods": ["loss"] })).await;
    assert_eq!(unequal["verdict"]["texts_per_cluster"], 1);
    assert!(codes(&unequal).contains(&"unequal_documents") && !codes(&grouped).contains(&"unequal_documents"));
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_compare_with_a_model_have_the_loss_of_the_control_beside_them() {
    let app = demo().await;
    let options = json!({ "methods": ["ez", "wbc", "ref", "loss"], "primary": "ez" });
    let results = results(&app, &samples(&texts(1, 0..120), &texts(0, 0..120)), options).await;
    let under_control = |place: usize| &results["methods"][place]["control"]["auroc"];
    for place in 0..3 {
        assert!(under_control(place).is_number() && under_control(place) == under_control(3), "{results}");
    }
    assert_eq!(results["verdict"]["reason"], "above_control", "{}", results["verdict"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn few_texts_decide_nothing() {
    let app = demo().await;
    let few = samples(&texts(1, 0..10), &texts(0, 0..10));
    let found = results(&app, &few, json!({ "methods": ["loss"] })).await;
    assert_eq!((&found["verdict"]["state"], &found["verdict"]["reason"]), (&json!("inconclusive"), &json!("too_few")));
    // Without labels there is nothing to decide.
    let unlabelled: Vec<Value> = texts(1, 0..5).into_iter().map(|text| json!({ "text": text })).collect();
    let found = results(&app, &unlabelled, json!({ "methods": ["loss"] })).await;
    assert!(["verdict", "blind", "prior_test"].iter().all(|field| found.get(field).is_none()), "{found}");
    let passes = |field: &str| found["usage"][field].as_u64().unwrap();
    assert_eq!(passes("forward_passes") + passes("cached_passes"), 5, "no control is run");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_non_members_are_negative_controls_and_a_prior_makes_probabilities() {
    let app = demo().await;
    let mut both = samples(&texts(1, 0..60), &texts(0, 0..110));
    for (place, sample) in both.iter_mut().enumerate() {
        sample["group"] = json!(if place % 2 == 0 { "even" } else { "odd" });
    }
    let body = json!({ "samples": both, "methods": ["min_k"], "stratify": "group", "prior": 0.1, "primary": "min_k",
        "metrics": { "bootstrap": null } });
    let audit = app.audit(&body).await.ok();
    let method = &audit["results"]["methods"][0];
    let controls = method["control"]["negative_controls"].as_array().unwrap();
    assert_eq!((controls.len(), &controls[0]["groups"]), (1, &json!(["even", "odd"])));
    let [low, high] = [0, 1].map(|end| controls[0]["interval"][end].as_f64().unwrap());
    assert!(low < 0.0 && 0.0 < high, "{method}");
    let [pooled, stratified] = ["auroc", "auroc_stratified"].map(|field| method[field].as_f64().unwrap());
    assert!((pooled - stratified).abs() < 0.05 && pooled != stratified, "{pooled} {stratified}");
    let lines = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    let rows: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let posterior = |row: &Value| row["posterior"].as_f64().unwrap();
    assert!(rows.iter().all(|row| (0.0..=1.0).contains(&posterior(row))));
    let mean = |label: u64| {
        let class: Vec<f64> = rows.iter().filter(|row| row["label"] == label).map(posterior).collect();
        class.iter().sum::<f64>() / class.len() as f64
    };
    assert!(mean(1) > mean(0), "{} {}", mean(1), mean(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_verdict_is_named() {
    let app = demo().await;
    let both = samples(&texts(1, 0..2), &texts(0, 0..40));
    let unlabelled = json!([{ "text": "One text." }]);
    for (options, pointer, words) in [
        (json!({ "primary": "zlib" }), "/primary", "`zlib` is not among the methods; their labels are `loss`"),
        (json!({ "control": "demo" }), "/control", "`demo` is the model that is asked about"),
        (json!({ "control": "other" }), "/control", "no model `other`"),
        (json!({ "control": 7 }), "/control", "invalid type"),
        (json!({ "stratify": "group" }), "/stratify", "no sample names a `group`"),
        (json!({ "prior": 0 }), "/prior", "outside (0, 1)"),
        (json!({ "decisions": { "fdr": 0.1 } }), "/decisions", "takes a `calibration`"),
        (json!({ "calibration": { "share": 2 } }), "/calibration/share", "outside (0, 1)"),
        (json!({ "calibration": { "share": 0.45 } }), "/calibration/share", "18 known non-members are too few"),
        (json!({ "calibration": { "share": 0.5 }, "decisions": { "fdr": 0.6 } }), "/decisions/fdr", "outside (0, 0.5]"),
        (json!({ "samples": unlabelled, "primary": "loss" }), "/primary", "without labels"),
    ] {
        let mut body = json!({ "samples": both, "methods": ["loss"] });
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let problem = app.post("/v1/audits", &body).await.problem(422);
        let fault = &problem["errors"][0];
        assert!(fault["pointer"] == pointer && fault["detail"].as_str().unwrap().contains(words), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_of_another_tokenization_is_said_to_leave_methods_out() {
    let app = App::with(|settings| settings.models.push(golden("other", "gpt2"))).await;
    let both = samples(&texts(1, 0..6), &texts(0, 0..6));
    let methods = json!(["loss", { "name": "loss", "pdr": { "decay": "linear", "alpha": 1 }, "label": "weighted" }]);
    let found = results(&app, &both, json!({ "methods": methods, "control": "other" })).await;
    let controls: Vec<bool> =
        found["methods"].as_array().unwrap().iter().map(|method| method["control"].is_object()).collect();
    assert_eq!(controls, [true, false], "{found}");
    let warnings = found["warnings"].as_array().unwrap();
    let warning = warnings.iter().find(|warning| warning["code"] == "control_tokenization").expect("a warning");
    assert!(warning["detail"].as_str().unwrap().starts_with("`weighted` has no control: the control `other`"));
    // The same tokenization leaves nothing out.
    let found = results(&app, &both, json!({ "methods": methods, "control": REFERENCE })).await;
    assert!(!codes(&found).contains(&"control_tokenization"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_weights_under_another_id_are_no_control() {
    let app = App::with(|settings| settings.models.extend([golden("one", "gpt2"), golden("two", "gpt2")])).await;
    let both = samples(&texts(1, 0..2), &texts(0, 0..2));
    let body = json!({ "model": "one", "samples": both, "methods": ["loss"], "control": "two" });
    let audit = app.audit(&body).await.ok();
    let problem = &audit["error"];
    assert_eq!((&audit["status"], &problem["status"]), (&json!("failed"), &json!(422)), "{audit}");
    let fault = &problem["errors"][0];
    assert_eq!(fault["pointer"], "/control", "{problem}");
    assert!(fault["detail"].as_str().unwrap().starts_with("the control `two` has the weights of `one`"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_texts_that_are_not_retained_are_not_shown() {
    let app = demo().await;
    let lines: String =
        samples(&texts(1, 0..30), &texts(0, 0..30)).iter().map(|sample| format!("{sample}\n")).collect();
    for (query, shown) in [("", true), ("?retain=false", false)] {
        // Another text, so that it is another dataset.
        let lines = format!("{lines}{}\n", json!({ "text": format!("one more {shown}"), "label": 0 }));
        let path = format!("/v1/datasets{query}");
        let dataset = app.post_bytes(&path, Some("application/x-ndjson"), lines.into_bytes()).await.json();
        let options = json!({ "dataset": dataset["id"], "methods": ["loss"], "metrics": { "fpr_targets": [0.1] } });
        let audit = app.audit(&options).await.ok();
        let words = &audit["results"]["blind"]["words"];
        assert_eq!((words["auroc"].is_number(), words["top_words"].is_object()), (true, shown), "{words}");
    }
}
