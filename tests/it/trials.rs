//! `/v1/tests` and `pdr-audit test`: texts against comparable ones, without a threshold.

use crate::common::DEMO_BY_DEFAULT;
use crate::common::app::{App, REFERENCE, TINY};
use crate::common::client::{Answer, send};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::{Command, Output};

/// The texts of the demo's audit with this label.
fn demo_texts(label: u8) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl");
    let file = std::fs::read_to_string(path).unwrap();
    let samples = file.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    samples
        .filter(|sample| sample["label"] == label)
        .map(|sample| sample["text"].as_str().unwrap().to_owned())
        .collect()
}

/// With the demo model, which was trained on the members among its texts, and its reference.
async fn demo() -> App {
    App::with(|settings| {
        settings.models = Vec::new();
        settings.engine.default_model = None;
    })
    .await
}

async fn submit(app: &App, body: &Value, key: Option<&str>) -> Answer {
    let request = app.request(Method::POST, "/v1/tests").header("prefer", "wait=60").json(body);
    send(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await
}

/// The results of a test, which must succeed.
async fn results(app: &App, body: &Value) -> Value {
    let done = submit(app, body, None).await.ok();
    assert_eq!(done["status"], "succeeded", "{}", done["error"]);
    done["results"].clone()
}

fn p_value(method: &Value) -> f64 {
    method["p_value"].as_f64().unwrap_or_else(|| panic!("no p-value: {method}"))
}

/// SHA-256 over the kind of a test, its method, its nonce and the texts of its units with their numbers, each preceded by its length.
fn commitment(kind: &str, method: &str, nonce: &str, units: &[Vec<&str>]) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    [kind, method, nonce].into_iter().for_each(&mut add);
    for texts in units {
        add(&texts.len().to_string());
        texts.iter().copied().for_each(&mut add);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_score_higher_than_held_out_texts_and_members_do_not() {
    let app = demo().await;
    let (members, others) = (demo_texts(1), demo_texts(0));
    let body = json!({ "kind": "dataset", "suspects": members[..150], "held_out": others[..150] });
    let report = results(&app, &body).await;
    assert_eq!((&report["kind"], &report["samples"]["total"]), (&json!("dataset"), &json!(300)));
    let method = &report["methods"][0];
    assert_eq!(
        (&method["label"], report["methods"].as_array().unwrap().len()),
        (&json!("ref(reference=demo-reference)"), 1)
    );
    assert!(p_value(method) < 0.01, "{method}");
    assert_eq!(method["mann_whitney"]["p_value"], method["p_value"]);
    assert!(
        method["mann_whitney"]["auroc"].as_f64().unwrap() > 0.7 && method["welch"]["p_value"].as_f64().unwrap() < 0.01
    );
    assert_eq!((&method["suspects"], &method["held_out"], &method["tested"]), (&json!(150), &json!(150), &json!(300)));
    assert_eq!((&method["control"]["model"], method.get("p_value_adjusted")), (&json!("demo-reference"), None));
    let verdict = &report["verdict"];
    assert_eq!((&verdict["state"], &verdict["primary"]), (&json!("association"), &method["label"]), "{verdict}");
    assert_eq!(verdict["design"], "observational");
    assert_eq!(report["comparability"]["state"], "comparable");
    assert_eq!(verdict["reason"], "above_control");
    assert!(report["blind"]["words"]["auroc"].is_f64() && report["provenance"]["model"] == "demo");

    let body = json!({ "kind": "dataset", "suspects": members[..100], "held_out": members[100..200] });
    let report = results(&app, &body).await;
    assert!(p_value(&report["methods"][0]) > 0.01, "{}", report["methods"]);
    let verdict = &report["verdict"];
    assert_eq!((&verdict["state"], &verdict["reason"]), (&json!("no_association"), &json!("not_above_chance")));
    assert!((verdict["could_have_found"].as_f64().unwrap() - 0.6296547235810628).abs() < 1e-9, "{verdict}");
    assert_eq!(verdict["lists"], json!(["suspects", "held-out texts"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_methods_are_adjusted_and_have_a_control() {
    let app = demo().await;
    let methods = json!(["loss", "min_k_plus_plus", "ref"]);
    let held_out = [&demo_texts(0)[..30], &demo_texts(1)[..1]].concat();
    let body = json!({ "kind": "dataset", "suspects": demo_texts(1)[..30],
        "held_out": held_out, "methods": methods });
    let report = results(&app, &body).await;
    let [loss, min_k, primary] = [0, 1, 2].map(|place| report["methods"][place].clone());
    assert_eq!(report["verdict"]["primary"], "ref(reference=demo-reference)");
    assert!(primary.get("p_value_adjusted").is_none());
    // By Holm: the smaller of two counts twice, the larger at least as much.
    let mut both = [p_value(&loss), p_value(&min_k)];
    both.sort_by(f64::total_cmp);
    let smaller = (2.0 * both[0]).min(1.0);
    let mut adjusted = [&loss, &min_k].map(|method| method["p_value_adjusted"].as_f64().unwrap());
    adjusted.sort_by(f64::total_cmp);
    assert_eq!(adjusted, [smaller, both[1].max(smaller)]);
    // The text on both sides counts in neither number.
    assert_eq!((&report["samples"]["mixed_clusters"], &loss["suspects"]), (&json!(1), &json!(29)));
    let control = &loss["control"];
    let difference = loss["mann_whitney"]["auroc"].as_f64().unwrap() - control["auroc"].as_f64().unwrap();
    assert!((control["difference"].as_f64().unwrap() - difference).abs() < 1e-12, "{loss}");

    // Without a control, the texts alone decide.
    let mut alone = body.clone();
    alone["control"] = Value::Null;
    alone.as_object_mut().unwrap().remove("methods");
    let report = results(&app, &alone).await;
    assert_eq!(report["methods"][0]["label"], "min_k_plus_plus(k=0.2)");
    assert!(report["methods"][0].get("control").is_none());
    let reason = &report["verdict"]["reason"];
    let of_texts = ["lists_differ", "too_few_to_compare", "not_above_differences", "not_above_chance"];
    assert!(of_texts.contains(&reason.as_str().unwrap()), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn public_texts_are_compared_with_their_private_rewrites() {
    let app = demo().await;
    let (members, others) = (demo_texts(1), demo_texts(0));
    let documents: Vec<Value> =
        (0..10).map(|n| json!({ "public": members[n], "private": [others[n], others[n + 50]] })).collect();
    let units: Vec<Vec<&str>> = (0..10).map(|n| vec![&*members[n], &*others[n], &*others[n + 50]]).collect();
    let committed = |method: &str| commitment("paired", method, "7f", &units);
    let promised = committed("ref(reference=demo-reference)");
    let mut body = json!({ "kind": "paired", "documents": documents, "commitment": promised, "nonce": "7f" });
    let report = results(&app, &body).await;
    let method = &report["methods"][0];
    assert!(p_value(method) < 0.01 && method["permutation"]["exact"] == true, "{method}");
    assert_eq!((&method["tested"], &method["smallest_p_value"]), (&json!(10), &json!(1.0 / 3.0_f64.powi(10))));
    assert!(method.get("control").is_none() && report.get("blind").is_none());
    assert_eq!(report["commitment"]["matches"], true, "{}", report["commitment"]);
    let verdict = &report["verdict"];
    assert_eq!((&verdict["state"], &verdict["committed"]), (&json!("evidence"), &json!(true)));
    let effect = &verdict["effect"];
    assert_eq!((&effect["measure"], &effect["value"]), (&json!("mean_difference"), &method["permutation"]["mean"]));
    assert!(effect["interval"][0].as_f64().unwrap() > 0.0 && verdict["p_value"] == method["p_value"], "{verdict}");

    // The same numbers are no evidence where another method was promised.
    body["commitment"] = json!(committed("loss"));
    let report = results(&app, &body).await;
    let commitments = &report["commitment"];
    assert_eq!((&commitments["given"], &commitments["matches"]), (&body["commitment"], &json!(false)));
    assert_eq!(commitments["computed"], promised);
    assert_eq!(report["verdict"]["reason"], "commitment_mismatch");

    // A control is asked for; the difference to it is tested as well.
    let mut controlled = json!({ "kind": "paired", "documents": documents, "control": "demo-reference" });
    controlled["methods"] = json!(["loss", "ref"]);
    let report = results(&app, &controlled).await;
    let [loss, by_reference] = [0, 1].map(|place| report["methods"][place].clone());
    assert_eq!(loss["beyond_control"]["model"], "demo-reference");
    assert!(p_value(&loss["beyond_control"]) < 0.01 && loss["beyond_control"]["tested"] == 10, "{loss}");
    // `ref` is the difference of the two losses, whatever it is tested beyond.
    assert_eq!(by_reference["beyond_control"]["p_value"], by_reference["p_value"]);
    let mean = |test: &Value| test["permutation"]["mean"].as_f64().unwrap();
    assert!((mean(&loss["beyond_control"]) - mean(&by_reference)).abs() < 1e-12, "{loss} {by_reference}");
    assert_eq!(report["verdict"]["reason"], "above_control");

    // An order that any model prefers, as the control shows.
    let shards: Vec<Value> = members[..20].iter().map(|text| json!(text.split(' ').collect::<Vec<_>>())).collect();
    let natural = json!({ "kind": "order", "shards": shards, "shuffles": 10, "separator": " ", "methods": ["loss"] });
    let report = results(&app, &natural).await;
    assert!(p_value(&report["methods"][0]) < 0.01, "{}", report["methods"]);
    assert_eq!(report["methods"][0]["beyond_control"]["model"], "demo-reference");
    assert_eq!(report["verdict"]["reason"], "under_control_as_well");
    assert_eq!(report["verdict"]["state"], "inconclusive");

    // The others among themselves.
    let null = |n: usize| json!({ "public": others[n], "private": [others[n + 12], others[n + 50]] });
    let documents: Vec<Value> = (0..12).map(null).collect();
    let report = results(&app, &json!({ "kind": "paired", "documents": documents, "methods": ["loss"] })).await;
    assert_eq!(report["verdict"]["reason"], "high_p_value");
}

#[tokio::test(flavor = "multi_thread")]
async fn canaries_rank_among_their_twins() {
    let app = demo().await;
    let (members, others) = (demo_texts(1), demo_texts(0));
    let canaries: Vec<Value> =
        (0..10).map(|n| json!({ "text": members[n], "twins": others[5 * n..5 * n + 5] })).collect();
    let report = results(&app, &json!({ "kind": "rank", "canaries": canaries })).await;
    let method = &report["methods"][0];
    assert!(p_value(method) < 0.01, "{method}");
    assert_eq!(
        (&method["canary_rank"]["canaries"], &method["canary_rank"]["expected_rank_sum"]),
        (&json!(10), &json!(25.0))
    );
    assert_eq!(report["verdict"]["state"], "evidence");
    // A canary that is given twice counts once.
    let twice = json!({ "kind": "rank", "canaries": [canaries[0], canaries[1], canaries[0]] });
    let repeated = results(&app, &twice).await;
    assert_eq!((&repeated["samples"]["repeated"], &repeated["methods"][0]["tested"]), (&json!(1), &json!(2)));
    // The rank of a single canary among six texts is no smaller than 1/6.
    let report = results(&app, &json!({ "kind": "rank", "canaries": canaries[..1] })).await;
    assert_eq!(
        (&report["verdict"]["state"], &report["verdict"]["reason"]),
        (&json!("inconclusive"), &json!("no_power"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_order_is_compared_with_random_ones() {
    let app = App::start().await;
    let items = ["The river rose.", "The town slept.", "A bell rang twice.", "Nobody came.", "Then it rained."];
    let others = ["One boat left.", "Two boats stayed.", "Three came back.", "Four sank."];
    let body = json!({ "kind": "order", "shards": [items, others], "shuffles": 8, "separator": " " });
    let done = submit(&app, &body, None).await.ok();
    assert_eq!((&done["texts"], &done["progress"]["done"]), (&json!(18), &json!(18)));
    let method = &done["results"]["methods"][0];
    assert_eq!(
        (&method["label"], &method["tested"], &method["order"]["shards"]),
        (&json!("loss"), &json!(2), &json!(2))
    );
    assert_eq!(p_value(method), method["order"]["t"]["p_value"].as_f64().unwrap());
    // The same orders again, and others with another seed.
    assert_eq!(results(&app, &body).await["methods"], done["results"]["methods"]);
    let mut reseeded = body.clone();
    reseeded["seed"] = json!(1);
    assert_ne!(results(&app, &reseeded).await["methods"], done["results"]["methods"]);

    // A single shard has the rank of its order; 8 orders cannot give a p-value below 0.01.
    let mut single = body.clone();
    single["shards"] = json!([items]);
    let report = results(&app, &single).await;
    let method = &report["methods"][0];
    assert_eq!(method["p_value"], method["order"]["permutation_p_value"]);
    assert_eq!((&method["smallest_p_value"], &report["verdict"]["reason"]), (&json!(1.0 / 9.0), &json!("no_power")));

    // A shard that is longer than the context is named, once.
    let long: Vec<String> = (0..60).map(|n| format!("Item number {n} of many.")).collect();
    let mut with_long = body.clone();
    with_long["shards"] = json!([items, long, others]);
    let report = results(&app, &with_long).await;
    assert_eq!(report["samples"]["excluded"], json!([{ "pointer": "/shards/1", "code": "too_long" }]));
    assert_eq!(report["samples"]["exclusions"], json!([{ "code": "too_long", "samples": 1 }]));
    assert_eq!((&report["methods"][0]["tested"], &report["methods"][0]["left_out"]), (&json!(2), &json!(1)));
    with_long["overflow"] = json!("truncate");
    let report = results(&app, &with_long).await;
    assert_eq!((&report["samples"]["excluded"], &report["methods"][0]["tested"]), (&json!([]), &json!(3)));
    assert_eq!(report["warnings"][0]["code"], "truncated_texts", "{}", report["warnings"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_without_a_score_are_counted_beyond_those_that_are_named() {
    let app = App::start().await;
    let long = |number: usize| format!("Number {number} {}", "has more words than the context ".repeat(30));
    let short = |number: usize| format!("Text {number} of this test.");
    let suspects: Vec<String> = (0..1_100).map(long).chain((0..2).map(short)).collect();
    let held_out: Vec<String> = (2..4).map(short).collect();
    let methods = json!(["loss", { "name": "surp", "max_entropy": 1e-300, "label": "nothing" }]);
    let body = json!({ "kind": "dataset", "suspects": suspects, "held_out": held_out, "methods": methods });
    let samples = results(&app, &body).await["samples"].clone();
    let excluded = samples["excluded"].as_array().unwrap();
    assert_eq!((excluded.len(), &excluded[999]["pointer"]), (1_000, &json!("/suspects/999")));
    let nothing = json!({ "label": "nothing", "code": "nothing_selected", "samples": 4 });
    assert_eq!(samples["exclusions"], json!([{ "code": "too_long", "samples": 1_100 }, nothing]));
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_without_a_score_and_on_both_sides_do_not_count() {
    let app = App::start().await;
    let both = "A text that is on both sides of the test.";
    let suspects = json!(["Some text of a few words.", { "id": 7, "text": "a" }, both]);
    let body = json!({ "kind": "dataset", "suspects": suspects, "held_out": [both, "Another one, of other words."] });
    let report = results(&app, &body).await;
    let excluded = json!([{ "pointer": "/suspects/1", "id": 7, "code": "too_short" }]);
    assert_eq!((&report["samples"]["excluded"], &report["samples"]["mixed_clusters"]), (&excluded, &json!(1)));
    let method = &report["methods"][0];
    assert_eq!((&method["suspects"], &method["held_out"], &method["left_out"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(report["verdict"]["reason"], "too_few");
    // Nothing at all to compare.
    let body = json!({ "kind": "dataset", "suspects": [both], "held_out": [both] });
    let report = results(&app, &body).await;
    assert_eq!(report["verdict"]["reason"], "too_few");
    assert!(report["methods"][0]["error"].as_str().unwrap().contains("at least one on each side"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_faults_of_a_request_are_named_at_once() {
    let app = App::start().await;
    let texts = json!(["Some text of a few words."]);
    let dataset = |field: &str, value: Value| {
        let mut body = json!({ "kind": "dataset", "suspects": texts, "held_out": texts });
        body[field] = value;
        body
    };
    for (body, pointers) in [
        (json!({ "kind": "other" }), vec!["/kind"]),
        (json!({ "kind": "dataset" }), vec![""]),
        (json!({ "kind": "dataset", "suspects": texts }), vec![""]),
        (
            json!({ "kind": "dataset", "suspects": [], "held_out": [], "control": TINY, "primary": "x" }),
            vec!["/control", "/primary", "/suspects", "/held_out"],
        ),
        (dataset("suspects", json!(["a", 1])), vec!["/suspects/1"]),
        (dataset("documents", json!([])), vec!["/documents"]),
        (dataset("methods", json!(["neighbor"])), vec!["/methods/0/generator"]),
        (dataset("methods", json!([])), vec!["/methods"]),
        (dataset("commitment", json!("abc")), vec!["/commitment"]),
        (dataset("timeout_seconds", json!(0)), vec!["/timeout_seconds"]),
        (dataset("name", json!("")), vec!["/name"]),
        (json!({ "kind": "paired", "documents": [{ "public": "a b", "private": [] }] }), vec!["/documents/0/private"]),
        (json!({ "kind": "paired" }), vec![""]),
        (
            json!({ "kind": "rank", "canaries": [], "suspects": texts, "control": REFERENCE }),
            vec!["/suspects", "/canaries"],
        ),
        (
            json!({ "kind": "order", "shards": [["a"], ["b", "c"]], "shuffles": 0, "seed": -1 }),
            vec!["/seed", "/shards/0", "/shuffles"],
        ),
    ] {
        assert_eq!(app.post("/v1/tests", &body).await.pointers(), pointers, "{body}");
    }
    let split = json!([{ "name": "fsd", "split": 0.3, "score": { "name": "loss" } }]);
    let pointers = app.post("/v1/tests", &dataset("methods", split)).await.pointers();
    assert!(pointers.len() == 1 && pointers[0].starts_with("/methods/0"), "{pointers:?}");
    // One document is few, and no fault.
    let one =
        json!({ "kind": "paired", "documents": [{ "public": "A text of words.", "private": ["Some other text."] }] });
    let verdict = results(&app, &one).await["verdict"].clone();
    assert_eq!((&verdict["reason"], &verdict["smallest_p_value"]), (&json!("no_power"), &json!(0.5)));
    app.post("/v1/tests", &dataset("model", json!("pythia"))).await.problem(404);
    app.post("/v1/tests", &json!({ "kind": "dataset", "dataset": "sha256:0" })).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_a_dataset_are_the_suspects() {
    let app = App::start().await;
    let upload = async |lines: Vec<Value>| {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let answer = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into_bytes()).await;
        answer.json()["id"].clone()
    };
    let sample =
        |n: usize| json!({ "text": format!("The text number {n} has {} words or so.", n * n), "label": n % 2 });
    let labelled = upload((0..12).map(sample).collect()).await;
    let body = json!({ "kind": "dataset", "dataset": labelled, "methods": ["loss"] });
    let done = submit(&app, &body, Some("k")).await.ok();
    assert_eq!((&done["dataset"], &done["texts"]), (&labelled, &json!(12)));
    let method = &done["results"]["methods"][0];
    assert_eq!((&method["suspects"], &method["held_out"]), (&json!(6), &json!(6)), "{}", done["results"]);
    let committed = json!({ "kind": "dataset", "dataset": labelled, "commitment": "0".repeat(64) });
    assert_eq!(app.post("/v1/tests", &committed).await.pointers(), ["/commitment"]);
    let both = json!({ "kind": "dataset", "dataset": labelled, "suspects": ["a b"] });
    assert_eq!(app.post("/v1/tests", &both).await.pointers(), ["/dataset"]);
    let unlabelled = upload(vec![json!({ "text": "Without a label." })]).await;
    assert_eq!(
        app.post("/v1/tests", &json!({ "kind": "dataset", "dataset": unlabelled })).await.pointers(),
        ["/dataset"]
    );
    // The test outlives its dataset, and its key too.
    assert_eq!(app.delete(&format!("/v1/datasets/{}", labelled.as_str().unwrap())).await.status, 204);
    assert_eq!(submit(&app, &body, Some("k")).await.ok()["id"], done["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_is_a_job() {
    let app = App::start().await;
    let canary =
        json!({ "text": "The clock struck nine.", "twins": ["The clock struck ten.", "The clock struck two."] });
    let body = json!({ "kind": "rank", "name": "clocks", "canaries": [canary], "methods": ["loss"] });
    let done = submit(&app, &body, Some("clocks")).await.ok();
    assert_eq!(
        (&done["status"], &done["kind"], &done["name"]),
        (&json!("succeeded"), &json!("rank"), &json!("clocks"))
    );
    assert_eq!(submit(&app, &body, Some("clocks")).await.ok()["id"], done["id"]);
    let mut other = body.clone();
    other["methods"] = json!(["zlib"]);
    submit(&app, &other, Some("clocks")).await.problem(422);

    let listed = app.get("/v1/tests?status=succeeded&model=tiny").await.ok();
    let first = &listed["tests"][0];
    assert_eq!((&first["id"], &first["methods"], &first["texts"]), (&done["id"], &json!(["loss"]), &json!(3)));
    assert!(first.get("results").is_none() && listed["tests"].as_array().unwrap().len() == 1);
    let path = format!("/v1/tests/{}", done["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await.ok(), done);
    let events = app.get(&format!("{path}/events")).await;
    assert!(events.text().contains("succeeded"), "{}", events.text());
    send(app.request(Method::POST, &format!("{path}/cancel"))).await.problem(409);
    app.get(&path.replace("tests", "audits")).await.problem(404);
    assert_eq!(app.delete(&path).await.status, 204);
    app.get(&path).await.problem(404);
    app.get("/v1/tests/no-id").await.problem(404);

    let texts: Vec<String> = (0..20_000).map(|n| format!("{n} is the number of this text, and {n} again")).collect();
    let many = json!({ "kind": "dataset", "suspects": texts[..10_000], "held_out": texts[10_000..], "control": null, "methods": ["loss"] });
    let answer = app.post("/v1/tests", &many).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    let path = answer.header("location").to_owned();
    assert_eq!(send(app.request(Method::POST, &format!("{path}/cancel"))).await.ok()["status"], "cancelled");
    app.assert_nothing_is_left().await;
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pdr-audit"));
    command.arg("test").args(arguments).envs(DEMO_BY_DEFAULT).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_command_line_runs_every_kind() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: Vec<Value>| {
        let path = directory.path().join(name);
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (members, others) = (demo_texts(1), demo_texts(0));
    let texts = |texts: &[String]| texts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>();
    let (suspects, held_out) = (write("s.jsonl", texts(&members[..25])), write("h.jsonl", texts(&others[..25])));
    let report = |output: Output| -> Value {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let dataset = report(run(&["dataset", &suspects, &held_out, "--format", "json"]));
    // 25 a side are too few for more than the differences of the lists could explain.
    assert!(p_value(&dataset["methods"][0]) < 0.01, "{dataset}");
    assert_eq!(dataset["verdict"]["reason"], "not_above_differences");
    let table = run(&["dataset", &suspects, &held_out, "--control", "none", "--methods", "loss", "--format", "table"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("25 suspects against 25") && table.contains("verdict: "), "{table}");

    let documents = (0..8).map(|n| json!({ "public": members[n], "private": [others[n]] })).collect();
    let units: Vec<Vec<&str>> = (0..8).map(|n| vec![&*members[n], &*others[n]]).collect();
    let sha256 = commitment("paired", "loss", "", &units);
    let documents = write("p.jsonl", documents);
    let paired =
        report(run(&["paired", &documents, "--primary", "loss", "--methods", "ref,loss", "--commitment", &sha256]));
    assert_eq!((&paired["verdict"]["primary"], &paired["commitment"]["matches"]), (&json!("loss"), &json!(true)));
    let canaries = write("r.jsonl", vec![json!({ "text": members[0], "twins": others[..3] })]);
    assert_eq!(report(run(&["rank", &canaries]))["methods"][0]["tested"], 1);
    let shards = write("o.jsonl", vec![json!(members[..3]), json!(members[3..6])]);
    let order = report(run(&["order", &shards, "--shuffles", "4", "--seed", "7", "--separator", " "]));
    assert_eq!((&order["samples"]["total"], &order["methods"][0]["label"]), (&json!(10), &json!("loss")));

    let alone = write("alone.jsonl", vec![json!({ "public": "a b", "private": [] })]);
    assert!(said(&run(&["paired", &alone])).contains("line 1: `private`: the list is empty"));
    let empty = write("empty.jsonl", vec![json!({ "text": "a", "twins": ["b"] }), json!({ "text": "a", "twins": [] })]);
    assert!(said(&run(&["rank", &empty])).contains("line 2: `twins`: the list is empty"));
    assert!(said(&run(&["order", &shards, "--shuffles", "0"])).contains("--shuffles: there are 0 random orders"));
    assert!(said(&run(&["paired", &shards])).contains("line 1: "));
    assert!(said(&run(&["rank", &canaries, "--commitment", "abc"])).contains("--commitment"));
    assert!(said(&run(&["rank", &canaries, "--primary", "zlib"])).contains("--primary"));
    let labelled = write("l.jsonl", vec![json!({ "text": "a b", "label": 0 })]);
    assert!(said(&run(&["dataset", &labelled, &held_out])).contains("labelled a non-member, and given as a suspect"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lists_of_a_test_are_cut_in_the_request() {
    let app = App::start().await;
    let text = |word: &str| format!("One {word} two three. Four five {word} six. Seven eight nine {word}.");
    let suspects: Vec<String> = ["red", "green"].map(text).to_vec();
    let held_out = json!([{ "text": text("blue"), "id": "b" }, text("grey")]);
    let cut = json!({ "words": 4, "at": "sentence" });
    let body = json!({ "kind": "dataset", "suspects": suspects, "held_out": held_out, "methods": ["loss"], "control": null, "cut": cut });
    let done = submit(&app, &body, None).await.ok();
    assert_eq!((&done["status"], &done["texts"]), (&json!("succeeded"), &json!(12)), "{done}");
    let pairs = json!({ "kind": "paired", "documents": [{ "public": "a", "private": ["b"] }], "methods": ["loss"], "cut": cut });
    let mut few_words = body.clone();
    few_words["held_out"] = json!(["Four five.", "1 2 3"]);
    let mut wide = body.clone();
    wide["cut"]["words"] = json!(0);
    for (body, pointer, words) in [
        (pairs, "/cut", "passages have no counterparts"),
        (few_words, "/held_out/1", "no passage is left"),
        (wide, "/cut", "1 to 100000"),
    ] {
        let problem = submit(&app, &body, None).await.problem(422).to_string();
        assert!(problem.contains(&format!("\"pointer\":\"{pointer}\"")) && problem.contains(words), "{problem}");
    }
}
