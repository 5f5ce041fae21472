//! Tests of kind `di`, and audits compared for unlearning, over HTTP and on the command line.

use crate::common::app::App;
use crate::common::client::{Answer, send};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The samples of the demo's audit with this label, as lines.
fn demo_lines(label: u8) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl");
    let file = std::fs::read_to_string(path).unwrap();
    let is_of_label = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["label"] == label;
    file.lines().filter(is_of_label).map(str::to_owned).collect()
}

fn texts(label: u8, count: usize) -> Vec<Value> {
    let text = |line: &String| serde_json::from_str::<Value>(line).unwrap()["text"].clone();
    demo_lines(label)[..count].iter().map(text).collect()
}

/// With the demo model, which was trained on the members among its texts, and its reference.
async fn demo() -> App {
    App::with(|settings| {
        settings.models = Vec::new();
        settings.engine.default_model = None;
    })
    .await
}

async fn submit(app: &App, kind: &str, body: &Value) -> Answer {
    send(app.request(Method::POST, &format!("/v1/{kind}")).header("prefer", "wait=60").json(body)).await
}

/// What the program prints in this folder; it must succeed.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pdr-audit")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_combination_of_methods_is_learnt_on_one_half_and_tested_on_the_other() {
    let app = demo().await;
    let lists = |suspects: &[Value], held_out: &[Value]| json!({ "kind": "di", "suspects": suspects, "held_out": held_out, "seed": 3 });
    let (members, others) = (texts(1, 150), texts(0, 150));
    let body = lists(&members, &others);
    let done = submit(&app, "tests", &body).await.ok();
    let report = &done["results"];
    assert_eq!((&done["kind"], &report["kind"]), (&json!("di"), &json!("di")), "{done}");
    let inference = &report["inference"];
    assert_eq!(
        (&inference["seed"], &inference["tested"], &inference["clusters"]),
        (&json!(3), &json!([75, 75]), &json!([150, 150]))
    );
    let splits = inference["splits"].as_array().unwrap();
    let mut p_values: Vec<f64> = splits.iter().map(|split| split["p_value"].as_f64().unwrap()).collect();
    p_values.sort_by(f64::total_cmp);
    assert_eq!((p_values.len(), &inference["p_value"]), (20, &json!(2.0 * p_values[9])));
    assert_eq!(inference["weights"].as_array().unwrap().len(), 13);
    assert_eq!(report["methods"].as_array().unwrap().len(), 13);
    assert!(report["methods"].as_array().unwrap().iter().all(|method| method["p_value_adjusted"].is_f64()));
    let verdict = &report["verdict"];
    assert_eq!((&verdict["state"], &verdict["reason"]), (&json!("association"), &json!("above_control")), "{verdict}");
    assert_eq!((&verdict["design"], &verdict["primary"]), (&json!("observational"), &json!("di")));
    assert!(verdict["assumptions"].to_string().contains("learnt weights may be negative"), "{verdict}");
    assert_eq!(verdict["splits"], json!({ "number": 20, "tested": [75, 75] }));
    let sentence = verdict["sentence"].as_str().unwrap();
    for part in [
        "medians of 20 splits that test 75 + 75 of them (p twice the median)",
        "99 % interval",
        "level 0.01",
        "control `demo-reference`",
    ] {
        assert!(sentence.contains(part), "{part} in: {sentence}");
    }
    assert_eq!(
        submit(&app, "tests", &body).await.ok()["results"]["inference"],
        *inference,
        "the seed decides the splits"
    );

    let nothing = submit(&app, "tests", &lists(&texts(1, 100), &texts(1, 200)[100..])).await.ok();
    assert_eq!(nothing["results"]["verdict"]["state"], "no_association", "{}", nothing["results"]["verdict"]);
    let few = submit(&app, "tests", &lists(&members[..3], &others[..3])).await.ok();
    let few = &few["results"];
    assert_eq!((&few["verdict"]["reason"], few["inference"].get("p_value")), (&json!("too_few"), None));
    assert!(few["inference"]["error"].as_str().unwrap().contains("fewer than 4 clusters"), "{few}");

    let mut named = body.clone();
    (named["primary"], named["separator"]) = (json!("loss"), json!(" "));
    assert_eq!(submit(&app, "tests", &named).await.pointers(), ["/separator", "/primary"]);
}

