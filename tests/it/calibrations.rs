//! Known non-members, and the p-values of other texts against them.

use crate::common::app::App;
use crate::verdict::{demo, texts};
use serde_json::{Value, json};

fn samples(texts: &[String]) -> Value {
    texts.iter().map(|text| json!({ "text": text })).collect()
}

pub async fn calibrated(app: &App, body: &Value) -> Value {
    let calibration = app.post("/v1/calibrations", body).await.json();
    let path = format!("/v1/calibrations/{}", calibration["id"].as_str().unwrap());
    loop {
        let calibration = app.get(&path).await.ok();
        match calibration["status"].as_str().unwrap() {
            "succeeded" => return calibration,
            "queued" | "running" => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            _ => panic!("{calibration}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_get_p_values() {
    let app = demo().await;
    let known = texts(0, 0..49);
    let body = json!({ "name": "unseen", "samples": samples(&known), "methods": ["loss", "min_k_plus_plus"] });
    let calibration = calibrated(&app, &body).await;
    assert_eq!(
        (&calibration["name"], &calibration["texts"], &calibration["clusters"]),
        (&json!("unseen"), &json!(49), &json!(49))
    );
    let method = json!({ "label": "loss", "size": 49, "clusters": 49, "resolution": 0.02 });
    assert_eq!(calibration["methods"][0], method);

    let id = calibration["id"].as_str().unwrap();
    let inputs: Vec<String> = texts(1, 0..3).into_iter().chain([known[0].to_uppercase(), known[1].clone()]).collect();
    let body = json!({ "inputs": inputs, "methods": ["loss"], "calibration": id });
    let answer = app.score(&body).await;
    let echo = &answer["calibration"];
    assert_eq!((&echo["id"], &echo["overlap"]), (&json!(id), &json!(2)));
    assert_eq!(echo["methods"], json!([{ "label": "loss", "clusters": 49, "resolution": 0.02 }]));
    let against = app.score(&json!({ "inputs": known, "methods": ["loss"] })).await;
    let scores = |answer: &Value| -> Vec<f64> {
        answer["results"].as_array().unwrap().iter().map(|result| result["scores"]["loss"].as_f64().unwrap()).collect()
    };
    let known_scores = scores(&against);
    for (place, (result, score)) in answer["results"].as_array().unwrap().iter().zip(scores(&answer)).enumerate() {
        // A text of the calibration is compared with the others of it.
        let others = known_scores.iter().enumerate().filter(|(other, _)| place < 3 || *other != place - 3);
        let (above, all) =
            others.fold((0, 0), |(above, all), (_, known)| (above + usize::from(*known >= score), all + 1));
        let expected = (1 + above) as f64 / (1 + all) as f64;
        assert_eq!(result["p_values"]["loss"].as_f64().unwrap(), expected, "{result}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_compared_is_refused() {
    let app = demo().await;
    let known = texts(0, 0..19);
    let body = json!({ "samples": samples(&known), "methods": ["loss", { "name": "min_k", "k": 0.1 }] });
    let calibration = calibrated(&app, &body).await;
    let id = &calibration["id"];
    let input = json!(["One text of some words."]);
    for (body, words) in [
        (json!({ "methods": ["min_k"] }), "no scores of `min_k(k=0.2)`"),
        (json!({ "methods": ["loss"], "overflow": "truncate" }), "another `overflow`"),
        (json!({ "methods": ["loss"], "model": "demo-reference" }), "other weights (model `demo`)"),
    ] {
        let mut body = body;
        body["inputs"] = input.clone();
        body["calibration"] = id.clone();
        let problem = app.post("/v1/score", &body).await.problem(409);
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    // With one of nineteen texts left out there are too few.
    let body = json!({ "inputs": [known[0]], "methods": ["loss"], "calibration": id });
    let problem = app.post("/v1/score", &body).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("no p-values of `loss`"), "{problem}");

    let labelled: Vec<Value> = known.iter().map(|text| json!({ "text": text, "label": 1 })).collect();
    for (samples, words) in [
        (json!(labelled), "19 of 19 texts are members"),
        (samples(&texts(0, 0..18)), "there are 18 texts; a calibration takes at least 19"),
    ] {
        let problem = app.post("/v1/calibrations", &json!({ "samples": samples })).await.problem(422);
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    app.delete(&format!("/v1/calibrations/{}", id.as_str().unwrap())).await;
    for id in [id.as_str().unwrap(), "nonsense"] {
        app.post("/v1/score", &json!({ "inputs": input, "methods": ["loss"], "calibration": id })).await.problem(404);
        app.post("/v1/audits", &json!({ "samples": [{ "text": "a" }], "calibration": id })).await.problem(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_lists_texts_at_a_false_discovery_rate() {
    let app = demo().await;
    let body = json!({ "samples": samples(&texts(0, 0..120)), "methods": ["min_k_plus_plus"] });
    let calibration = calibrated(&app, &body).await;
    let suspects: Vec<Value> = texts(1, 0..60).iter().map(|text| json!({ "text": text })).collect();
    let body = json!({ "samples": suspects, "methods": ["min_k_plus_plus"], "calibration": calibration["id"],
        "decisions": { "fdr": 0.2, "procedure": "storey" }, "metrics": { "fpr_targets": [0.05] } });
    let audit = app.audit(&body).await.ok();
    let results = &audit["results"];
    let decisions = &results["decisions"];
    assert_eq!((&decisions["tested"], &decisions["procedure"]), (&json!(60), &json!("storey")));
    let rejected = decisions["rejected"].as_u64().unwrap();
    assert!(rejected > 10 && decisions["pi0"].as_f64().unwrap() < 1.0, "{decisions}");
    assert!(results["dataset_test"]["p_value"].as_f64().unwrap() < 1e-6, "{}", results["dataset_test"]);
    let verdict = &results["verdict"];
    assert_eq!((&verdict["state"], &verdict["reason"]), (&json!("association"), &json!("above_chance")), "{verdict}");
    assert_eq!((&verdict["lists"], &verdict["clusters"]), (&json!(["texts", "known non-members"]), &json!([60, 120])));
    assert_eq!(verdict["p_value"], results["dataset_test"]["p_value"]);
    let threshold = &results["methods"][0]["calibration"]["threshold_at_fpr"][0];
    assert!(threshold["fpr"] == 0.05 && threshold["fpr_upper_95"].as_f64().unwrap() > 0.05, "{threshold}");
    let lines = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    let rows: Vec<Value> = lines.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().filter(|row| row["flagged"] == true).count() as u64, rejected);
    for row in &rows {
        let [score, p_value, adjusted] = [
            &row["scores"]["min_k_plus_plus(k=0.2)"],
            &row["p_values"]["min_k_plus_plus(k=0.2)"],
            &row["p_value_adjusted"],
        ]
        .map(|number| number.as_f64().unwrap());
        assert!(p_value > 0.0 && (row["flagged"] == true) == (adjusted <= 0.2), "{row}");
        assert_eq!(row["flagged"] == true, score >= decisions["threshold"].as_f64().unwrap(), "{row}");
    }

    // With a share of the audit's own non-members.
    let sample = |label: u8| move |text: &String| json!({ "text": text, "label": label });
    let both: Vec<Value> =
        texts(1, 0..60).iter().map(sample(1)).chain(texts(0, 0..120).iter().map(sample(0))).collect();
    let body = json!({ "samples": both, "methods": ["min_k_plus_plus"], "calibration": { "share": 0.5, "seed": 7 }, "control": null });
    let audit = app.audit(&body).await.ok();
    let decisions = &audit["results"]["decisions"];
    assert_eq!((&decisions["tested"], &decisions["fdr"]), (&json!(120), &json!(0.1)));
    assert_eq!(audit["results"]["methods"][0]["calibration"]["clusters"], 60);
    assert!(decisions["non_members_rejected"].as_u64() <= decisions["rejected"].as_u64());
    let lines = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    let tested = lines.text().lines().filter(|line| line.contains("\"p_values\"")).count();
    assert_eq!(tested, 120);
}

/// Works are documents: the known ones count as works, not as passages, and a known work that is tested as well is named.
#[tokio::test(flavor = "multi_thread")]
async fn works_have_their_places_among_the_known_works() {
    let app = demo().await;
    let passages = |texts: &[String], name: &str| -> Vec<Value> {
        let passage =
            |(place, text): (usize, &String)| json!({ "text": text, "document": format!("{name}{}", place / 2) });
        texts.iter().enumerate().map(passage).collect()
    };
    let known = passages(&texts(0, 0..42), "known");
    let calibration = calibrated(&app, &json!({ "samples": known, "methods": ["loss"] })).await;
    assert_eq!((&calibration["clusters"], &calibration["texts"]), (&json!(21), &json!(42)));
    let mut samples = passages(&texts(1, 0..6), "member");
    samples.push(json!({ "text": known[5]["text"], "document": "quoted" }));
    samples.push(json!({ "text": texts(1, 6..7)[0] }));
    let body = json!({ "samples": samples, "methods": ["loss"], "calibration": calibration["id"], "decisions": { "fdr": 0.2 } });
    let results = app.audit(&body).await.ok()["results"].clone();
    let works = results["works"].as_array().unwrap();
    let names: Vec<(&str, u64)> =
        works.iter().map(|work| (work["document"].as_str().unwrap(), work["passages"].as_u64().unwrap())).collect();
    assert_eq!(names, [("member0", 2), ("member1", 2), ("member2", 2), ("quoted", 1)]);
    for work in works {
        let (above, p_value) = (work["known_above"].as_f64().unwrap(), work["p_value"].as_f64().unwrap());
        // 21 known works, without the one that is quoted.
        assert!((p_value - (above + 1.0) / 21.0).abs() < 1e-12, "{work}");
        assert!(work["p_value_adjusted"].as_f64().unwrap() >= p_value && work["listed"].is_boolean(), "{work}");
    }
    assert_eq!(results["decisions"]["tested"], 5);
    let warnings = results["warnings"].to_string();
    assert!(warnings.contains("1 cluster of the calibration is tested as well (documents: known2)"), "{warnings}");
}
