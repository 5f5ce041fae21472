//! Models that fail, hang or compute no numbers, as clients see them: what fails costs those whose texts it is, and no others.

use crate::common::app::{App, GOLDEN, TINY, golden};
use crate::common::client::{Client, send};
use crate::common::goldens::directory;
use crate::common::tampered::{Batch, Latch, MARK, sound, tampered};
use lm::models::ModelError;
use mia::TokenStats;
use pdr_audit::config::{ModelSettings, ModelSource, Settings};
use reqwest::Method;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Part of an error message that only the operator may see.
const SECRET: &str = "sesame";

const METHODS: [&str; 4] = ["loss", "zlib", "min_k", "min_k_plus_plus"];

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("Text {number} is about the {} houses of a town.", number * number)).collect()
}

/// Texts on which the model behaves otherwise.
fn marked(count: usize) -> Vec<String> {
    texts(count).iter().map(|text| format!("{text} {MARK}")).collect()
}

fn samples(texts: &[String]) -> Value {
    texts.iter().map(|text| json!({ "text": text })).collect()
}

fn request(texts: &[String]) -> Value {
    json!({ "inputs": texts, "methods": METHODS })
}

/// A job of each kind that scores, of texts that a test gives, with its route.
fn jobs(texts: fn(usize) -> Vec<String>) -> [(&'static str, Value); 4] {
    let [canary, twin] = [0, 1].map(|place| texts(2)[place].clone());
    [
        ("/v1/audits", json!({ "samples": samples(&texts(4)), "methods": METHODS })),
        ("/v1/calibrations", json!({ "samples": samples(&texts(20)), "methods": METHODS })),
        (
            "/v1/tests",
            json!({ "kind": "rank", "canaries": [{ "text": canary, "twins": [twin] }], "methods": ["loss"] }),
        ),
        ("/v1/memorization", json!({ "texts": texts(1), "prefix": 4, "suffix": 2, "stride": 1 })),
    ]
}

/// A job once it has ended.
async fn ended(client: &Client, path: &str, body: &Value) -> Value {
    send(client.request(Method::POST, path).header("prefer", "wait=60").json(body)).await.ok()
}

/// The lines of the scores of an audit.
async fn scores(client: &Client, audit: &Value) -> Vec<Value> {
    let answer = client.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    assert!(answer.status == 200 && !answer.text().contains("NaN"), "{}", answer.text());
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn codes(entry: &Value) -> Vec<&str> {
    entry["errors"].as_array().unwrap().iter().map(|error| error["code"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_model_costs_the_texts_that_cause_it_and_no_others() {
    let failures: [fn() -> ModelError; 3] = [
        || panic!("{SECRET}"),
        || ModelError::OutOfMemory(SECRET.to_owned()),
        || ModelError::Forward(SECRET.to_owned()),
    ];
    for fail in failures {
        let app = tampered(
            |_| {},
            vec![(TINY, Arc::new(move |batch| if batch.has_mark() { Err(fail()) } else { batch.run() }))],
        )
        .await;
        let (bad, good) = (marked(1), texts(8));
        let client: &Client = &app;
        let others = good.iter().map(|text| async { client.score(&request(std::slice::from_ref(text))).await });
        let refused = async { client.post("/v1/score", &request(&bad)).await };
        let (refused, others) = futures::join!(refused, futures::future::join_all(others));
        assert_eq!(refused.problem(503)["detail"], "the model failed; the service's log says why");
        assert!(!refused.text().contains(SECRET), "{}", refused.text());
        assert!(others.iter().all(|answer| answer["results"][0]["errors"] == json!([])), "{others:?}");
        // A request has all of its answer or none.
        app.post("/v1/score", &request(&[texts(9), bad.clone()].concat())).await.problem(503);

        // An audit has the others' scores.
        let body = json!({ "samples": samples(&[good, bad].concat()), "methods": METHODS });
        let audit = ended(&app, "/v1/audits", &body).await;
        assert_eq!(audit["status"], "succeeded", "{audit}");
        let lines = scores(&app, &audit).await;
        assert!(lines[..8].iter().all(|line| line["scores"].as_object().unwrap().len() == 4), "{lines:?}");
        assert_eq!((codes(&lines[8]), &lines[8]["scores"]), (vec!["model_failed"], &json!({})));
        // A job without one text that could be scored fails.
        for (path, body) in jobs(marked) {
            let job = ended(&app, path, &body).await;
            assert_eq!((&job["status"], &job["error"]["status"]), (&json!("failed"), &json!(503)), "{path}: {job}");
            assert!(!job.to_string().contains(SECRET), "{job}");
        }
        for probe in ["/livez", "/readyz"] {
            app.get(probe).await.ok();
        }
        app.assert_nothing_is_left().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_for_one_text_at_a_time_is_enough_and_changes_no_score() {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let tight = Arc::new(move |batch: &Batch| match batch.sequences.len() {
        0 | 1 => batch.run(),
        several => {
            counted.fetch_add(1, Ordering::SeqCst);
            Err(ModelError::OutOfMemory(format!("{several} sequences")))
        }
    });
    let app = tampered(|_| {}, vec![("tight", tight), ("wide", sound())]).await;
    let ask = async |model: &str| {
        let mut body = request(&texts(40));
        body["model"] = json!(model);
        app.score(&body).await["results"].clone()
    };
    assert_eq!(ask("tight").await, ask("wide").await);
    assert!(refused.load(Ordering::SeqCst) > 0, "all texts came one by one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_without_finite_numbers_has_errors_and_the_others_have_scores() {
    let without_numbers = Arc::new(|batch: &Batch| {
        let mut all = batch.run()?;
        for (sequence, stats) in batch.sequences.iter().zip(&mut all) {
            if batch.is_marked(sequence) {
                stats.fill(TokenStats { lp: f64::NAN, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN });
            }
        }
        Ok(all)
    });
    let app = tampered(|_| {}, vec![(TINY, without_numbers), ("sound", sound())]).await;
    let mixed: Vec<String> = [texts(3), marked(2), texts(4)[3..].to_vec()].concat();
    let ask = async |model: &str| {
        let mut body = request(&mixed);
        (body["model"], body["details"]) = (json!(model), json!(["tokens"]));
        app.score(&body).await["results"].as_array().unwrap().clone()
    };
    for (place, (result, expected)) in ask(TINY).await.iter().zip(ask("sound").await).enumerate() {
        if !(3..5).contains(&place) {
            assert_eq!(*result, expected);
            continue;
        }
        assert_eq!((codes(result), &result["scores"]), (vec!["non_finite"; 4], &json!({})), "{result}");
        let tokens = result["tokens"].as_array().unwrap();
        assert!(tokens.iter().all(|token| token["lp"].is_null() && token["sigma"].is_null()), "{result}");
    }
    let audit = ended(&app, "/v1/audits", &json!({ "samples": samples(&mixed), "methods": METHODS })).await;
    assert_eq!(audit["status"], "succeeded", "{audit}");
    assert!(audit["results"]["methods"].as_array().unwrap().iter().all(|method| method["scored"] == 4), "{audit}");
    let lines = scores(&app, &audit).await;
    assert!(
        lines[3..5].iter().all(|line| codes(line) == ["non_finite"; 4] && line["scores"] == json!({})),
        "{lines:?}"
    );
    let excluded = audit["results"]["samples"]["excluded"].as_array().unwrap();
    assert_eq!(excluded.len(), 8, "{excluded:?}");
}

/// A copy of the golden checkpoint whose weights are no numbers.
fn write_without_numbers(to: &Path) {
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(directory(GOLDEN).join(name), to.join(name)).unwrap();
    }
    let bytes = std::fs::read(directory(GOLDEN).join("model.safetensors")).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = read
        .tensors()
        .into_iter()
        .map(|(name, tensor)| {
            let data = match tensor.dtype() {
                Dtype::F32 if name.ends_with(".weight") => f32::NAN.to_le_bytes().repeat(tensor.data().len() / 4),
                _ => tensor.data().to_vec(),
            };
            (name, tensor.dtype(), tensor.shape().to_vec(), data)
        })
        .collect();
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, data)| (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap()));
    std::fs::write(to.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_without_numbers_scores_no_text_and_fails_no_request() {
    let place = tempfile::tempdir().unwrap();
    write_without_numbers(place.path());
    let path = place.path().to_owned();
    let source = ModelSource { text: path.display().to_string(), path };
    let app = App::with(|settings| settings.models = vec![ModelSettings { source, ..golden(TINY, GOLDEN) }]).await;
    let answer = app.score(&request(&texts(5))).await;
    for result in answer["results"].as_array().unwrap() {
        assert_eq!((codes(result), &result["scores"]), (vec!["non_finite"; 4], &json!({})), "{result}");
    }
    let [audit, calibration, test, memorization] = jobs(texts);
    let results = async |(path, body): (&str, Value)| {
        let job = ended(&app, path, &body).await;
        assert_eq!(job["status"], "succeeded", "{path}: {job}");
        job
    };
    let audit = results(audit).await;
    assert!(audit["results"]["methods"].as_array().unwrap().iter().all(|method| method["scored"] == 0), "{audit}");
    let calibration = results(calibration).await;
    for method in calibration["methods"].as_array().unwrap() {
        assert_eq!((&method["size"], &method["clusters"], method.get("resolution")), (&json!(0), &json!(0), None));
    }
    let test = results(test).await;
    assert_eq!(test["results"]["methods"][0]["p_value"], Value::Null, "{test}");
    assert_eq!(test["results"]["verdict"]["state"], "inconclusive", "{test}");
    let memorization = results(memorization).await;
    let text = &memorization["results"]["texts"][0];
    assert_eq!((&text["error"]["code"], &text["windows"]), (&json!("non_finite"), &json!([])), "{memorization}");
    // Nothing can be tuned on it.
    let tuned = json!({ "name": "unseen", "samples": samples(&texts(16)), "lora": { "rank": 2 } });
    let tuned = ended(&app, "/v1/finetunes", &tuned).await;
    assert_eq!(tuned["status"], "failed", "{tuned}");
    assert!(tuned["error"]["detail"].as_str().unwrap().contains("is not finite"), "{tuned}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_hangs_shows_and_holds_up_no_other_device() {
    let latch = Latch::new();
    // Any forward pass takes longer.
    let change = |settings: &mut Settings| settings.engine.forward_timeout = Duration::from_nanos(1);
    let app = tampered(change, vec![("stuck", latch.before_marked()), ("free", sound())]).await;
    let known = app.score(&request(&texts(1))).await;
    app.get("/livez").await.ok();
    let client = (*app).clone();
    let hanging = tokio::spawn(async move { client.post("/v1/score", &request(&marked(1))).await });
    latch.reached().await;
    let problem = app.get("/livez").await.problem(503);
    assert!(problem["detail"].as_str().unwrap().contains("engine.forward_timeout"), "{problem}");
    // It may have come back by itself, so that it is ready as it was.
    assert!(app.get("/readyz").await.ok()["device"]["busy_seconds"].is_f64());
    let free = json!({ "model": "free", "inputs": texts(3), "methods": METHODS });
    assert_eq!(app.score(&free).await["usage"]["forward_passes"], 3);
    // Cached texts need no device.
    let again = app.score(&request(&texts(1))).await;
    assert_eq!((&again["results"], &again["usage"]["cached_passes"]), (&known["results"], &json!(1)));
    app.get("/v1/models").await.ok();
    latch.open();
    assert_eq!(hanging.await.unwrap().status, 200);
    app.get("/livez").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_slow_model_hears_of_the_deadline_and_others_are_served() {
    let latch = Latch::new();
    let change = |settings: &mut Settings| settings.server.request_timeout = Duration::from_secs(5);
    let app = tampered(change, vec![("slow", latch.before_marked()), ("free", sound())]).await;
    let (late, behind) = (request(&marked(1)), request(&texts(1)));
    let late = async { (app.post("/v1/score", &late).await, "the one that is slow") };
    let behind = async {
        latch.reached().await;
        (app.post("/v1/score", &behind).await, "the one behind it")
    };
    let (late, behind) = futures::join!(late, behind);
    for (answer, which) in [late, behind] {
        let detail = answer.problem(504)["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("server.request_timeout") && detail.contains("/v1/audits"), "{which}: {detail}");
    }
    let free = json!({ "model": "free", "inputs": texts(3), "methods": METHODS });
    app.score(&free).await;
    // A job has the time that it takes.
    let audit = app.post("/v1/audits", &json!({ "samples": samples(&texts(4)), "methods": METHODS })).await.json();
    latch.open();
    app.assert_nothing_is_left().await;
    app.score(&request(&texts(2))).await;
    let path = format!("/v1/audits/{}", audit["id"].as_str().unwrap());
    let events = app.get(&format!("{path}/events")).await;
    assert!(events.text().contains("succeeded"), "{}", events.text());
    assert_eq!(app.get(&path).await.ok()["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_new_texts_before_they_are_tokenized_and_answers_known_ones() {
    let tokens = {
        let app = tampered(|_| {}, vec![(TINY, sound())]).await;
        let usage = app.score(&request(&marked(20))).await["usage"].clone();
        usage["tokens"].as_u64().unwrap() as usize
    };
    let latch = Latch::new();
    // Room for those texts, and one token before each and after it.
    let app =
        tampered(|settings| settings.engine.max_queue_tokens = Some(tokens + 40), vec![(TINY, latch.before_marked())]);
    let app = app.await;
    let known = texts(20);
    for half in known.chunks(10) {
        app.score(&request(half)).await;
    }
    let (client, body) = (Client::clone(&app), request(&marked(20)));
    let held = tokio::spawn(async move { client.post("/v1/score", &body).await });
    latch.reached().await;
    // As many new ones would be refused for good, as more than the queue takes, if they were counted: 413.
    let new: Vec<String> = texts(60).split_off(20);
    let refused = app.post("/v1/score", &request(&new)).await;
    assert!(!refused.header("retry-after").is_empty());
    refused.problem(503);
    let answer = app.score(&request(&known)).await;
    assert_eq!((&answer["usage"]["cached_passes"], &answer["usage"]["forward_passes"]), (&json!(20), &json!(0)));
    latch.open();
    held.await.unwrap().ok();
    app.post("/v1/score", &request(&new)).await.problem(413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_device_is_said_to_everybody_and_nobody_waits_for_it() {
    let lost = Arc::new(|batch: &Batch| match batch.has_mark() {
        true => Err(ModelError::Device(SECRET.to_owned())),
        false => batch.run(),
    });
    let app = tampered(|_| {}, vec![(TINY, lost), ("other", sound())]).await;
    app.get("/readyz").await.ok();
    let answers = [marked(1), texts(3)].map(|texts| request(&texts));
    app.post("/v1/score", &answers[0]).await.problem(503);
    // The engine ends as a whole, so that another process takes its place.
    assert!(app.engine.device_lost().await.contains(SECRET));
    for model in [TINY, "other"] {
        let mut body = answers[1].clone();
        body["model"] = json!(model);
        let answer = app.post("/v1/score", &body).await;
        assert_eq!(answer.problem(503)["detail"], "the device failed; the service's log says why");
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
    }
    let readiness = app.get("/readyz").await.problem(503);
    assert_eq!(
        (&readiness["readiness"]["device"]["lost"], &readiness["detail"]),
        (&json!(true), &json!("the device failed"))
    );
    for (path, body) in jobs(texts) {
        let job = ended(&app, path, &body).await;
        assert_eq!((&job["status"], &job["error"]["status"]), (&json!("failed"), &json!(503)), "{path}: {job}");
        assert!(!job.to_string().contains(SECRET), "{job}");
    }
    app.get("/livez").await.ok();
}
