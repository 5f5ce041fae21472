//! Signed reports: `GET /v1/{kind}/{id}/report` as an envelope, `pdr-audit sign`, `verify` and `prove`.

use crate::common::app::App;
use crate::common::client::send;
use attestation::{
    EVAL_RESULT_PREDICATE, Envelope, PublicKey, REPORT_PREDICATE, ReportPredicate, SigningKey, Statement, Subject,
    TreeBuilder, sign_report,
};
use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use tempfile::TempDir;

const DSSE: &str = "application/vnd.dsse.envelope+json";

/// The folder of an audit of the demo model that is signed and keeps to a plan, with the key and the samples beside it.
struct SignedAudit {
    folder: TempDir,
    key: SigningKey,
}

static AUDIT: LazyLock<SignedAudit> = LazyLock::new(|| {
    let audit = SignedAudit { folder: tempfile::tempdir().unwrap(), key: SigningKey::random().unwrap() };
    audit.write("key.pem", &audit.key.to_pem().unwrap());
    audit.write("key.pub.pem", &audit.key.public().to_pem().unwrap());
    let demo = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl")).unwrap();
    let group = |(place, line): (usize, &str)| {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        sample["group"] = ["a", "b"][place / 2 % 2].into();
        sample.to_string() + "\n"
    };
    audit.write("samples.jsonl", &demo.lines().take(160).enumerate().map(group).collect::<String>());
    let methods = ["--methods", "loss,min_k", "--decay", "none,linear", "--alpha", "1", "--replicates", "100"];
    let shared = ["samples.jsonl", "--model", "demo", "--control", "demo-reference"];
    audit.ok(&[&["plan", "--out", "plan.json"], &shared[..], &methods].concat());
    let signed = ["--plan", "plan.json", "--signing-key", "key.pem", "--out", "run"];
    audit.ok(&[&["audit"], &shared[..], &methods, &signed].concat());
    audit
});

