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
        (&["audit", "-", "--fpr", "-0.01"], "--fpr"),
        (&["audit", "-", "--prior", "-0.5"], "--prior"),
        (&["audit", "-", "--calibration-share", "-0.5"], "--calibration-share"),
        (&["audit", "-", "--max-cost", "-1"], "'--max-cost <COST>': -1 is no cost: it must be 0 or more"),
        (&["audit", "-", "--max-cost", "nan"], "NaN is no cost"),
        (&["audit", "-", "--max-cost", "much"], "'--max-cost <COST>': invalid float literal"),
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
    assert!(table.starts_with("verdict: "), "{table}");
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

/// The demo has a second eager model, which this command never opens.
#[test]
fn an_audit_tunes_without_waiting_for_models_that_it_does_not_use() {
    let samples = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/models/demo/audit.jsonl")).unwrap();
    let samples = samples.lines().take(60).collect::<Vec<_>>().join("\n");
    let methods = r#"[{"name":"fsd","split":0.3,"seeds":[1],"score":{"name":"min_k"}}]"#;
    let audited = run(&["audit", "-", "--methods", methods, "--control", "none"], samples.as_bytes());
    assert!(audited.status.success(), "{}", String::from_utf8_lossy(&audited.stderr));
    let report: Value = serde_json::from_slice(&audited.stdout).unwrap();
    assert_eq!(report["splits"].as_array().map(Vec::len), Some(1));
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
    assert_eq!(piped["texts"][0]["windows"], texts[0]["windows"]);
    // One known work: the text is above it, or not.
    assert_eq!(
        (&report["summary"]["known_works"]["smallest_p_value"], piped["texts"][0].get("p_value")),
        (&json!(0.5), None)
    );
    let passes = "windows, scored in passes of ";
    assert!(String::from_utf8_lossy(&output.stderr).lines().any(|line| line.contains(passes)), "{}", stderr(&output));
    let map = directory.path().join("map.csv").display().to_string();
    let flags = ["--map", &map, "--run-text", "--passes", "separate", "--continue", "12", "--least-words", "2"];
    let output = run(&[&arguments[..], &flags].concat(), b"");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run_text = report["texts"][0]["longest_run"]["text"].as_str().unwrap();
    assert!(long.contains(run_text) && !run_text.is_empty(), "{run_text}");
    assert_eq!(report["texts"][0]["continuation"]["tokens"], 12);
    let windows = [&report["texts"][0], &report["control"][0]].map(|text| text["windows"].as_array().unwrap().len());
    let rows = std::fs::read_to_string(&map).unwrap();
    assert_eq!(rows.lines().count(), 1 + windows.iter().sum::<usize>());
    let table = run(&[&arguments[..], &["--format", "table"]].concat(), b"");
    let table = String::from_utf8(table.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("  Given 6 tokens or some more, the model completes 4 more word by word in "),
        "{table}"
    );
    assert!(lines.contains(&"demo: 2 texts, 1 of the control"), "{table}");
    assert!(lines.contains(&"windows of 6 + 4 tokens, one every 2"), "{table}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
    assert!(lines.iter().any(|line| line.starts_with("7 ")) && table.contains("text 1: too_short: "), "{table}");
    assert!(lines.iter().any(|line| line.starts_with("control ")), "{table}");
    for (arguments, named) in [
        (vec!["memorization", &samples, "--stride", "0"], "--stride: 0 tokens, expected at least 1"),
        (vec!["memorization", &samples, "--prefix", "500"], "the context of model `demo` is"),
        (vec!["memorization", &samples, "--control", &samples], "text 0 of the control is also text 0"),
        (vec!["memorization", &samples, "--continue", "0"], "--continue: 0 is outside 1 to 10000"),
        (vec!["memorization", &samples, "--least-words", "3"], "--continue <TOKENS>"),
        (vec!["memorization", &samples, "--map", "map.xlsx"], "expected a file that ends in .csv, .ndjson or .jsonl"),
        (vec!["memorization", &samples, "--map", "/nowhere/map.csv"], "cannot write /nowhere/map.csv"),
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
fn texts_are_cut_into_passages_that_score_reads() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join("shelf")).unwrap();
    for (name, content) in [
        ("one.txt", &b"The brass clock struck nine.\n\nNobody was awake in Fallowfield.\n"[..]),
        ("two.md", b"---\ntitle: Two\n---\n\nThe ferry left Ironbury at six.\n"),
        ("scan.pdf", b"%PDF-1.4\n"),
    ] {
        std::fs::write(root.join("shelf").join(name), content).unwrap();
    }
    let shelf = root.join("shelf").display().to_string();
    let cut = run(&["texts", &shelf, "--cut", "6"], b"");
    let passages = lines(&cut);
    let place = |passage: &Value| (passage["document"].clone(), passage["offset"].clone(), passage["length"].clone());
    let places: Vec<_> = passages.iter().map(place).collect();
    let expected = [("one.txt", 0, 28), ("one.txt", 30, 32), ("two.md", 20, 31)];
    assert_eq!(places, expected.map(|(name, offset, length)| (json!(name), json!(offset), json!(length))));
    let summary = String::from_utf8_lossy(&cut.stderr).into_owned();
    assert!(summary.contains("scan.pdf: it is a PDF") && summary.contains("pdftotext -layout"), "{summary}");
    // The printed passages are scored as they are.
    let scored = lines(&run(&["score", "-", "--methods", "loss"], &cut.stdout));
    assert!(scored.iter().all(|line| line["scores"]["loss"].as_f64().unwrap() < 0.0));
    assert_eq!(scored.iter().map(place).collect::<Vec<_>>(), places);

    let target = root.join("passages.jsonl").display().to_string();
    let table = run(&["texts", &shelf, "--cut", "6", "--output", &target], b"");
    assert!(table.status.success());
    assert_eq!(std::fs::read(&target).unwrap(), cut.stdout);
    let table = String::from_utf8(table.stdout).unwrap();
    assert_eq!(table, summary);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let counts = |name: &str| {
        let line = table.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        (counts("documents"), counts("passages "), counts("skipped files")),
        (vec!["2".into()], vec!["3".into()], vec!["1".into()])
    );
    assert_eq!(counts("front matter of Markdown"), ["1", "4"]);
}

#[test]
fn texts_that_cannot_be_cut_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name).display().to_string()
    };
    let (text, latin, symbols) = (file("a.txt", b"A text."), file("b.txt", b"caf\xe9"), file("c.txt", b"1 2 3 4"));
    let cases: [(&[&str], &str); 6] = [
        (&["texts", &text, "--cut", "0"], "--cut, --overlap: a passage has 1 to 100000 words, and not 0"),
        (
            &["texts", &text, "--cut", "8", "--overlap", "8"],
            "an overlap of 8 words is more than half of a passage of 8 words",
        ),
        (&["texts", &text, "--at", "page"], "paragraph, sentence, word"),
        (&["texts", &latin], "b.txt: line 1: byte 3 of the file is 0xe9, which is not UTF-8; convert it (`iconv"),
        (&["texts", &symbols], "no passage is left"),
        (&["texts"], "PATH"),
    ];
    for (arguments, expected) in cases {
        let error = stderr(&run(arguments, b""));
        assert!(error.contains(expected), "{error}");
    }
    let target = folder.path().join("out.jsonl");
    assert!(!run(&["texts", &text, &latin, "--output", &target.display().to_string()], b"").status.success());
    assert!(!target.exists());
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

