//! The command line as a user sees it: files in, lines out, faults on stderr.

use crate::common::DEMO_BY_DEFAULT;
use kernels::simd::Level;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], input: &[u8]) -> Output {
    run_with(arguments, input, &DEMO_BY_DEFAULT)
}

/// With these variables in the environment.
fn run_with(arguments: &[&str], input: &[u8], environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that refuses its arguments never reads: a closed pipe is no failure of the test.
    let writer = std::thread::spawn(move || stdin.write_all(&input).ok());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn stderr(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn score_answers_each_line_in_order_and_passes_other_fields_through() {
    let input = [
        json!({ "id": "a", "text": "Lot 7 is a silver jug from Blackham.", "label": 1 }).to_string(),
        json!({ "input": "", "source": { "page": 3 } }).to_string(),
        "{ not json".into(),
        json!({ "id": "e", "text": 5, "label": 0 }).to_string(),
        json!({ "text": "The ferry left Ironbury at six, with ninety passengers and a goat." }).to_string(),
    ]
    .join("\n");
    let all = lines(&run(&["score", "-", "--methods", "loss,min_k"], input.as_bytes()));
    assert_eq!(all.iter().map(|l| l["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!((&all[0]["id"], &all[0]["label"]), (&json!("a"), &json!(1)));
    assert_eq!(all[0]["scores"].as_object().unwrap().keys().collect::<Vec<_>>(), ["loss", "min_k(k=0.2)"]);
    assert_eq!((&all[1]["errors"][0]["code"], &all[1]["source"]["page"]), (&json!("too_short"), &json!(3)));
    assert_eq!(all[2]["errors"][0]["code"], "invalid_line");
    assert!(all[2]["errors"][0]["detail"].as_str().unwrap().starts_with("line 3:"));
    let failed = &all[3];
    assert_eq!((&failed["id"], &failed["label"], &failed["truncated"]), (&json!("e"), &json!(0), &json!(false)));
    assert!(all[4]["scores"]["loss"].as_f64().unwrap() < 0.0);
}

#[test]
fn score_takes_methods_as_the_contract_writes_them_and_explains_tokens() {
    let methods = r#"[{"name":"min_k_plus_plus","k":0.5,"pdr":{"decay":"exponential","alpha":0.02},"label":"mine"}]"#;
    let input = br#"{"text": "The brass clock struck nine in Fallowfield."}"#;
    let all = lines(&run(&["score", "-", "--tokens", "--methods", methods], input));
    let (score, tokens) = (all[0]["scores"]["mine"].as_f64().unwrap(), all[0]["tokens"].as_array().unwrap());
    let sum: f64 = tokens.iter().filter_map(|t| t["contributions"]["mine"].as_f64()).sum();
    assert!((sum - score).abs() < 1e-12, "{sum} is not {score}");
}

#[test]
fn faults_of_the_arguments_name_what_is_wrong() {
    let input = br#"{"text": "A text."}"#;
    for (arguments, named) in [
        (&["score", "no-such-file.jsonl"][..], "no-such-file.jsonl"),
        (&["score", "-", "--model", "nope"], "nope"),
        (&["score", "-", "--methods", "nope"], "nope"),
        (&["score", "-", "--methods", r#"[{"name":"min_k","k":2}]"#], "(0, 1]"),
        // As the service says it.
        (&["score", "-", "--methods", r#"[{"name":"min_k","k":[0.1,"a"]}]"#], "expected a number"),
        (
            &["score", "-", "--methods", r#"[{"name":"loss","pdr":{"decay":"random","seed":-1}}]"#],
            "expected a whole number that is not negative",
        ),
        (&["score", "-", "--config", "no-such.toml"], "no-such.toml"),
        (&["audit", "-", "--fpr", "1.5"], "--fpr"),
    ] {
        let said = stderr(&run(arguments, input));
        assert!(said.contains(named), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn an_audit_refuses_a_bad_line_with_its_number() {
    let good = r#"{"text": "One text of some words.", "label": 1}"#;
    for (bad, named) in [
        (r#"{"text": "x", "label": 2}"#, "line 2"),
        (r#"{"text": "x", "label": "yes"}"#, "line 2"),
        (r#"{"label": 1}"#, "line 2"),
        ("nonsense", "line 2"),
        (r#"{"text": "x"}"#, "1 of 2"),
        (r#"{"text": "x", "label": 1}"#, "2 members and 0 non-members"),
        (r#"{"text": "x", "label": 0, "group": 7}"#, "`group`"),
        (r#"{"text": "x", "label": 0, "neighbors": []}"#, "`neighbors`"),
    ] {
        let said = stderr(&run(&["audit", "-"], format!("{good}\n{bad}\n").as_bytes()));
        assert!(said.contains(named), "{bad}: {said}");
    }
    assert!(stderr(&run(&["audit", "-"], b"\n")).contains("samples is empty"));
}

#[test]
fn an_audit_reads_csv_as_well_and_prints_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("samples.csv");
    let rows = [("m", "The \"\"blue\"\" kite, torn, flew over Denmoor.", 1), ("n", "Nine bells rang, then none.", 0)];
    let body: String = rows.iter().map(|(id, text, label)| format!("{id},\"{text}\",{label}\n")).collect();
    std::fs::write(&path, format!("id,text,label\n{body}")).unwrap();
    let table = run(&["audit", path.to_str().unwrap(), "--format", "table", "--methods", "loss"], b"");
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("2 samples, 1 member, 1 non-member") && table.contains("AUROC"), "{table}");
    assert!(table.contains("warning:"), "two samples are few: {table}");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let input: String = (0..200).map(|i| format!("{{\"text\": \"Text number {i} of many.\"}}\n")).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("texts.jsonl");
    std::fs::write(&path, input).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(["score", "--model", "demo"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("note: `demo` is a demonstration model") && said.lines().count() == 1, "{said}");

    let mut child =
        Command::new(env!("CARGO_BIN_EXE_pdr-audit")).arg("openapi").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_line_is_answered_before_the_next_is_sent() {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(["score", "-", "--model", "demo", "--methods", "loss"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for index in 0..3 {
        writeln!(stdin, "{{\"text\": \"The lamp of room {index} went out at nine.\"}}").unwrap();
        let mut answer = String::new();
        stdout.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["index"], index);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_settings_can_be_named_before_or_after_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("settings.toml");
    std::fs::write(&path, "[limits]\ntext = \"10B\"\n").unwrap();
    let input = b"{\"text\": \"More than ten bytes.\"}\n{\"text\": \"A jug.\"}";
    for arguments in
        [["--config", path.to_str().unwrap(), "score", "-"], ["score", "-", "--config", path.to_str().unwrap()]]
    {
        assert_eq!(lines(&run(&arguments, input))[0]["errors"][0]["code"], "too_long");
    }
    assert!(stderr(&run(&["--port", "1", "score", "-"], input)).contains("--port"));
}

#[test]
fn a_batch_budget_is_set_and_changes_no_score() {
    // Several batches by a small budget, one by a large one.
    let sentence = "The brass clock struck nine in Fallowfield. ";
    let line = |n: usize| json!({ "text": format!("{n} {}", sentence.repeat(1 + n % 5)) }).to_string();
    let texts = (0..40).map(line).collect::<Vec<_>>().join("\n");
    let score = |budget| {
        let variables = [("PDR_AUDIT__ENGINE__MAX_BATCH_TOKENS", budget), ("RUST_LOG", "pdr_audit=info")];
        let output = run_with(&["score", "-", "--model", "demo", "--methods", "loss"], texts.as_bytes(), &variables);
        assert!(output.status.success());
        let log = String::from_utf8(output.stderr).unwrap();
        let loaded = log.lines().find(|line| line.contains("model loaded")).unwrap().to_owned();
        (output.stdout, loaded)
    };
    let ((scores, loaded), (same, small)) = (score("auto"), score("64"));
    assert!(loaded.contains("batch_tokens=2048"), "{loaded}");
    assert!(small.contains("batch_tokens=64"), "{small}");
    assert_eq!(scores, same);
}

/// With other instructions products are summed in another order: log p moves by 1e-5, and so do the scores.
#[test]
fn score_gives_the_same_scores_on_whatever_instructions_the_variable_names() {
    let score = |simd| {
        let text = br#"{"text": "The brass clock struck nine in Fallowfield."}"#;
        run_with(&["score", "-", "--model", "demo"], text, &[("PDR_AUDIT_SIMD", simd)])
    };
    let values = |output: &Output| -> Vec<f64> {
        let scores = lines(output)[0]["scores"].clone();
        scores.as_object().unwrap().values().map(|score| score.as_f64().unwrap()).collect()
    };
    let auto = values(&run(&["score", "-"], br#"{"text": "The brass clock struck nine in Fallowfield."}"#));
    assert!(auto.len() > 3);
    for level in ["scalar", "avx2", "avx512"] {
        if Level::available().iter().any(|there| there.name() == level) {
            let found = values(&score(level));
            assert_eq!(found.len(), auto.len());
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * (1.0 + b.abs());
            assert!(found.iter().zip(&auto).all(near), "{level}: {found:?}, not {auto:?}");
        } else {
            let refusal = stderr(&score(level));
            assert!(refusal.contains("this machine has scalar"), "{refusal}");
        }
    }
    let refusal = stderr(&score("sse9"));
    assert!(refusal.contains("PDR_AUDIT_SIMD is \"sse9\", not one of scalar"), "{refusal}");
}

#[test]
fn an_audit_prints_the_mean_over_groups_and_lists_tokens() {
    let line = |n: usize| {
        let text = format!("Lot {n} is a silver jug from Blackham, number {}.", n * n);
        json!({ "text": text, "label": n % 2, "group": format!("g{}", n % 3) }).to_string()
    };
    let input = (0..30).map(line).collect::<Vec<_>>().join("\n");
    let audit = ["audit", "-", "--methods", "loss,min_k", "--replicates", "0", "--fpr", "0.1"];
    let audit = |more: &[&str]| run(&[&audit[..], more].concat(), input.as_bytes());
    let table = audit(&["--average", "group", "--format", "table"]);
    assert!(table.status.success(), "{}", String::from_utf8_lossy(&table.stderr));
    let table = String::from_utf8(table.stdout).unwrap();
    let (_, mean) = table.split_once("\nunweighted mean over groups\n\n").expect("the mean");
    let rows: Vec<Vec<&str>> = mean.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["method", "groups", "AUROC", "TPR@10%"]);
    assert_eq!(rows[2][..2], ["min_k(k=0.2)", "3"]);
    assert!(rows[2][2..].iter().all(|number| number.parse::<f64>().is_ok()), "{rows:?}");

    let report = audit(&["--average", "group", "--selected-tokens", "2", "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["selected_tokens"][0]["members"]["tokens"].as_array().unwrap().len(), 2);
    let auroc = report["methods"][1]["average"]["group"]["auroc"].as_f64().unwrap();
    assert_eq!(format!("{auroc:.3}"), rows[2][2]);

    let refusal = stderr(&audit(&["--selected-tokens", "0"]));
    assert!(refusal.contains("--selected-tokens: selected_tokens is 0, outside 1 to 1000"), "{refusal}");
    assert!(stderr(&audit(&["--average", "model"])).contains("[possible values: group]"));
}

#[test]
fn memorization_looks_at_files_of_samples_and_of_plain_text() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let long = "Lot 868: a cedar hand bell, made by Quentin Quilwin of Ashvale Parva about 1803.";
    let samples = [json!({ "id": 7, "text": long, "label": 1 }), json!({ "text": "Short." })];
    let samples = file("works.jsonl", &samples.map(|sample| sample.to_string()).join("\n"));
    // The whole file is one text, whatever its lines.
    let control =
        file("unseen.txt", "\u{feff}The committee met again on a rainy Tuesday,\n\nand nobody had read the minutes.");
    let shape = ["--prefix", "6", "--suffix", "4", "--stride", "2"];
    let arguments = [&["memorization", &samples, "--control", &control][..], &shape].concat();
    let output = run(&arguments, b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [texts, control] = ["texts", "control"].map(|part| report[part].as_array().unwrap());
    assert_eq!((&texts[0]["id"], &texts[1]["error"]["code"]), (&json!(7), &json!("too_short")));
    assert_eq!((control.len(), &control[0]["id"], &control[0]["characters"]), (1, &json!("unseen.txt"), &json!(77)));
    assert_eq!(control[0]["windows"][0]["start"], 0);
    let piped = run(&[&["memorization", "-"][..], &shape].concat(), &std::fs::read(&samples).unwrap());
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["texts"], report["texts"]);
    let table = run(&[&arguments[..], &["--format", "table"]].concat(), b"");
    let table = String::from_utf8(table.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "demo: texts 2, control 1; windows of 6 + 4 tokens, one every 2");
    assert!(lines.iter().any(|line| line.starts_with("7 ")) && table.contains("text 1: too_short: "), "{table}");
    assert!(lines.iter().any(|line| line.starts_with("control ")), "{table}");
    for (arguments, named) in [
        (vec!["memorization", &samples, "--stride", "0"], "--stride: 0 tokens, expected at least 1"),
        (vec!["memorization", &samples, "--prefix", "500"], "the context of model `demo` is"),
        (vec!["memorization", &samples, "--control", &samples], "text 0 of the control is also text 0"),
        (vec!["memorization", "absent.jsonl"], "cannot read absent.jsonl"),
        (vec!["memorization", "-"], "there are no texts"),
    ] {
        let error = stderr(&run(&arguments, b""));
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn a_request_stands_in_place_of_all_other_arguments() {
    let text = "The committee met again on a rainy Tuesday, and nobody had read the minutes of the meeting before.";
    let body = json!({ "texts": [{ "id": "a", "text": text }], "prefix": 4, "suffix": 4, "stride": 4 }).to_string();
    let requested = run(&["memorization", "--request", "-"], body.as_bytes());
    assert!(requested.status.success(), "{}", String::from_utf8_lossy(&requested.stderr));
    let flags = ["memorization", "-", "--prefix", "4", "--suffix", "4", "--stride", "4", "--format", "json"];
    let by_flags = run(&flags, json!({ "id": "a", "text": text }).to_string().as_bytes());
    let [requested, by_flags] =
        [requested, by_flags].map(|output| serde_json::from_slice::<Value>(&output.stdout).unwrap());
    assert_eq!((&requested["texts"], &requested["summary"]), (&by_flags["texts"], &by_flags["summary"]));
}

#[test]
fn requests_that_are_refused() {
    let of_kind = |kind: &str, body: Value| stderr(&run(&[kind, "--request", "-"], body.to_string().as_bytes()));
    let unknown = of_kind("memorization", json!({ "texts": ["a b c"], "sufix": 4 }));
    assert!(unknown.contains("sufix"), "{unknown}");
    let other_kind = of_kind("memorization", json!({ "samples": [{ "text": "a", "label": 1 }] }));
    assert!(other_kind.contains("samples"), "{other_kind}");
    let range =
        of_kind("audit", json!({ "samples": [{ "text": "a", "label": 1 }], "methods": [{ "name": "min_k", "k": 2 }] }));
    assert!(range.contains("/methods/0/k"), "{range}");
    let contradicted = stderr(&run(&["memorization", "--request", "-", "--prefix", "4"], b"{}"));
    assert!(contradicted.contains("cannot be used with"), "{contradicted}");
    let ends = of_kind("calibration", json!({ "samples": [] }));
    assert!(ends.contains("store.url"), "{ends}");
    let no_file = stderr(&run(&["test", "--request", "/nowhere.json"], b""));
    assert!(no_file.contains("/nowhere.json"), "{no_file}");
}

#[test]
fn the_demo_model_answers_only_where_it_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.jsonl");
    std::fs::write(
        &path,
        "{\"text\": \"A text of mine.\", \"label\": 0}\n{\"text\": \"Another one.\", \"label\": 1}\n",
    )
    .unwrap();
    let (mine, out) = (path.to_str().unwrap(), directory.path().join("adapter").display().to_string());
    let shards = directory.path().join("shards.jsonl");
    std::fs::write(&shards, "[\"One.\", \"Two.\", \"Three.\"]\n").unwrap();
    let shards = shards.to_str().unwrap();
    for arguments in [
        &["score", mine][..],
        &["audit", mine],
        &["plan", mine, "--out", "plan.json"],
        &["test", "order", shards],
        &["memorization", mine],
        &["finetune", mine, "--output", &out],
        &["count-tokens", mine],
    ] {
        let said = stderr(&run_with(arguments, b"", &[]));
        assert!(said.contains("no model is named: add --model MODEL"), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
    }
    for kind in ["audit", "test", "memorization", "calibration", "finetune"] {
        let said = stderr(&run_with(&[kind, "--request", "-"], b"{}", &[]));
        assert!(said.contains("the request names no model: add the field `model`"), "{kind}: {said}");
    }
    let named = run_with(&["score", mine, "--model", "demo", "--methods", "loss"], b"", &[]);
    assert!(named.status.success());
    let said = String::from_utf8(named.stderr).unwrap();
    assert!(said.starts_with("note: `demo` is a demonstration model trained on generated text"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