#[test]
fn the_command_line_makes_the_same_test() {
    let folder = tempfile::tempdir().unwrap();
    for (name, label) in [("suspects.jsonl", 1), ("held-out.jsonl", 0)] {
        std::fs::write(folder.path().join(name), demo_lines(label)[..60].join("\n")).unwrap();
    }
    let arguments = [
        "test",
        "di",
        "suspects.jsonl",
        "held-out.jsonl",
        "--model",
        "demo",
        "--seed",
        "3",
        "--methods",
        "loss,min_k,zlib",
    ];
    let report: Value = serde_json::from_str(&printed(folder.path(), &arguments)).unwrap();
    assert_eq!((&report["inference"]["seed"], &report["inference"]["tested"]), (&json!(3), &json!([30, 30])));
    let table = printed(folder.path(), &[&arguments[..], &["--format", "table"]].concat());
    for part in ["combination of all methods", "median AUROC", "weights: loss"] {
        assert!(table.contains(part), "{part} in: {table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unlearned_model_is_compared_with_one_that_never_saw_the_texts() {
    let app = demo().await;
    let samples: Vec<Value> = [demo_lines(1)[..100].to_vec(), demo_lines(0)[..100].to_vec()]
        .concat()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let methods = json!([{ "name": "min_k", "k": 0.4 }, "loss"]);
    let mut ids = Vec::new();
    for model in ["demo-reference", "demo"] {
        let body = json!({ "model": model, "samples": samples, "methods": methods, "control": null });
        ids.push(submit(&app, "audits", &body).await.ok()["id"].as_str().unwrap().to_owned());
    }
    let path = format!("/v1/audits/{}/compare/{}", ids[0], ids[1]);
    assert!(app.get(&path).await.ok().get("unlearning").is_none());
    let compared = app.get(&format!("{path}?question=retain")).await.ok();
    let unlearning = &compared["unlearning"];
    assert_eq!(
        (&unlearning["retain"]["id"], &unlearning["unlearned"]["id"]),
        (&json!("demo-reference"), &json!("demo"))
    );
    let (method, difference) = (&unlearning["methods"][0], &compared["methods"][0]);
    assert_eq!(
        (&method["label"], &method["direction"]),
        (&json!("min_k(k=0.4)"), &json!("under_unlearning")),
        "{method}"
    );
    assert_eq!((&method["difference"], &method["p_value"]), (&difference["delta"], &difference["p_value"]));
    let [a, b] = ["auroc_a", "auroc_b"].map(|name| 1.0 - difference[name].as_f64().unwrap());
    assert!((method["privleak"].as_f64().unwrap() - 100.0 * (b - a) / a).abs() < 1e-9, "{method}");
    let problem = app.get(&format!("{path}?question=other")).await.problem(422).to_string();
    assert!(problem.contains("retain"), "{problem}");
    let page = app
        .request(Method::GET, &format!("{path}?question=retain"))
        .header("accept", "text/html")
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    assert!(page.contains("Under-unlearning") && page.contains("<h2>Unlearning"), "{page}");

    let unlabelled: Vec<Value> = samples.iter().map(|sample| json!({ "text": sample["text"] })).collect();
    let body = json!({ "samples": unlabelled, "methods": ["loss"] });
    let id = submit(&app, "audits", &body).await.ok()["id"].as_str().unwrap().to_owned();
    let problem = app.get(&format!("/v1/audits/{id}/compare/{id}?question=retain")).await.problem(422).to_string();
    assert!(problem.contains("have no labels"), "{problem}");
}

#[test]
fn folders_of_audits_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let samples = [demo_lines(1)[..60].to_vec(), demo_lines(0)[..60].to_vec()].concat().join("\n");
    std::fs::write(folder.path().join("samples.jsonl"), samples).unwrap();
    for (model, out) in [("demo-reference", "retain"), ("demo", "unlearned")] {
        printed(
            folder.path(),
            &["audit", "samples.jsonl", "--model", model, "--control", "none", "--methods", "min_k,loss", "--out", out],
        );
    }
    let table =
        printed(folder.path(), &["compare", "retain", "unlearned", "--question", "retain", "--format", "table"]);
    for part in ["120 samples in both", "min_k(k=0.2)", "AUROC a", "Under-unlearning", "assumes: neither model saw"] {
        assert!(table.contains(part), "{part} in: {table}");
    }
    let compared: Value = serde_json::from_str(&printed(folder.path(), &["compare", "retain", "unlearned"])).unwrap();
    assert!(compared.get("unlearning").is_none() && compared["methods"][0]["delta"].as_f64().unwrap() > 0.0);
    let nothing = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(["compare", "retain", "nothing"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("cannot read nothing/report.json"));
}