/// Output of a command as a table.
fn table(arguments: &[&str], input: &[u8]) -> String {
    let output = run(&[arguments, &["--format", "table"]].concat(), input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_request_prints_the_table_that_flags_print() {
    let text = |n: usize| format!("Lot {n} is a silver jug from Blackham, number {}.", n * n);
    let labelled: Vec<Value> = (0..30).map(|n| json!({ "text": text(n), "label": n % 2 })).collect();
    let plain: Vec<Value> = (0..4).map(|n| json!({ "text": text(n) })).collect();
    let lines = |samples: &[Value]| samples.iter().map(|sample| format!("{sample}\n")).collect::<String>();
    let replicates = json!({ "bootstrap": { "replicates": 20 } });
    for samples in [&labelled, &plain] {
        let body = json!({ "model": "demo", "samples": samples, "methods": ["loss", "min_k"], "metrics": replicates });
        let requested = table(&["audit", "--request", "-"], body.to_string().as_bytes());
        let flags = ["audit", "-", "--methods", "loss,min_k", "--replicates", "20"];
        let by_flags = table(&flags, lines(samples).as_bytes());
        assert_eq!(requested, by_flags);
        assert!(requested.lines().any(|line| line.starts_with("min_k(k=0.2)")), "{requested}");
    }

    let directory = tempfile::tempdir().unwrap();
    let shards = [["One text.", "Another text.", "A third text."], ["Jugs.", "Bells.", "Clocks of brass."]];
    let path = directory.path().join("shards.jsonl");
    std::fs::write(&path, shards.map(|shard| json!(shard).to_string()).join("\n")).unwrap();
    let body = json!({ "model": "demo", "kind": "order", "shards": shards, "methods": ["loss"] });
    let requested = table(&["test", "--request", "-"], body.to_string().as_bytes());
    let by_flags = table(&["test", "order", path.to_str().unwrap(), "--methods", "loss"], b"");
    assert_eq!(requested, by_flags);
    assert!(requested.starts_with("verdict: "), "{requested}");

    let body =
        json!({ "model": "demo", "texts": [{ "id": "a", "text": text(5) }], "prefix": 4, "suffix": 4, "stride": 4 });
    let requested = table(&["memorization", "--request", "-"], body.to_string().as_bytes());
    let flags = ["memorization", "-", "--prefix", "4", "--suffix", "4", "--stride", "4"];
    let by_flags = table(&flags, json!({ "id": "a", "text": text(5) }).to_string().as_bytes());
    assert_eq!(requested, by_flags);
}

#[test]
fn tables_fit_80_columns_and_name_what_they_leave_out() {
    let line =
        |n: usize| json!({ "text": format!("Lot {n} is a silver jug from Blackham."), "label": n % 2 }).to_string();
    let input = (0..20).map(line).collect::<Vec<_>>().join("\n");
    let audit = ["audit", "-", "--replicates", "20"];
    let narrow = table(&audit, input.as_bytes());
    let header = narrow.lines().find(|line| line.starts_with("method ")).unwrap();
    assert!(header.ends_with("TPR@5%") && header.len() <= 80, "{narrow}");
    assert!(narrow.contains("\nwithout FPR@95%, vs. baseline (--wide shows all)\n"), "{narrow}");
    assert!(narrow.contains("\nmin_k_plus_plus(k=0.2)+linear(alpha=1) "), "labels are whole: {narrow}");
    let wide = table(&[&audit[..], &["--wide"]].concat(), input.as_bytes());
    assert!(wide.contains(" on min_k_plus_plus(k=0.2)\n") && !wide.contains("without FPR"), "{wide}");

    let scores = table(&["score", "-", "--methods", "loss,min_k"], input.as_bytes());
    let rows: Vec<Vec<&str>> = scores.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows.len(), &rows[0][..]), (21, &["text", "tokens", "loss", "min_k(k=0.2)"][..]));
    assert_eq!((&rows[1][..2], rows[1].len()), (&["line", "1"][..], 5));
    let refused = stderr(&run(&["score", "-", "--tokens", "--format", "table"], input.as_bytes()));
    assert!(refused.contains("--tokens lists of tokens fit no table"), "{refused}");
}

