//! Fine-tunes over HTTP: texts in, an adapter out that every method can name.

use crate::common::app::{App, TINY};
use crate::common::client::{Answer, send};
use crate::common::service::{Service, places};
use crate::goldens::rig::{results, score};
use pdr_audit::config::{AdapterSettings, ByteSize};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("The {i} boats of the harbour came back with {} baskets of herring.", i * i)).collect()
}

fn samples(texts: &[String]) -> Value {
    texts.iter().map(|text| json!({ "text": text, "label": 0 })).collect()
}

/// A fine-tune of two epochs of two steps on 16 texts.
fn body(name: &str) -> Value {
    json!({ "name": name, "samples": samples(&texts(16)), "lora": { "rank": 2 }, "optimizer": { "epochs": 2, "warmup_steps": 1 } })
}

async fn submit(app: &App, body: &Value, key: Option<&str>) -> Answer {
    let request = app.request(Method::POST, "/v1/finetunes").header("prefer", "wait=60").json(body);
    send(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await
}

fn path(finetune: &Value) -> String {
    format!("/v1/finetunes/{}", finetune["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_comes_out_and_scores() {
    let app = App::start().await;
    let done = submit(&app, &body("unseen"), None).await.ok();
    assert_eq!(done["status"], "succeeded", "{}", done["error"]);
    let facts = (&done["model"], &done["name"], &done["texts"], &done["results"]["adapter"]);
    assert_eq!(facts, (&json!(TINY), &json!("unseen"), &json!(16), &json!("tiny:unseen")));
    let steps = done["results"]["steps"].as_array().unwrap();
    let losses: Vec<f64> = steps.iter().map(|step| step["loss"].as_f64().unwrap()).collect();
    assert_eq!((losses.len(), &done["progress"]["done"], &done["progress"]["total"]), (4, &json!(4), &json!(4)));
    assert!(losses[3] < losses[0], "{losses:?}");
    assert_eq!(done["progress"]["loss"], losses[3]);

    let new = "A text about something else entirely, which nobody tuned on.";
    let ask = async |model: &str, methods: Value| {
        app.score(&json!({ "model": model, "inputs": [new], "methods": methods })).await
    };
    let compared = json!([{ "name": "fsd", "adapter": "unseen", "score": { "name": "loss" }, "label": "fsd" }]);
    let fsd = score(&results(&ask(TINY, compared.clone()).await)[0], "fsd");
    let plain = async |model: &str| score(&results(&ask(model, json!(["loss"])).await)[0], "loss");
    assert!((fsd - (plain(TINY).await - plain("tiny:unseen").await)).abs() < 1e-9);
    assert!(fsd < 0.0, "tuning on such texts makes them likelier: {fsd}");

    // The same request under another name gives the same adapter.
    let again = submit(&app, &body("again"), None).await.ok();
    assert_eq!(again["results"]["digest"], done["results"]["digest"]);
    let other = submit(&app, &json!({ "seed": 1, "name": "other", "samples": samples(&texts(16)) }), None).await.ok();
    assert_ne!(other["results"]["digest"], done["results"]["digest"]);

    // A text that it was tuned on has no such score, in whatever case it is written.
    let known = [texts(1)[0].to_uppercase(), new.to_owned()];
    let answer = app.score(&json!({ "inputs": known, "methods": compared })).await;
    let error = &results(&answer)[0]["errors"][0];
    assert_eq!((&error["code"], &error["label"]), (&json!("tuned_on"), &json!("fsd")), "{answer}");
    assert_eq!(error["detail"], "the adapter `tiny:unseen` was tuned on the text");
    assert!(results(&answer)[1]["scores"]["fsd"].is_f64());

    // It outlives its job, and is deleted by name.
    assert_eq!(app.delete(&path(&done)).await.status, 204);
    app.get(&path(&done)).await.problem(404);
    ask("tiny:unseen", json!(["loss"])).await;
    // The batch that ran last may hold it for a moment more.
    let begun = Instant::now();
    while app.delete("/v1/models/tiny/adapters/unseen").await.status == 409 {
        assert!(begun.elapsed() < Duration::from_secs(1), "the adapter stays in use");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let gone = json!({ "model": "tiny:unseen", "inputs": [new] });
    app.post("/v1/score", &gone).await.problem(404);
    assert_eq!(submit(&app, &body("unseen"), None).await.ok()["status"], "succeeded", "the name is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_of_non_members_is_tuned_on_and_a_key_outlives_it() {
    let app = App::start().await;
    let lines: String = texts(16).iter().map(|text| json!({ "text": text, "label": 0 }).to_string() + "\n").collect();
    let dataset = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into_bytes()).await.json();
    let body = json!({ "name": "unseen", "dataset": dataset["id"], "lora": { "rank": 2 } });
    let first = submit(&app, &body, Some("k")).await.ok();
    assert_eq!((&first["status"], &first["dataset"]), (&json!("succeeded"), &dataset["id"]), "{}", first["error"]);
    assert_eq!(app.delete(&format!("/v1/datasets/{}", dataset["id"].as_str().unwrap())).await.status, 204);
    assert_eq!(submit(&app, &body, Some("k")).await.ok()["id"], first["id"]);
    app.post("/v1/finetunes", &json!({ "name": "other", "dataset": dataset["id"] })).await.problem(404);
    // An audit takes both classes.
    let one_class = json!({ "samples": samples(&texts(16)), "methods": ["loss"] });
    assert_eq!(app.post("/v1/audits", &one_class).await.pointers(), ["/samples"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_leaves_out_what_was_tuned_on() {
    let app = App::start().await;
    submit(&app, &body("unseen"), None).await.ok();
    let all = texts(40);
    let samples: Vec<Value> =
        all.iter().enumerate().map(|(i, text)| json!({ "text": text, "label": usize::from(i >= 28) })).collect();
    let methods = json!(["min_k", { "name": "fsd", "adapter": "unseen", "label": "fsd" }]);
    let metrics = json!({ "bootstrap": { "replicates": 20 } });
    let audit = app.audit(&json!({ "samples": samples, "methods": methods, "metrics": metrics })).await.ok();
    assert_eq!(audit["status"], "succeeded", "{}", audit["error"]);
    let method = |index: usize| &audit["results"]["methods"][index];
    assert_eq!((&method(0)["scored"], &method(1)["scored"]), (&json!(40), &json!(24)));
    let excluded = audit["results"]["samples"]["excluded"].as_array().unwrap();
    let left_out = |index: usize| json!({ "index": index, "label": "fsd", "code": "tuned_on" });
    assert_eq!(*excluded, (0..16).map(left_out).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_with_a_key_is_submitted_once_and_a_name_is_taken_once() {
    let app = App::start().await;
    let first = submit(&app, &body("unseen"), Some("k")).await.ok();
    let again = submit(&app, &body("unseen"), Some("k")).await.ok();
    assert_eq!(first["id"], again["id"]);
    submit(&app, &body("other"), Some("k")).await.problem(422);
    let taken = submit(&app, &body("unseen"), None).await.problem(409);
    assert!(taken["detail"].as_str().unwrap().contains("model `tiny` has an adapter `unseen` already"), "{taken}");
    // A fine-tune that has not ended has its name as well, and frees it when it ends without an adapter.
    let long = json!({ "name": "long", "samples": samples(&texts(64)), "optimizer": { "epochs": 100 } });
    let submitted = app.post("/v1/finetunes", &long).await.json();
    app.post("/v1/finetunes", &body("long")).await.problem(409);
    let cancelled = app.post(&format!("{}/cancel", path(&submitted)), &json!({})).await.ok();
    assert_eq!((&cancelled["status"], &cancelled["results"]), (&json!("cancelled"), &Value::Null));
    assert_eq!(submit(&app, &body("long"), None).await.ok()["status"], "succeeded");
    let listed = app.get("/v1/finetunes?status=succeeded").await.ok();
    let names: Vec<&Value> = listed["finetunes"].as_array().unwrap().iter().map(|finetune| &finetune["name"]).collect();
    assert_eq!(names, ["long", "unseen"]);
    // An audit is no fine-tune.
    app.get(&format!("/v1/audits/{}", first["id"].as_str().unwrap())).await.problem(404);
    app.delete(&format!("/v1/audits/{}", first["id"].as_str().unwrap())).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_tell_the_loss() {
    let app = App::start().await;
    let submitted = app.post("/v1/finetunes", &body("unseen")).await.json();
    let events = app.get(&format!("{}/events", path(&submitted))).await;
    let data = |name: &str| {
        let blocks = events.text().split("\n\n").filter(|block| block.contains(&format!("event: {name}"))).last();
        let line = blocks.and_then(|block| block.lines().find_map(|line| line.strip_prefix("data: "))).unwrap();
        serde_json::from_str::<Value>(line).unwrap()
    };
    assert_eq!(data("status"), json!({ "status": "succeeded" }));
    let progress = data("progress");
    assert_eq!((&progress["done"], &progress["total"]), (&json!(4), &json!(4)));
    assert!(progress["loss"].as_f64().is_some_and(f64::is_finite), "{progress}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_tuned_is_refused_by_name() {
    let app = App::with(|settings| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lora/gptneox-parallel");
        settings.models[0].adapters = vec![AdapterSettings { name: "tuned".into(), source }];
    })
    .await;
    let with = |changes: Value| {
        let mut body = body("unseen");
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        body
    };
    let mut members = samples(&texts(16));
    members[3]["label"] = json!(1);
    for (body, pointer, detail) in [
        (with(json!({ "samples": members })), "/samples", "1 of 16 texts are members"),
        (
            with(json!({ "samples": samples(&texts(7)) })),
            "/samples",
            "there are 7 texts to tune on; it takes at least 8",
        ),
        (with(json!({ "optimizer": { "batch_size": 32 } })), "/samples", "16 texts do not fill one batch of 32"),
        (with(json!({ "lora": { "rank": 0 } })), "/lora/rank", "rank is 0"),
        (with(json!({ "optimizer": { "learning_rate": -1 } })), "/optimizer/learning_rate", "above 0"),
        (with(json!({ "name": "a:b" })), "/name", "characters A-Z a-z 0-9"),
        (with(json!({ "model": "tiny:tuned" })), "/model", "is tuned itself"),
        (with(json!({ "timeout_seconds": 0 })), "/timeout_seconds", "outside 1 to"),
        (json!({ "name": "unseen" }), "", "neither `samples` nor `dataset`"),
    ] {
        let problem = app.post("/v1/finetunes", &body).await.problem(422);
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{problem}");
        assert!(fault["detail"].as_str().unwrap().contains(detail), "{fault}");
    }
    app.post("/v1/finetunes", &with(json!({ "model": "absent" }))).await.problem(404);
    app.post("/v1/finetunes", &with(json!({ "name": "tuned" }))).await.problem(409);
    // Faults that only the model can detect fail the job, and leave no adapter.
    let failed = async |changes: Value| {
        let done = submit(&app, &with(changes), None).await.ok();
        assert_eq!((&done["status"], &done["results"]), (&json!("failed"), &Value::Null), "{done}");
        done["error"]["detail"].as_str().unwrap().to_owned()
    };
    let error = failed(json!({ "lora": { "target_modules": ["absent"] } })).await;
    assert!(error.contains("absent"), "{error}");
    let error = failed(json!({ "lora": { "rank": 512 } })).await;
    assert!(error.contains("rank"), "{error}");
    let error = failed(json!({ "optimizer": { "learning_rate": 1e30, "warmup_steps": 0, "epochs": 5 } })).await;
    assert!(error.contains("is not finite; a smaller `learning_rate` may help"), "{error}");
    let adapters = &app.get("/v1/models").await.ok()["models"][0]["adapters"];
    assert_eq!(adapters.as_array().unwrap().len(), 1, "{adapters}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_little_memory_is_said_with_the_numbers() {
    let app = App::with(|settings| settings.engine.memory = Some(ByteSize::mib(80))).await;
    let done = submit(&app, &body("unseen"), None).await.ok();
    assert_eq!(done["status"], "failed", "{done}");
    let detail = done["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("bytes; device `cpu` has 83886080, of which models and a batch of them take"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scoring_goes_on_while_a_model_is_tuned() {
    let app = App::start().await;
    let long = json!({ "name": "long", "samples": samples(&texts(64)), "optimizer": { "epochs": 100 } });
    let submitted = app.post("/v1/finetunes", &long).await.json();
    let alone = app.score(&json!({ "inputs": ["One text."], "methods": ["loss"] })).await;
    for i in 0..20 {
        app.score(&json!({ "inputs": [format!("Text {i} while a model is tuned.")], "methods": ["loss"] })).await;
    }
    let meanwhile = app.get(&path(&submitted)).await.ok();
    assert!(["queued", "running"].contains(&meanwhile["status"].as_str().unwrap()), "{meanwhile}");
    let again = app.score(&json!({ "inputs": ["One text."], "methods": ["loss"] })).await;
    assert_eq!(alone["results"], again["results"]);
    app.post(&format!("{}/cancel", path(&submitted)), &json!({})).await.ok();
}

/// Members and non-members of two groups, with ids.
fn labelled(count: usize) -> Vec<Value> {
    let sample = |(i, text): (usize, String)| json!({ "id": i, "text": text, "label": i % 2, "group": if i < count / 2 { "a" } else { "b" } });
    texts(count).into_iter().enumerate().map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_tunes_on_a_share_of_its_own_texts() {
    let app = App::start().await;
    let mut samples = labelled(80);
    // The same text in another spelling goes where the first goes.
    samples.push(json!({ "id": "again", "text": texts(1)[0].to_uppercase(), "label": 0, "group": "b" }));
    let fsd = json!({ "name": "fsd", "split": 0.3, "seeds": [42, 43], "score": { "name": "loss" }, "label": "fsd" });
    let body =
        json!({ "samples": samples, "methods": ["min_k", fsd], "metrics": { "bootstrap": { "replicates": 20 } } });
    let audit = app.audit(&body).await.ok();
    assert_eq!(audit["status"], "succeeded", "{}", audit["error"]);
    let results = &audit["results"];
    let labels: Vec<&Value> = results["methods"].as_array().unwrap().iter().map(|method| &method["label"]).collect();
    assert_eq!(labels, ["min_k(k=0.2)", "fsd(seeds=42)", "fsd(seeds=43)"]);
    let method = &results["methods"][1];
    assert_eq!((&method["split"], &method["seeds"], &method["adapter"]), (&json!(0.3), &json!(42), &Value::Null));
    assert_eq!(method["versus_baseline"]["baseline"], "loss");

    // 12 of the 40 texts of each group are left out, the non-members among them are tuned on, and the others are scored.
    let splits = results["splits"].as_array().unwrap();
    // The control is tuned on the same texts.
    let (target, control): (Vec<&Value>, Vec<&Value>) =
        splits.iter().partition(|split| split["model"] == audit["model"]);
    assert_eq!((target.len(), control.len()), (2, 2));
    assert!(target.iter().zip(&control).all(|(a, b)| a["tuned_on"] == b["tuned_on"] && a["adapter"] != b["adapter"]));
    assert!(method["control"]["auroc"].is_number() && method["control"]["difference"].is_number(), "{method}");
    for (place, split) in target.into_iter().enumerate() {
        let label = &results["methods"][place + 1]["label"];
        let excluded: Vec<&Value> = results["samples"]["excluded"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|excluded| excluded["label"] == *label)
            .collect();
        assert!(excluded.iter().all(|excluded| excluded["code"] == "in_split"));
        let counted = json!({ "label": label, "code": "in_split", "samples": excluded.len() });
        assert!(results["samples"]["exclusions"].as_array().unwrap().contains(&counted), "{}", results["samples"]);
        let index = |excluded: &&Value| excluded["index"].as_u64().unwrap() as usize;
        let indexes: Vec<usize> = excluded.iter().map(index).collect();
        assert_eq!(indexes.contains(&0), indexes.contains(&80), "one text, one place");
        let first = |range: std::ops::Range<usize>| indexes.iter().filter(|index| range.contains(index)).count();
        assert_eq!((first(0..40), first(40..80)), (12, 12));
        let non_members = indexes.iter().filter(|index| **index < 80 && *index % 2 == 0).count();
        assert_eq!(
            (split["left_out"].as_u64().unwrap() as usize, &split["tuned_on"]),
            (indexes.len(), &json!(non_members))
        );
        assert_eq!(split["seed"], 42 + place as u64);
        assert!(split["adapter"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(results["methods"][place + 1]["scored"].as_u64().unwrap() as usize, 81 - indexes.len());
    }
    let seeds = &results["seeds"][0];
    assert_eq!((&seeds["labels"], &seeds["seeds"]), (&json!(["fsd(seeds=42)", "fsd(seeds=43)"]), &json!([42, 43])));
    let auroc = |place: usize| results["methods"][place]["auroc"].as_f64().unwrap();
    assert!((seeds["auroc"]["mean"].as_f64().unwrap() - (auroc(1) + auroc(2)) / 2.0).abs() < 1e-12);
    assert_eq!(seeds["delta"]["each"].as_array().unwrap().len(), 2);

    // The models that were tuned are gone, and the same audit gives the same.
    assert!(app.get("/v1/models").await.ok()["models"][0].get("adapters").is_none());
    let again = app.audit(&body).await.ok();
    let findings = |audit: &Value| {
        let mut results = audit["results"].clone();
        results.as_object_mut().unwrap().retain(|field, _| field != "usage" && field != "plan");
        results
    };
    assert_eq!(findings(&again), findings(&audit));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_split_that_cannot_be_tuned_on_is_refused_by_name() {
    let app = App::start().await;
    let refusal = async |path: &str, body: Value, pointer: &str, detail: &str| {
        let problem = app.post(path, &body).await.problem(422);
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{problem}");
        assert!(fault["detail"].as_str().unwrap().contains(detail), "{fault}");
    };
    let audit = |samples: Vec<Value>, method: Value| json!({ "samples": samples, "methods": [method] });
    let split = json!({ "name": "fsd", "split": 0.3 });
    refusal("/v1/score", json!({ "inputs": ["a b"], "methods": [split] }), "/methods/0/split", "texts of an audit")
        .await;
    for (method, pointer, detail) in [
        (json!({ "name": "fsd", "split": 1 }), "/methods/0/split", "split is 1.0, outside (0, 1)"),
        (json!({ "name": "fsd", "split": 0.3, "adapter": "x" }), "/methods/0/adapter", "no adapter"),
        (json!({ "name": "fsd", "split": 0.3, "seeds": [1.5] }), "/methods/0/seeds/0", "not a whole number"),
        (json!({ "name": "fsd", "seeds": 1 }), "/methods/0", "no adapter: name one"),
        (json!({ "name": "fsd", "split": 0.3, "seeds": [] }), "/methods/0/seeds", "the list of values is empty"),
    ] {
        refusal("/v1/audits", audit(labelled(80), method), pointer, detail).await;
    }
    let unlabelled: Vec<Value> = texts(80).iter().map(|text| json!({ "text": text })).collect();
    refusal("/v1/audits", audit(unlabelled, split.clone()), "/methods/0/split", "without labels").await;
    // Their number is known once the texts are read.
    let done = app.audit(&audit(labelled(20), split)).await.ok();
    assert_eq!(done["status"], "failed");
    let detail = done["error"]["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("texts to tune on; it takes at least 8"), "{detail}");
}

/// Submits a fine-tune of the demo model that takes some seconds.
async fn begin(service: &Service) -> String {
    let body = json!({ "name": "unseen", "samples": samples(&texts(64)), "optimizer": { "epochs": 4 } });
    let answer = service.client.post("/v1/finetunes", &body).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    path(&answer.json())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `.ci/full` runs it"]
async fn a_killed_process_makes_no_difference_to_the_adapter() {
    let directory = tempfile::tempdir().unwrap();
    for place in places(directory.path()).await {
        let service = Service::start(&place, &directory.path().join("statistics"));
        let undisturbed = {
            let other = format!("sqlite://{}/{}.db", directory.path().display(), uuid::Uuid::new_v4());
            let alone = Service::start(&other, &directory.path().join("others"));
            let done = alone.ended_at(&begin(&alone).await).await;
            alone.kill();
            done
        };
        let job = begin(&service).await;
        while service.client.get(&job).await.ok()["progress"]["done"] == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        service.kill();
        let service = Service::start(&place, &directory.path().join("statistics"));
        let done = service.ended_at(&job).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        assert_eq!(done["results"], undisturbed["results"]);
        let request =
            json!({ "inputs": ["A text."], "methods": [{ "name": "fsd", "adapter": "unseen", "label": "fsd" }] });
        let before = service.client.score(&request).await;
        service.kill();
        // The adapter is in the store.
        let service = Service::start(&place, &directory.path().join("statistics"));
        let after = service.client.score(&request).await;
        assert_eq!(before["results"], after["results"]);
        service.kill();
    }
}