impl SignedAudit {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pdr-audit"));
        command.args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1").output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The exit status of `verify`, and the states of the five steps.
    fn verify(&self, arguments: &[&str]) -> (i32, Vec<String>, Value) {
        let output = self.run(&[&["verify", "--format", "json"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {errors}"));
        let steps = json["steps"].as_array().unwrap();
        let states = steps.iter().map(|step| step["state"].as_str().unwrap().to_owned()).collect();
        (output.status.code().unwrap(), states, json)
    }

    fn predicate(&self) -> ReportPredicate {
        let envelope: Envelope = serde_json::from_str(&self.read("run/report.dsse.json")).unwrap();
        Statement::read(&envelope.statement().unwrap(), REPORT_PREDICATE).unwrap().predicate
    }

    /// Signs a report that was edited at a pointer with the same key and the same trees, as its author could.
    fn forge(&self, name: &str, pointer: &str, value: Value) {
        let predicate = self.predicate();
        let mut report: Value = serde_json::from_str(predicate.report.get()).unwrap();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = report.pointer_mut(parent).unwrap_or_else(|| panic!("the report has no {parent}"));
        // A field that is not there is added.
        let place = match parent {
            Value::Array(list) => &mut list[field.parse::<usize>().unwrap()],
            object => &mut object[field],
        };
        assert_ne!(*place, value, "{pointer}");
        *place = value;
        let report = RawValue::from_string(report.to_string()).unwrap();
        let envelope: Envelope = serde_json::from_str(&self.read("run/report.dsse.json")).unwrap();
        let statement: Statement<ReportPredicate> =
            Statement::read(&envelope.statement().unwrap(), REPORT_PREDICATE).unwrap();
        let digest = statement.subject("scores").unwrap().sha256().unwrap().to_owned();
        let scores = predicate.samples.map(|trees| (trees, digest));
        let envelope = sign_report("audit", predicate.run, report, scores, &self.key).unwrap();
        self.write(name, &serde_json::to_string(&envelope).unwrap());
    }
}

const HOLDS: &str = "holds";
const FAILS: &str = "fails";
const NOT_CHECKED: &str = "not_checked";

#[test]
fn all_five_steps_hold() {
    let whole = ["--key", "key.pub.pem", "--dataset", "samples.jsonl", "--model", "demo", "--plan", "plan.json"];
    let (code, states, json) = AUDIT.verify(&[&["run/report.dsse.json"], &whole[..]].concat());
    assert_eq!((code, states), (0, vec![HOLDS.to_owned(); 5]), "{json:#}");
    let text = json.to_string();
    assert!(
        text.contains("scores of 20 samples, chosen by the report's hash") && text.contains("equal bit for bit"),
        "{text}"
    );
    assert!(text.contains("/position_profile, /prior_test (from the statistics of every token)"), "{text}");
    let result: Envelope = serde_json::from_str(&AUDIT.read("run/eval-result.dsse.json")).unwrap();
    let result: Statement<Value> = Statement::read(&result.statement().unwrap(), EVAL_RESULT_PREDICATE).unwrap();
    let digest = hex::encode(Sha256::digest(AUDIT.read("run/report.dsse.json")));
    assert_eq!(result.predicate["evidence"][0]["digest"]["sha256"], digest);
    assert!(result.predicate["preRegistration"]["value"].is_string(), "{result:?}");
    // A control that does not run is named.
    let (code, states, json) = AUDIT.verify(&[&["run/report.dsse.json", "--control", "none"], &whole[..]].concat());
    assert_eq!((code, &*states[3]), (0, HOLDS), "{json:#}");
    assert!(json["steps"][3].to_string().contains("the control `demo-reference`: not run here"), "{json:#}");
    // With the scores beside it alone, and with nothing.
    let (code, states, json) = AUDIT.verify(&["run/report.dsse.json"]);
    assert_eq!(
        (code, states),
        (0, [NOT_CHECKED, HOLDS, HOLDS, NOT_CHECKED, HOLDS].map(str::to_owned).into()),
        "{json:#}"
    );
    // Removing the envelope does not get around a key, nor removing the plan around its file.
    let (code, states, _) = AUDIT.verify(&["run/report.json", "--key", "key.pub.pem"]);
    assert_eq!((code, &*states[0]), (1, FAILS));
    let (code, states, _) = AUDIT.verify(&["run/report.json"]);
    assert_eq!((code, &*states[0], &*states[2]), (0, NOT_CHECKED, HOLDS));
    fs::copy(AUDIT.path("run/report.json"), AUDIT.path("alone.json")).unwrap();
    let table = AUDIT.run(&["verify", "alone.json"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.starts_with("1  signature   not checked  the report is not signed\n"), "{table}");
}

#[test]
fn an_edit_by_the_author_fails_at_its_step() {
    let edits: [(&str, Value, usize); 43] = [
        ("/samples/total", json!(161), 3),
        ("/samples/members", json!(79), 3),
        ("/samples/clusters", json!(159), 3),
        ("/samples/largest_cluster", json!(2), 3),
        ("/methods/0/label", json!("another"), 3),
        ("/methods/0/scored", json!(159), 3),
        ("/methods/0/auroc", json!(0.9), 3),
        ("/methods/0/auroc_standard_error", json!(0.01), 3),
        ("/methods/0/tpr_at_fpr/0/tpr", json!(0.5), 3),
        ("/methods/0/tpr_at_fpr/1/threshold", json!(-1.5), 3),
        ("/methods/0/tpr_at_fpr/2/interval/0", json!(0.3), 3),
        ("/methods/0/fpr_at_95_tpr", json!(0.1), 3),
        ("/methods/0/bootstrap/auroc/mean", json!(0.7), 3),
        ("/methods/0/bootstrap/auroc/interval/1", json!(0.99), 3),
        ("/methods/0/p_value", json!(0.00011), 3),
        ("/methods/1/p_value_adjusted", json!(0.00011), 3),
        ("/methods/1/versus_baseline/delta", json!(0.2), 3),
        ("/methods/1/versus_baseline/p_value", json!(0.0001), 3),
        ("/methods/0/control/auroc", json!(0.4), 3),
        ("/methods/0/control/difference", json!(0.4), 3),
        ("/methods/0/control/p_value", json!(0.00012), 3),
        ("/groups/0/methods/0/auroc", json!(0.8), 3),
        ("/blind/words/auroc", json!(0.5), 3),
        ("/blind/lengths/scored_tokens", json!(0.5), 3),
        ("/blind/lengths/bytes_per_zlib_byte", json!(0.5), 3),
        ("/verdict/state", json!("evidence"), 3),
        ("/verdict/p_value", json!(0.00012), 3),
        ("/verdict/effect/auroc", json!(0.99), 3),
        ("/verdict/comparability/auroc", json!(0.5), 3),
        ("/verdict/comparability/measures/0/auroc", json!(0.5), 3),
        ("/verdict/assumptions/0", json!("none"), 3),
        ("/verdict/sentence", json!("The texts were in the training data."), 3),
        ("/provenance/dataset_digest", json!(format!("sha256:{}", "0".repeat(64))), 2),
        ("/provenance/model_digest", json!(format!("sha256:{}", "0".repeat(64))), 4),
        ("/provenance/control/model_digest", json!(format!("sha256:{}", "0".repeat(64))), 4),
        ("/provenance/request/metrics/bootstrap/seed", json!(1), 3),
        ("/provenance/tokenizer_digest", json!(format!("sha256:{}", "0".repeat(64))), 4),
        ("/provenance/control/tokenizer_digest", json!(format!("sha256:{}", "0".repeat(64))), 4),
        ("/provenance/request/prior", json!(0.5), 3),
        ("/provenance/request/metrics/bootstrap/replicates", json!(1_000_000_000_000_u64), 3),
        ("/plan/note", json!("registered"), 3),
        ("/plan/id", json!(format!("sha256:{}", "0".repeat(64))), 5),
        ("/plan/created", json!("2100-01-01T00:00:00Z"), 5),
    ];
    let whole =
        ["--key", "key.pub.pem", "--scores", "run/scores.ndjson", "--dataset", "samples.jsonl", "--model", "demo"];
    for (pointer, value, step) in edits {
        AUDIT.forge("forged.dsse.json", pointer, value);
        let (code, states, json) = AUDIT.verify(&[&["forged.dsse.json"], &whole[..]].concat());
        assert_eq!((code, &*states[0], &*states[step - 1]), (1, HOLDS, FAILS), "{pointer}: {json:#}");
        // Nothing else is blamed, but what follows from the request, the dataset or the models.
        let others = (2..=4).filter(|other| *other != step && states[other - 1] == FAILS).count();
        let follows = pointer.starts_with("/provenance") || pointer == "/samples/total";
        assert!(others == 0 || follows, "{pointer}: {json:#}");
    }
}

#[test]
fn lines_that_their_author_signs_anew_must_be_those_of_the_samples() {
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit, usize, &str); 9] = [
        (
            "sample_digest",
            |line| line["sample_digest"] = "0".repeat(64).into(),
            3,
            "`sample_digest` is not that of the sample",
        ),
        (
            "text_digest",
            |line| line["text_digest"] = "0".repeat(32).into(),
            3,
            "`text_digest` is not that of the sample",
        ),
        (
            "label",
            |line| line["label"] = (1 - line["label"].as_u64().unwrap()).into(),
            3,
            "`label` is not that of the sample",
        ),
        ("id", |line| line["id"] = "another".into(), 3, "`id` is not that of the sample"),
        ("log_odds", |line| line["log_odds"] = 9.5.into(), 3, "`log_odds` is not what the scores of all lines make it"),
        ("flagged", |line| line["flagged"] = true.into(), 3, "`flagged` is not what the scores of all lines make it"),
        (
            "posterior",
            |line| line["posterior"] = 1.0.into(),
            3,
            "`posterior` is not what the scores of all lines make it",
        ),
        ("scored_tokens", |line| line["scored_tokens"] = 7.into(), 4, "`scored_tokens` is 7, scored again"),
        (
            "control_measures",
            |line| line["control_measures"]["min_k_5"] = 1.5.into(),
            4,
            "`min_k_5` of the control: 1.5",
        ),
    ];
    let whole = ["--key", "key.pub.pem", "--dataset", "samples.jsonl", "--model", "demo", "--sample", "160"];
    let scores = AUDIT.read("run/scores.ndjson");
    for (name, edit, step, fault) in edits {
        let mut lines: Vec<String> = scores.lines().map(str::to_owned).collect();
        let mut line: Value = serde_json::from_str(&lines[8]).unwrap();
        edit(&mut line);
        lines[8] = line.to_string();
        let mut trees = TreeBuilder::default();
        for line in &lines {
            trees.add(line.as_bytes(), &serde_json::from_str(line).unwrap());
        }
        let (trees, digest) = trees.finish();
        let ReportPredicate { run, report, .. } = AUDIT.predicate();
        let envelope = sign_report("audit", run, report, Some((trees, digest)), &AUDIT.key).unwrap();
        AUDIT.write("lines.dsse.json", &serde_json::to_string(&envelope).unwrap());
        AUDIT.write("lines.ndjson", &(lines.join("\n") + "\n"));
        let files = ["lines.dsse.json", "--scores", "lines.ndjson"];
        let (code, states, json) = AUDIT.verify(&[&files[..], &whole].concat());
        assert_eq!((code, &*states[0], &*states[1], &*states[step - 1]), (1, HOLDS, HOLDS, FAILS), "{name}: {json:#}");
        assert!(json["steps"][step - 1].to_string().contains(fault), "{name}: {json:#}");
    }
}

#[test]
fn a_statement_that_does_not_fit_its_report_fails() {
    let envelope: Envelope = serde_json::from_str(&AUDIT.read("run/report.dsse.json")).unwrap();
    let payload = envelope.statement().unwrap();
    let statement = || Statement::<ReportPredicate>::read(&payload, REPORT_PREDICATE).unwrap();
    let sign = |name: &str, statement: &Statement<ReportPredicate>| {
        let envelope = Envelope::sign(&serde_json::to_vec(statement).unwrap(), &AUDIT.key);
        AUDIT.write(name, &serde_json::to_string(&envelope).unwrap());
    };
    let fails = |name: &str, fault: &str| {
        let files = [name, "--key", "key.pub.pem", "--scores", "run/scores.ndjson", "--dataset", "samples.jsonl"];
        let (code, states, json) = AUDIT.verify(&files);
        assert_eq!((code, &*states[0], &*states[1], &*states[2]), (1, HOLDS, FAILS, HOLDS), "{name}: {json:#}");
        assert!(json["steps"][1].to_string().contains(fault), "{name}: {json:#}");
    };
    let mut other = statement();
    other.predicate.kind = "memorization".to_owned();
    sign("kind.json", &other);
    fails("kind.json", "the statement says that it is of a");
    let mut other = statement();
    other.predicate.samples.as_mut().unwrap().leaves = 400;
    sign("leaves.json", &other);
    fails("leaves.json", "the trees have 400 leaves, and the report has 160 samples");
    for subject in [Subject::new("scores", "0".repeat(64)), Subject::new("model of mine", "0".repeat(64))] {
        let mut other = statement();
        other.subject.push(subject);
        sign("subjects.json", &other);
        fails("subjects.json", "subject");
    }
    // A tree of all leaves that there can be, and a proof that has no path.
    let mut other = statement();
    other.predicate.samples.as_mut().unwrap().leaves = usize::MAX;
    sign("endless.json", &other);
    AUDIT.write("no-path.json", &json!({ "index": 7, "sample": "{}", "salt": "00", "path": [] }).to_string());
    let (code, _, json) = AUDIT.verify(&["endless.json", "--key", "key.pub.pem", "--proof", "no-path.json"]);
    assert_eq!(code, 1, "{json:#}");
    // Of two values under one key, readers take the first or the last.
    let twice = String::from_utf8(payload.clone()).unwrap().replacen("{\"samples\":", "{\"verdict\":1,\"samples\":", 1);
    let twice = Envelope::sign(twice.as_bytes(), &AUDIT.key);
    AUDIT.write("twice.json", &serde_json::to_string(&twice).unwrap());
    let output = AUDIT.run(&["verify", "twice.json"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("an object has the key \"verdict\" twice"), "{output:?}");
    // Nobody's words are orders to the terminal.
    let mut hinted = envelope.clone();
    hinted.signatures[0].keyid = "a\n1  signature   holds        \u{1b}[31m".to_owned();
    AUDIT.write("hinted.json", &serde_json::to_string(&hinted).unwrap());
    let table = String::from_utf8(AUDIT.run(&["verify", "hinted.json", "--wide"]).stdout).unwrap();
    assert!(!table.contains('\u{1b}') && table.contains("a\\n1"), "{table}");
}

#[test]
fn an_edit_by_anybody_else_fails_at_the_signature() {
    let envelope: Envelope = serde_json::from_str(&AUDIT.read("run/report.dsse.json")).unwrap();
    let payload = String::from_utf8(envelope.statement().unwrap()).unwrap();
    let (another, private) = (SigningKey::random().unwrap(), AUDIT.read("key.pem"));
    let edited = Envelope::sign(payload.replacen("\"members\":80", "\"members\":81", 1).as_bytes(), &another);
    let unsigned = Envelope { signatures: envelope.signatures.clone(), ..edited.clone() };
    AUDIT.write("another.pub.pem", &another.public().to_pem().unwrap());
    let key = ["--key", "key.pub.pem"];
    for (name, envelope) in [("edited.json", &edited), ("unsigned.json", &unsigned)] {
        AUDIT.write(name, &serde_json::to_string(envelope).unwrap());
        let (code, states, _) = AUDIT.verify(&[&[name], &key[..]].concat());
        assert_eq!((code, &*states[0]), (1, FAILS), "{name}");
    }
    // Of two signatures one is right and one is wrong.
    AUDIT.write("another.pem", &another.to_pem().unwrap());
    AUDIT.ok(&["sign", "run/report.dsse.json", "--signing-key", "another.pem", "--output", "two.json"]);
    let (code, _, _) = AUDIT.verify(&["two.json", "--key", "key.pub.pem", "--key", "another.pub.pem"]);
    assert_eq!(code, 0);
    let mut two: Envelope = serde_json::from_str(&AUDIT.read("two.json")).unwrap();
    two.signatures[1].sig.clone_from(&envelope.signatures[0].sig);
    AUDIT.write("wrong.json", &serde_json::to_string(&two).unwrap());
    let (code, states, json) = AUDIT.verify(&["wrong.json", "--key", "key.pub.pem", "--key", "another.pub.pem"]);
    assert_eq!((code, &*states[0]), (1, FAILS), "{json:#}");
    assert_eq!(json["steps"][0]["findings"][0]["state"], HOLDS);
    // A statement that is none of ours is not signed, and what cannot be read ends with 2 and names the fault.
    let other = Statement::new(Vec::new(), "https://slsa.dev/provenance/v1", json!({}));
    let other = Envelope::sign(&serde_json::to_vec(&other).unwrap(), &another);
    AUDIT.write("other.json", &serde_json::to_string(&other).unwrap());
    let refused = AUDIT.run(&["sign", "other.json", "--signing-key", "key.pem"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("slsa.dev"), "{refused:?}");
    AUDIT.write("truncated.json", &AUDIT.read("run/report.dsse.json")[..1000]);
    AUDIT.write("private.pem", &private);
    for (arguments, fault) in [
        (vec!["other.json"], "its predicate is of the type \"https://slsa.dev/provenance/v1\""),
        (vec!["truncated.json"], "truncated.json: EOF while parsing a string"),
        (vec!["absent.json"], "cannot read absent.json"),
        (vec!["run/report.dsse.json", "--sample", "0"], "--sample"),
        (vec!["run/request.json"], "no report of this program is like this"),
        (vec!["run/report.dsse.json", "--key", "private.pem"], "this is a private key"),
        (vec!["run/report.dsse.json", "--key", "samples.jsonl"], "this is not an Ed25519 public key"),
        (vec!["run/report.dsse.json", "--scores", "samples.jsonl"], "samples.jsonl: line 1: missing field"),
    ] {
        let output = AUDIT.run(&[vec!["verify"], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(fault), "{errors}");
    }
}

#[test]
fn scores_and_samples_of_another_audit_are_named() {
    let scores = AUDIT.read("run/scores.ndjson");
    let mut lines: Vec<&str> = scores.lines().collect();
    let loss = "\"loss\":-1";
    let edited = lines[3].replacen(loss, "\"loss\":-2", 1);
    assert_ne!(edited, lines[3]);
    let without_last = lines[..159].join("\n") + "\n";
    lines.swap(4, 5);
    let swapped = lines.join("\n") + "\n";
    (lines[4], lines[5]) = (lines[5], lines[4]);
    lines[3] = &edited;
    let edited = lines.join("\n") + "\n";
    for (name, content, step_3) in [
        ("edited.ndjson", edited.as_str(), "/methods/0/"),
        ("swapped.ndjson", &swapped, "line 5: its index is 5: lines are missing or out of order"),
        ("short.ndjson", &without_last, "/samples/total is 160, recomputed 159"),
    ] {
        AUDIT.write(name, content);
        let (code, states, json) = AUDIT.verify(&["run/report.dsse.json", "--key", "key.pub.pem", "--scores", name]);
        assert_eq!((code, &*states[0], &*states[1], &*states[2]), (1, HOLDS, FAILS, FAILS), "{name}: {json:#}");
        assert!(json["steps"][2].to_string().contains(step_3), "{name}: {json:#}");
    }
    let samples = AUDIT.read("samples.jsonl");
    AUDIT.write("other.jsonl", &samples.replacen("\"label\":1", "\"label\":0", 1));
    let (code, states, json) = AUDIT.verify(&["run/report.dsse.json", "--dataset", "other.jsonl"]);
    assert_eq!((code, &*states[1], &*states[2]), (1, FAILS, FAILS), "{json:#}");
    // A score that the model does not give.
    let (code, states, json) = AUDIT.verify(&[
        "run/report.json",
        "--scores",
        "edited.ndjson",
        "--dataset",
        "samples.jsonl",
        "--model",
        "demo",
        "--sample",
        "160",
    ]);
    assert_eq!((code, &*states[3]), (1, FAILS), "{json:#}");
    assert!(json["steps"][3].to_string().contains("sample 3, `loss`"), "{json:#}");
    let cut = &scores[..scores.len() - 1];
    AUDIT.write("cut.ndjson", cut);
    let output = AUDIT.run(&["verify", "run/report.dsse.json", "--scores", "cut.ndjson"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cut.ndjson: line 160: the file is cut off"));
}

#[test]
fn one_sample_is_shown_without_the_others() {
    let scored = ["run/report.dsse.json", "--scores", "run/scores.ndjson", "--dataset", "samples.jsonl"];
    AUDIT.ok(&[&["prove"], &scored[..], &["--index", "77", "--with-scores", "--output", "proof.json"]].concat());
    AUDIT.ok(&[&["prove"], &scored[..], &["--index", "77", "--output", "sample.json"]].concat());
    let proof = AUDIT.read("proof.json");
    let sample: Value = serde_json::from_str(&proof).unwrap();
    let text = AUDIT.read("samples.jsonl").lines().nth(77).unwrap().to_owned();
    let text: Value = serde_json::from_str(&text).unwrap();
    let shown: Value = serde_json::from_str(sample["sample"].as_str().unwrap()).unwrap();
    assert_eq!((&shown["text"], &shown["label"]), (&text["text"], &text["label"]));
    // Nothing but the report and the proof.
    let alone = tempfile::tempdir().unwrap();
    let copy = |name: &str| alone.path().join(Path::new(name).file_name().unwrap());
    for name in ["run/report.dsse.json", "key.pub.pem", "proof.json", "sample.json"] {
        fs::copy(AUDIT.path(name), copy(name)).unwrap();
    }
    let verify = |proof: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pdr-audit"));
        command.args(["verify", "report.dsse.json", "--key", "key.pub.pem", "--proof", proof, "--wide"]);
        let output = command.current_dir(alone.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, table) = verify("proof.json");
    assert!(
        code == Some(0) && table.contains("the sample of the proof is number 77 of the 160 that were audited"),
        "{table}"
    );
    assert!(table.contains("its scores are line 78 of those that were signed"), "{table}");
    assert!(!verify("sample.json").1.contains("its scores"));
    for edited in [
        proof.replacen("\"index\": 77", "\"index\": 76", 1),
        proof.replacen("\\\"id\\\":\\\"n038", "\\\"id\\\":\\\"n039", 1),
        proof.replacen("\"salt\": \"", "\"salt\": \"00", 1),
    ] {
        assert_ne!(edited, proof);
        fs::write(copy("proof.json"), edited).unwrap();
        let (code, table) = verify("proof.json");
        assert!(code == Some(1) && table.contains("is not number"), "{table}");
    }
    let refused = AUDIT.run(&[&["prove"], &scored[..], &["--index", "160"]].concat());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--index: there are 160 samples"));
}

#[test]
fn reports_of_other_jobs_are_signed() {
    let memorized = AUDIT.ok(&[
        "memorization",
        "samples.jsonl",
        "--model",
        "demo",
        "--prefix",
        "16",
        "--suffix",
        "8",
        "--format",
        "json",
    ]);
    AUDIT.write("memorization.json", &memorized);
    AUDIT.ok(&["sign", "memorization.json", "--signing-key", "key.pem", "--output", "memorization.dsse.json"]);
    let (code, states, json) = AUDIT.verify(&["memorization.dsse.json", "--key", "key.pub.pem"]);
    assert_eq!((code, &*states[0], &*states[1], &*states[2]), (0, HOLDS, HOLDS, NOT_CHECKED), "{json:#}");
    let no_key = AUDIT.run(&["sign", "memorization.json"]);
    assert!(String::from_utf8_lossy(&no_key.stderr).contains("give the key that signs (--signing-key)"));
    let printed = AUDIT.ok(&[
        "audit",
        "samples.jsonl",
        "--model",
        "demo",
        "--methods",
        "loss",
        "--signing-key",
        "key.pem",
        "--format",
        "dsse",
        "--scores",
        "printed.ndjson",
    ]);
    AUDIT.write("printed.json", &printed);
    let (code, states, json) = AUDIT.verify(&["printed.json", "--key", "key.pub.pem", "--scores", "printed.ndjson"]);
    assert_eq!((code, &*states[1], &*states[2]), (0, HOLDS, HOLDS), "{json:#}");
    let no_key = AUDIT.run(&["audit", "samples.jsonl", "--model", "demo", "--format", "dsse"]);
    assert!(String::from_utf8_lossy(&no_key.stderr).contains("--format dsse: give the key"));
}

/// A test's report has no scores; those of an audit of the same texts are the same.
#[test]
fn a_test_of_two_lists_is_recomputed_from_the_scores_of_an_audit() {
    let demo = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl")).unwrap();
    let samples: Vec<Value> = demo.lines().take(160).map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines = |label: u8| {
        let of_list = samples.iter().filter(move |sample| sample["label"] == label);
        of_list.map(|sample| json!({ "text": sample["text"], "label": label }).to_string() + "\n").collect::<String>()
    };
    AUDIT.write("suspects.jsonl", &lines(1));
    AUDIT.write("held-out.jsonl", &lines(0));
    AUDIT.write("lists.jsonl", &(lines(1) + &lines(0)));
    let shared = ["--model", "demo", "--control", "demo-reference", "--methods", "loss,min_k,zlib", "--format", "json"];
    AUDIT.ok(&[&["audit", "lists.jsonl", "--scores", "lists.ndjson"], &shared[..]].concat());
    let scores = ["--scores", "lists.ndjson", "--key", "key.pub.pem"];
    let whole = [&scores[..], &["--dataset", "lists.jsonl", "--model", "demo"]].concat();
    let verify = |report: &str, given: &[&str]| {
        AUDIT.ok(&["sign", report, "--signing-key", "key.pem", "--output", "lists.dsse.json"]);
        AUDIT.verify(&[&["lists.dsse.json"], given].concat())
    };
    for kind in ["dataset", "di"] {
        let test = ["test", kind, "suspects.jsonl", "held-out.jsonl"];
        AUDIT.write("lists.json", &AUDIT.ok(&[&test[..], &shared].concat()));
        let (code, states, json) = verify("lists.json", &whole);
        assert_eq!((code, &states[..4]), (0, &*vec![HOLDS.to_owned(); 4]), "{kind}: {json:#}");
        assert!(!json["steps"][2].to_string().contains("--dataset"), "{kind}: {json:#}");
        let (code, states, json) = verify("lists.json", &scores);
        assert_eq!((code, &*states[2]), (0, HOLDS), "{kind}: {json:#}");
        let unchecked = "/blind, /comparability, /verdict, /warnings (from the texts: give --dataset)";
        assert!(json["steps"][2].to_string().contains(unchecked), "{kind}: {json:#}");
    }
    let report: Value = serde_json::from_str(&AUDIT.read("lists.json")).unwrap();
    for (pointer, value, given) in [
        ("/inference/p_value", json!(0.5), &scores[..]),
        ("/inference/splits/3/p_value", json!(0.5), &scores),
        ("/inference/splits/4/control/difference", json!(0.5), &scores),
        ("/inference/weights/1/weight", json!(0.5), &scores),
        ("/inference/effect/lower_bound", json!(0.999), &scores),
        ("/inference/control/p_value", json!(0.5), &scores),
        ("/inference/seed", json!(7), &scores),
        ("/methods/1/p_value", json!(0.5), &scores),
        ("/samples/mixed_clusters", json!(1), &scores),
        ("/blind/words/auroc", json!(0.999), &whole),
        ("/comparability/auroc", json!(0.999), &whole),
        ("/verdict/p_value", json!(0.5), &whole),
        ("/verdict/sentence", json!("The texts were in the training data."), &whole),
    ] {
        let mut edited = report.clone();
        let place = edited.pointer_mut(pointer).unwrap_or_else(|| panic!("the report has no {pointer}"));
        assert_ne!(std::mem::replace(place, value.clone()), value, "{pointer}");
        AUDIT.write("edited-lists.json", &edited.to_string());
        let (code, states, json) = verify("edited-lists.json", given);
        let failing: Vec<usize> = (1..=5).filter(|step| states[step - 1] == FAILS).collect();
        assert_eq!((code, failing), (1, vec![3]), "{pointer}: {json:#}");
    }
    // Which text is which, the report of another kind does not say.
    let mut rank = report.clone();
    rank["kind"] = "rank".into();
    AUDIT.write("edited-lists.json", &rank.to_string());
    let (code, states, json) = verify("edited-lists.json", &scores);
    assert_eq!((code, &*states[2]), (0, NOT_CHECKED), "{json:#}");
    assert!(json["steps"][2].to_string().contains("a test report of kind `rank` cannot be recomputed"), "{json:#}");
}

#[test]
fn a_signing_key_is_made_once() {
    let directory = tempfile::tempdir().unwrap();
    let make = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pdr-audit"));
        command.args(["key", "new-signing", "report-key.pem"]).current_dir(directory.path()).output().unwrap()
    };
    let made = make();
    let private = SigningKey::from_pem(&fs::read_to_string(directory.path().join("report-key.pem")).unwrap()).unwrap();
    assert_eq!(PublicKey::from_pem(std::str::from_utf8(&made.stdout).unwrap()).unwrap(), private.public());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(directory.path().join("report-key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let again = make();
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("cannot write report-key.pem"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_signs_what_its_scores_open() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| fs::write(directory.path().join(name), content).unwrap();
    let key = SigningKey::random().unwrap();
    write("key.pem", &key.to_pem().unwrap());
    let text =
        |n: usize| json!({ "text": format!("Sample {n} of the brass clock."), "label": n % 2, "columns": { "n": n } });
    let samples: Vec<Value> = (0..40).map(text).collect();
    let signed =
        |app: &App, path: &str| send(app.request(Method::GET, &format!("{path}/report")).header("accept", DSSE));
    for key_file in [None, Some(directory.path().join("key.pem"))] {
        let app = App::with(|settings| settings.signing.key_file.clone_from(&key_file)).await;
        let audit = app.audit(&json!({ "samples": samples, "methods": ["loss"], "control": null })).await.ok();
        let path = format!("/v1/audits/{}", audit["id"].as_str().unwrap());
        let (scores, answer) = (app.get(&format!("{path}/scores")).await, signed(&app, &path).await);
        if key_file.is_none() {
            let detail = "the service signs no reports: `signing.key_file` of its settings names no key";
            assert_eq!(answer.problem(409)["detail"], detail);
            assert!(!scores.text().contains("\"salt\""), "{}", scores.text());
            continue;
        }
        assert_eq!((answer.status, answer.header("content-type"), answer.header("vary")), (200, DSSE, "accept"));
        // The same again: envelope and salts follow from the key and the job. A bundle begins with it.
        assert_eq!(signed(&app, &path).await.text(), answer.text());
        let bundle =
            app.request(Method::GET, &format!("{path}/report")).header("accept", "application/vnd.in-toto.bundle");
        let bundle = send(bundle).await;
        let (first, second) = bundle.text().trim_end().split_once('\n').unwrap();
        assert_eq!(first, answer.text());
        let result: Envelope = serde_json::from_str(second).unwrap();
        let result: Statement<Value> = Statement::read(&result.statement().unwrap(), EVAL_RESULT_PREDICATE).unwrap();
        let digest = hex::encode(Sha256::digest(answer.text()));
        assert_eq!(result.predicate["evidence"][0]["digest"]["sha256"], digest);
        let envelope: Envelope = serde_json::from_str(answer.text()).unwrap();
        let statement: Statement<ReportPredicate> =
            Statement::read(&envelope.statement().unwrap(), REPORT_PREDICATE).unwrap();
        assert_eq!(statement.predicate.run.job.as_deref(), audit["id"].as_str());
        assert_eq!(serde_json::from_str::<Value>(statement.predicate.report.get()).unwrap(), audit["results"]);
        write("signed.json", answer.text());
        write("key.pub.pem", &key.public().to_pem().unwrap());
        write("scores.ndjson", scores.text());
        let line = |sample: &Value| {
            json!({ "text": sample["text"], "label": sample["label"], "n": sample["columns"]["n"] }).to_string() + "\n"
        };
        write("samples.jsonl", &samples.iter().map(line).collect::<String>());
        let mut command = Command::new(env!("CARGO_BIN_EXE_pdr-audit"));
        let files = ["--scores", "scores.ndjson", "--dataset", "samples.jsonl", "--wide"];
        command.args(["verify", "signed.json", "--key", "key.pub.pem"]).args(files);
        let output = command.current_dir(directory.path()).output().unwrap();
        let table = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{table}");
        assert!(table.contains("its 40 lines are those that were signed"), "{table}");
        assert!(table.contains("the dataset's 40 samples are those of the report"), "{table}");
    }
}
