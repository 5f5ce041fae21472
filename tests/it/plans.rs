//! `/v1/plans` and `pdr-audit plan`: audits that keep to what was fixed before they ran.

use crate::common::DEMO_BY_DEFAULT;
use crate::common::app::App;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::process::{Command, Output};

fn samples() -> Vec<Value> {
    let sample = |number: usize| json!({ "id": number, "text": format!("Sample {number} of the plan."), "label": number % 2, "document": format!("d{}", number / 2) });
    (0..12).map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_keeps_to_its_plan() {
    let app = App::start().await;
    let body = json!({ "samples": samples(), "methods": ["loss", "zlib"], "control": null });
    let planned = app.post("/v1/plans", &body).await;
    assert_eq!(planned.status, 201, "{}", planned.text());
    let plan = planned.json();
    let content = plan["content"].as_str().unwrap();
    let digest: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(plan["id"], format!("sha256:{digest}"));
    let decides: Value = serde_json::from_str(content).unwrap();
    assert_eq!(
        (&decides["model"], &decides["level"], &decides["evidence"]["primary"]),
        (&json!("tiny"), &json!(0.01), &json!("loss"))
    );
    // The same again is the same plan, with the time of the first.
    assert_eq!(app.post("/v1/plans", &body).await.json(), plan);

    let cite = |mut body: Value, plan: &Value| {
        body["plan"] = plan.clone();
        body
    };
    let audit = app.audit(&cite(body.clone(), &plan["id"])).await.ok();
    let report = &audit["results"];
    assert_eq!(
        report["plan"],
        json!({ "planned": true, "id": plan["id"], "created": plan["created"], "earlier_audits": 0 })
    );
    // The digest of the texts is the id that they have as a dataset.
    let lines: String = samples().iter().map(|sample| format!("{sample}\n")).collect();
    let dataset = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into_bytes()).await.json();
    assert_eq!((&decides["dataset_digest"], &report["provenance"]["dataset_digest"]), (&dataset["id"], &dataset["id"]));

    // A second audit of the same texts, however they come, knows of the first; other texts do not.
    let unplanned = json!({ "dataset": dataset["id"], "methods": ["loss"], "control": null });
    let again = app.audit(&unplanned).await.ok();
    assert_eq!(again["results"]["plan"], json!({ "planned": false, "earlier_audits": 1 }));
    let others = app.audit(&json!({ "samples": samples()[..10], "methods": ["loss"], "control": null })).await.ok();
    assert_eq!(others["results"]["plan"]["earlier_audits"], 0);

    let changed = |field: &str, value: Value| {
        let mut changed = cite(body.clone(), &plan["id"]);
        changed[field] = value;
        changed
    };
    let mut regrouped = samples();
    regrouped[0]["document"] = json!("d5");
    for (field, value, differs) in [
        ("methods", json!(["loss"]), "methods"),
        ("metrics", json!({ "fpr_targets": [0.1] }), "metrics"),
        ("primary", json!("zlib"), "evidence"),
        ("samples", json!(regrouped), "dataset_digest"),
    ] {
        let answer = app.audit(&changed(field, value)).await;
        assert_eq!(answer.pointers(), ["/plan"]);
        assert!(answer.text().contains(&format!("`{differs}` differs")), "{}", answer.text());
    }
    assert_eq!(app.audit(&changed("plan", json!("sha256:0"))).await.pointers(), ["/plan"]);
    assert_eq!(app.audit(&changed("plan", json!("\0"))).await.pointers(), ["/plan"]);
    assert_eq!(app.audit(&changed("plan", json!(7))).await.pointers(), ["/plan"]);
    assert_eq!(app.post("/v1/plans", &cite(body.clone(), &plan["id"])).await.pointers(), ["/plan"]);
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pdr-audit")).args(arguments).envs(DEMO_BY_DEFAULT).output().unwrap()
}

#[test]
fn the_command_line_plans_and_keeps_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (texts, plan) = (path("t.jsonl"), path("plan.json"));
    std::fs::write(&texts, samples().iter().map(|sample| format!("{sample}\n")).collect::<String>()).unwrap();
    let planned = run(&["plan", &texts, "--methods", "loss", "--control", "none", "--out", &plan]);
    assert!(planned.status.success(), "{}", String::from_utf8_lossy(&planned.stderr));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    let audit = |more: &[&str]| {
        run(&[&["audit", &*texts, "--control", "none", "--plan", &*plan, "--format", "json"], more].concat())
    };
    let audited = audit(&["--methods", "loss"]);
    assert!(audited.status.success(), "{}", String::from_utf8_lossy(&audited.stderr));
    let report: Value = serde_json::from_slice(&audited.stdout).unwrap();
    assert_eq!(report["plan"], json!({ "planned": true, "id": file["id"], "created": file["created"] }));

    let said = |output: Output| {
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(audit(&["--methods", "zlib"])).contains("`methods` differs"));
    assert!(said(audit(&["--methods", "loss", "--seed", "7"])).contains("`metrics` differs"));
    let again = run(&["plan", &texts, "--methods", "loss", "--control", "none", "--out", &plan]);
    assert!(said(again).contains("a plan keeps its time"));
    let changed = std::fs::read_to_string(&plan).unwrap().replace("0.01", "0.05");
    std::fs::write(&plan, changed).unwrap();
    assert!(said(audit(&["--methods", "loss"])).contains("was changed"));
}