#[test]
fn flags_of_methods_are_a_product_and_unknown_names_are_answered_with_a_similar_one() {
    let input = br#"{"text": "The brass clock struck nine in Fallowfield."}"#;
    let flags = ["score", "-", "--methods", "loss,min_k", "--k", "0.1,0.2", "--decay", "none,linear", "--alpha", "0.5"];
    let scores = lines(&run(&flags, input))[0]["scores"].clone();
    let labels: Vec<&String> = scores.as_object().unwrap().keys().collect();
    let expected = [
        "loss",
        "loss+linear(alpha=0.5)",
        "min_k(k=0.1)",
        "min_k(k=0.2)",
        "min_k(k=0.1)+linear(alpha=0.5)",
        "min_k(k=0.2)+linear(alpha=0.5)",
    ];
    assert_eq!(labels, expected);
    for (arguments, named) in [
        (&["--methods", "Min-K%++"][..], "unknown method `Min-K%++` (did you mean `min_k_plus_plus`?)"),
        (&["--methods", "mink++(k=0.1)"], "(did you mean `min_k_plus_plus`?)"),
        (&["--decay", "lineal", "--alpha", "1"], "unknown decay `lineal` (did you mean `linear`?)"),
        (&["--preset", "wikimia"], "unknown preset `wikimia` (did you mean `paper_wikimia`?)"),
        (&["--methods", "loss", "--k", "0.1"], "--k: none of the methods loss takes `k`"),
        (&["--methods", "min_k", "--k", "2"], "outside (0, 1]"),
    ] {
        let said = stderr(&run(&[&["score", "-"], arguments].concat(), input));
        assert!(said.contains(named), "{arguments:?}: {said}");
    }
}

#[test]
fn methods_are_listed_and_shown_in_full() {
    let list = run(&["methods"], b"");
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.lines().any(|line| line.starts_with("min_k_plus_plus ")), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let full = String::from_utf8(run(&["methods", "min_k"], b"").stdout).unwrap();
    assert!(full.contains("arXiv:2310.16789") && full.contains("k=0.2 in (0, 1]"), "{full}");
    let json: Value = serde_json::from_slice(&run(&["methods", "--format", "json"], b"").stdout).unwrap();
    assert_eq!(json["methods"][0]["name"], "loss");
    let said = stderr(&run(&["methods", "mink"], b""));
    assert!(said.contains("(did you mean `min_k`?)"), "{said}");
}

#[test]
fn a_check_says_what_would_be_served_and_fails_where_a_part_does() {
    let sound = run_with(&["serve", "--check", "--port", "0"], b"", &[]);
    let said = String::from_utf8(sound.stdout).unwrap();
    assert!(sound.status.success(), "{said}");
    for line in
        ["model demo            ok     part of the program (default)", "keys                  ok     none", "store "]
    {
        assert!(said.lines().any(|said| said.starts_with(line)), "{said}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (empty, absent) = (directory.path().join("empty"), directory.path().join("absent"));
    std::fs::create_dir(&empty).unwrap();
    let store = format!("sqlite://{}/store.db", absent.display());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let keys = absent.join("keys.toml").display().to_string();
    let variables = [("PDR_AUDIT__STORE__URL", &*store), ("PDR_AUDIT__AUTH__KEYS", &*keys)];
    let arguments = ["serve", "--check", "--port", &port, "--model", empty.to_str().unwrap()];
    let faulty = run_with(&arguments, b"", &variables);
    let (said, error) = (String::from_utf8_lossy(&faulty.stdout).into_owned(), stderr(&faulty));
    assert!(error.contains("4 faults"), "{said}{error}");
    let fault = |part: &str, words: &str| {
        let line = said.lines().find(|line| line.starts_with(part)).unwrap_or_else(|| panic!("{part}: {said}"));
        assert!(line.contains(" FAULT ") && line.contains(words), "{line}");
    };
    fault("address", "cannot listen on 127.0.0.1");
    fault("keys", "keys.toml");
    fault("store", "does not exist");
    fault("model empty", "config.json");
}

#[test]
fn help_has_headings_and_examples() {
    let help = |command: &str| String::from_utf8(run(&[command, "--help"], b"").stdout).unwrap();
    for (command, headings) in [
        ("score", &["Texts:", "Model:", "Methods:", "Output:", "Examples:"][..]),
        ("audit", &["Texts:", "Model:", "Methods:", "Statistics:", "Verdict:", "Output:", "Examples:"]),
        ("memorization", &["Texts:", "Windows:", "Model:", "Output:", "Examples:"]),
        ("finetune", &["Texts:", "Model:", "Adapter:", "Tuning:", "Examples:"]),
        ("serve", &["Service:", "Model:", "Examples:"]),
    ] {
        let help = help(command);
        for heading in headings {
            assert!(help.lines().any(|line| line == *heading), "{command}: {heading}: {help}");
        }
    }
}

#[test]
fn an_audit_in_a_folder_leaves_its_files_and_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let line =
        |n: usize| json!({ "text": format!("Lot {n} is a silver jug from Blackham."), "label": n % 2 }).to_string();
    let texts = directory.path().join("texts.jsonl");
    std::fs::write(&texts, (0..20).map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let out = directory.path().join("run");
    let (texts, folder) = (texts.to_str().unwrap(), out.to_str().unwrap());
    let flags = ["audit", texts, "--methods", "loss,min_k+linear(alpha=1)", "--replicates", "20", "--format", "json"];
    let audit = run(&[&flags[..], &["--out", folder]].concat(), b"");
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
    let mut names: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(
        names,
        ["figures", "log.txt", "methods.csv", "report.html", "report.json", "request.json", "scores.ndjson"]
    );
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let [report, printed]: [Value; 2] =
        [read("report.json").into_bytes(), audit.stdout].map(|json| serde_json::from_slice(&json).unwrap());
    assert_eq!(report, printed);
    assert_eq!(read("scores.ndjson").lines().count(), 20);
    let methods = read("methods.csv");
    assert!(methods.starts_with("label,name,scored,auroc,auroc_standard_error,tpr at FPR 0.005,"), "{methods}");
    assert_eq!(methods.lines().count(), 3);
    let request: Value = serde_json::from_str(&read("request.json")).unwrap();
    assert_eq!((&request["arguments"][0], &request["plan"]["model"]), (&json!("audit"), &json!("demo")));
    assert!(read("log.txt").ends_with("the audit has ended\n"));
    let again = stderr(&run(&[&flags[..], &["--out", folder]].concat(), b""));
    assert!(again.contains("the folder is not empty"), "{again}");
    let ended = stderr(&run(&["audit", "--resume", folder], b""));
    assert!(ended.contains("the audit has ended"), "{ended}");
    let mixed = stderr(&run(&["audit", texts, "--resume", folder], b""));
    assert!(mixed.contains("cannot be used with"), "{mixed}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_audit_says_what_is_kept_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let demo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/audit.jsonl");
    let out = directory.path().join("run");
    std::fs::copy(&demo, directory.path().join("audit.jsonl")).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(["audit", "audit.jsonl", "--methods", "loss", "--replicates", "20", "--out", "run"])
        .current_dir(directory.path())
        .envs(DEMO_BY_DEFAULT)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !out.join("request.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let interrupted = child.wait_with_output().unwrap();
    let said = stderr(&interrupted);
    assert!(said.contains("error: interrupted after ") && said.contains(" of 1000 samples; "), "{said}");
    assert!(said.contains("go on with `pdr-audit audit --resume "), "{said}");
    assert!(!out.join("report.json").exists() && out.join("statistics").is_dir());
    let refused = stderr(&run(&["audit", demo.to_str().unwrap(), "--out", out.to_str().unwrap()], b""));
    assert!(refused.contains("go on with `pdr-audit audit --resume "), "{refused}");

    let resumed = run(&["audit", "--resume", out.to_str().unwrap()], b"");
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    assert!(report["usage"]["cached_passes"].as_u64().unwrap() > 0, "{}", report["usage"]);
    assert_eq!(report["samples"]["total"], 1000);
    assert!(!out.join("statistics").exists());
}

#[test]
fn a_global_option_of_a_command_is_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys.toml").display().to_string();
    let made = run(&["key", "new", "--name", "alice", "--keys", &keys], b"");
    assert!(made.status.success() && made.stdout.starts_with(b"pdr_"), "{}", String::from_utf8_lossy(&made.stderr));
    let listed = run(&["key", "--keys", &keys, "list"], b"");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("alice"), "{}", String::from_utf8_lossy(&listed.stderr));
    let revoked = run(&["key", "revoke", "--name", "alice", "--keys", &keys], b"");
    assert!(String::from_utf8_lossy(&revoked.stderr).starts_with("1 of 1 key revoked"));
}

#[test]
fn a_fine_tune_from_flags_prints_its_report() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let text = |n: usize| json!({ "text": format!("Lot {n} is a silver jug from Blackham, number {}.", n * n) });
    std::fs::write(path("texts.jsonl"), (0..8).map(|n| format!("{}\n", text(n))).collect::<String>()).unwrap();
    let print = |output: &str, format: &[&str]| {
        let arguments =
            ["finetune", &path("texts.jsonl"), "--model", "demo", "--epochs", "1", "--output", &path(output)];
        let tuned = run(&[&arguments, format].concat(), b"");
        assert!(tuned.status.success(), "{}", String::from_utf8_lossy(&tuned.stderr));
        String::from_utf8(tuned.stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&print("one", &[])).unwrap();
    assert_eq!(
        (&report["adapter"], report["steps"].as_array().map(Vec::len)),
        (&json!("demo:one"), Some(1)),
        "{report}"
    );
    for digest in ["digest", "base_digest"] {
        assert!(report[digest].as_str().is_some_and(|digest| digest.starts_with("sha256:")), "{report}");
    }
    let table = print("two", &["--format", "table"]);
    assert_eq!(
        table,
        format!("demo:two: 1 step, loss {0:.4} to {0:.4}\n", report["steps"][0]["loss"].as_f64().unwrap())
    );
}

#[test]
fn a_fine_tune_that_a_request_asks_for_ends_and_is_told_in_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite://{}/store.db", directory.path().display());
    let text = |n: usize| json!({ "text": format!("Lot {n} is a silver jug from Blackham, number {}.", n * n) });
    let body = json!({ "model": "demo", "name": "tuned", "samples": (0..8).map(text).collect::<Vec<_>>(),
        "optimizer": { "epochs": 1 } });
    let arguments = ["finetune", "--request", "-", "--format", "table"];
    let tuned = run_with(&arguments, body.to_string().as_bytes(), &[("PDR_AUDIT__STORE__URL", &store)]);
    let said = String::from_utf8_lossy(&tuned.stdout);
    assert!(said.starts_with("demo:tuned: 1 step, loss "), "{said}{}", String::from_utf8_lossy(&tuned.stderr));
}
