//! Files that people have, and what the command line says of those that it cannot read.

use crate::common::DEMO_BY_DEFAULT;
use crate::common::goldens;
use crate::common::hub_server::{HubServer, REPO};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn run(directory: &Path, arguments: &[&str]) -> Output {
    run_with(directory, arguments, &[])
}

fn run_with(directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(arguments)
        .current_dir(directory)
        .env("HF_HOME", directory.join("hub"))
        .envs(DEMO_BY_DEFAULT)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

const TEXTS: [(&str, u8); 4] = [
    ("The brass clock struck nine in Fallowfield.", 1),
    ("Lot 7 is a silver jug from Blackham.", 1),
    ("Nobody in this village has ever counted the windows.", 0),
    ("A parcel of damp letters arrived after the flood.", 0),
];

fn ndjson() -> String {
    let lines = TEXTS.iter().enumerate();
    lines.map(|(id, (text, label))| json!({ "id": id, "text": text, "label": label }).to_string() + "\n").collect()
}

fn csv() -> String {
    let rows = TEXTS.iter().enumerate();
    let rows: String = rows.map(|(id, (text, label))| format!("{id},{text},{}\n", *label == 1)).collect();
    format!("doc,content,seen\n{rows}")
}

#[test]
fn a_text_has_one_score_whatever_file_it_comes_from() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| std::fs::write(directory.path().join(name), content).unwrap();
    write("a.jsonl", &ndjson());
    write("a.csv", &csv());
    let array: Vec<&str> = TEXTS.iter().map(|(text, _)| *text).collect();
    write("a.json", &serde_json::to_string_pretty(&array).unwrap());
    let scores = |arguments: &[&str]| -> Vec<Value> {
        let out = succeeded(&run(directory.path(), &[&["score", "--methods", "loss"], arguments].concat()));
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["scores"]["loss"].clone()).collect()
    };
    let expected = scores(&["a.jsonl"]);
    assert_eq!(expected.len(), 4);
    assert_eq!(scores(&["a.csv", "--text-column", "content"]), expected);
    assert_eq!(scores(&["a.json"]), expected);

    // A written table can be read again, with its extra columns.
    let table = |name: &str| {
        let arguments = ["score", "a.csv", "--text-column", "content", "--id-column", "doc", "--methods", "loss"];
        succeeded(&run(directory.path(), &[&arguments[..], &["--output", name]].concat()));
    };
    table("out.csv");
    let written = std::fs::read_to_string(directory.path().join("out.csv")).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert!(lines[0].starts_with("doc,seen,id,index,scored_tokens,"), "{written}");
    assert!(lines[1].starts_with("0,true,0,0,") && lines[1].contains(&expected[0].to_string()), "{written}");
    table("out.parquet");
    assert_eq!(&std::fs::read(directory.path().join("out.parquet")).unwrap()[..4], b"PAR1");
    // Numbers are too short to be scored, but what came along comes along again.
    let again = run(directory.path(), &["score", "out.parquet", "--text-column", "doc", "--methods", "loss"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains(r#""seen":"true""#), "{}", stderr(&again));
}

#[test]
fn texts_are_cut_to_a_number_of_words() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.jsonl"), ndjson()).unwrap();
    let cut: String = TEXTS
        .iter()
        .map(|(text, _)| {
            let words: Vec<&str> = text.split(' ').take(3).collect();
            json!({ "text": words.join(" ") }).to_string() + "\n"
        })
        .collect();
    std::fs::write(directory.path().join("b.jsonl"), cut).unwrap();
    let loss = |arguments: &[&str]| -> Vec<Value> {
        let out = succeeded(&run(directory.path(), &[&["score", "--methods", "loss"], arguments].concat()));
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["scores"].clone()).collect()
    };
    assert_eq!(loss(&["a.jsonl", "--words", "3"]), loss(&["b.jsonl"]));
}

#[test]
fn an_audit_writes_its_scores_with_their_thresholds() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.csv"), csv()).unwrap();
    let audit = ["audit", "a.csv", "--text-column", "content", "--label-column", "seen", "--methods", "loss,zlib"];
    let table = succeeded(&run(
        directory.path(),
        &[&audit[..], &["--format", "table", "--fpr", "0.5", "--scores", "s.csv"]].concat(),
    ));
    assert!(table.contains("4 samples, 2 members, 2 non-members, 0 exclusions"), "{table}");
    let scores = std::fs::read_to_string(directory.path().join("s.csv")).unwrap();
    let header = scores.lines().next().unwrap();
    // Two texts a list are too few for the classifier's log-odds.
    assert_eq!(
        header,
        "index,doc,seen,label,cluster,scored_tokens,truncated,control_scores,control_measures,text_digest,errors,\
         loss,zlib,loss threshold at FPR 0.5,loss above at FPR 0.5,zlib threshold at FPR 0.5,zlib above at FPR 0.5"
    );
    let place = |name: &str| header.split(',').position(|column| column == name).unwrap();
    let (loss, threshold) = (place("loss"), place("loss threshold at FPR 0.5"));
    // At one half, one of the two non-members may be at or above the threshold.
    let mut rows = csv::Reader::from_reader(scores.as_bytes());
    let above = rows.records().filter(|row| {
        let row = row.as_ref().unwrap();
        let is_above = &row[threshold + 1] == "true";
        assert_eq!(row[loss].parse::<f64>().unwrap() >= row[threshold].parse::<f64>().unwrap(), is_above);
        &row[3] == "0" && is_above
    });
    assert!(above.count() <= 1, "{scores}");

    succeeded(&run(directory.path(), &[&audit[..], &["--scores", "s.ndjson"]].concat()));
    let lines = std::fs::read_to_string(directory.path().join("s.ndjson")).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["thresholds"]["loss"].as_array().unwrap().len(), 3, "{first}");
}

#[test]
fn an_audit_without_labels_shows_how_scores_are_spread() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.csv"), csv()).unwrap();
    let arguments = ["audit", "a.csv", "--text-column", "content", "--methods", "loss", "--format", "table"];
    let table = succeeded(&run(directory.path(), &arguments));
    assert!(table.contains("4 samples without labels, 0 exclusions"), "{table}");
    assert!(table.contains("lowest") && table.contains("median") && !table.contains("AUROC"), "{table}");
}

#[test]
fn an_interrupted_run_resumed_gives_the_bytes_of_one_that_was_not() {
    let directory = tempfile::tempdir().unwrap();
    let texts: String = (0..3_000).fold(String::new(), |mut all, number| {
        let _ =
            writeln!(all, "{}", json!({ "id": number, "text": format!("Letter {number} of the baker of Denmoor.") }));
        all
    });
    std::fs::write(directory.path().join("a.jsonl"), texts).unwrap();
    let arguments = |output: &'static str| ["score", "a.jsonl", "--output", output];
    succeeded(&run(directory.path(), &arguments("whole.csv")));

    let mut child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(arguments("parts.csv"))
        .current_dir(directory.path())
        .envs(DEMO_BY_DEFAULT)
        .spawn()
        .unwrap();
    let partial = directory.path().join("parts.csv.partial");
    let lines = || std::fs::read_to_string(&partial).map_or(0, |text| text.lines().count());
    while lines() < 500 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!directory.path().join("parts.csv").exists() && lines() < 3_000);
    let refused = run(directory.path(), &arguments("parts.csv"));
    assert!(!refused.status.success() && stderr(&refused).contains("--resume"));
    let other = [&arguments("parts.csv")[..], &["--resume", "--words", "2"]].concat();
    assert!(stderr(&run(directory.path(), &other)).contains("it is of another run: input was"));

    succeeded(&run(directory.path(), &[&arguments("parts.csv")[..], &["--resume"]].concat()));
    let read = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
    assert!(read("parts.csv") == read("whole.csv"), "the resumed run wrote something else");
    assert!(!partial.exists());
}

/// The arguments, the environment, the exit code, and what is said.
type Mistake<'a> = (&'a str, &'a [(&'a str, &'a str)], i32, &'a str);

/// Runs what a user may try.
fn assert_told(directory: &Path, mistakes: &[Mistake]) {
    for (arguments, environment, code, said) in mistakes {
        let arguments_list: Vec<&str> = arguments.split(' ').collect();
        let output = run_with(directory, &arguments_list, environment);
        let error = stderr(&output);
        println!("{arguments:55} {:?} {}", output.status.code(), error.trim_end().replace('\n', " | "));
        assert_eq!(output.status.code(), Some(*code), "{arguments}: {error}");
        assert!(error.contains(said), "{arguments}: {error}");
    }
}

fn write(directory: &Path, name: &str, content: &[u8]) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn mistakes_about_files_are_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| write(directory.path(), name, content);
    write("texts.jsonl", ndjson().as_bytes());
    write("columns.csv", csv().as_bytes());
    write("short.jsonl", b"{\"text\": \"\"}\n{\"text\": \"\"}\n");
    write("broken.jsonl", b"nonsense\n{\"body\": 1}\n");
    write("mixed.jsonl", format!("{}nonsense\n", ndjson()).as_bytes());
    write("pretty.json", b"{\n  \"text\": \"a\"\n}\n");
    write("utf16.csv", &"text\na\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    write("labels.csv", b"text,label\na,yes\n");
    write("both.csv", b"text,input\na,b\n");
    write("fake.parquet", b"text\na\n");
    write("empty.jsonl", b"");
    write("novel.txt", b"It was a bright day in April.\n\nThe clocks struck thirteen, and nobody minded.\n");
    write("upper.csv", b"text,LABEL\na,1\nb,0\n");
    write("upper.jsonl", b"{\"text\": \"a\", \"Label\": 1}\n");
    write("title.csv", b"Text\na\n");
    write("half.jsonl", b"{\"text\": \"a\", \"label\": 1}\n\n{\"text\": \"b\"}\n");
    write("pair.jsonl", b"{\"text\": \"a\", \"label\": 1}\n\n{\"text\": \"b\", \"label\": 0}\n");
    write("rows.csv", b"text,label\r\n\r\n\"a\r\nb\",1\r\nc\r\n");
    write("no-model/notes.txt", b"x");
    write("books/one.md", b"# One\n\nThe ferry left at six, and nobody waved.\n");
    write("books/scan.pdf", b"%PDF-1.4\n");
    write("latin.txt", b"caf\xe9 au lait, and nothing else to read\n");
    write("bare/numbers.txt", b"1 2 3\n");
    let mistakes: &[Mistake] = &[
        ("score absent.jsonl", &[], 1, "cannot read absent.jsonl: No such file"),
        ("score columns.csv", &[], 1, "columns found: doc, content, seen; use --text-column content"),
        (
            "score columns.csv --text-column body",
            &[],
            1,
            "no column `body` (--text-column); columns found: doc, content, seen",
        ),
        (
            "audit columns.csv --text-column content --label-column member",
            &[],
            1,
            "no column `member` (--label-column)",
        ),
        ("score both.csv", &[], 1, "both `text` and `input`; choose one with --text-column"),
        ("score short.jsonl", &[], 1, "2 of 2 texts could not be scored; first: line 1: "),
        ("score broken.jsonl", &[], 1, "2 of 2 texts could not be scored; first: line 1: not JSON: "),
        ("score mixed.jsonl", &[], 0, "warning: 1 of 5 texts could not be scored; first: line 5: not JSON: "),
        ("score mixed.jsonl --strict", &[], 1, "error: 1 of 5 texts could not be scored; first: line 5: not JSON: "),
        ("score empty.jsonl", &[], 1, "empty.jsonl: there are no texts"),
        ("score empty.jsonl --output x.csv", &[], 1, "empty.jsonl: there are no texts"),
        ("dataset empty.jsonl --output x.csv", &[], 1, "empty.jsonl: there are no texts"),
        ("score novel.txt", &[], 0, "1 document, 1 passage, 14 words"),
        ("audit novel.txt --model demo --replicates 0", &[], 0, "1 document, 1 passage, 14 words"),
        ("finetune novel.txt --output tuned", &[], 1, "1 texts to tune on; it takes at least 8"),
        ("score books --cut 8 --overlap 8", &[], 1, "--cut, --overlap"),
        ("score books", &[], 0, "skipped: scan.pdf: it is a PDF"),
        ("score novel.txt books/scan.pdf", &[], 1, "it is a PDF, which has pages and no text"),
        ("score texts.jsonl novel.txt", &[], 1, "texts.jsonl is a file of samples, which is read alone"),
        ("score latin.txt", &[], 1, "which is not UTF-8; convert it (`iconv -f ISO-8859-1 -t UTF-8`"),
        ("memorization bare", &[], 1, "bare: there are no texts"),
        (
            "audit novel.txt --calibration books",
            &[],
            1,
            "--calibration: books: 1 known work is too few: p-values take 19 at least",
        ),
        ("audit upper.csv", &[], 1, "no column `label`, but `LABEL`; use --label-column LABEL, or rename the column"),
        (
            "audit upper.jsonl",
            &[],
            1,
            "line 1: no column `label`, but `Label`; use --label-column Label, or rename the column",
        ),
        ("score title.csv", &[], 1, "columns found: Text; use --text-column Text"),
        (
            "score texts.jsonl --output x.xlsx",
            &[],
            2,
            "results are not written as `.xlsx`; the name ends in .ndjson, .jsonl, .csv or .parquet",
        ),
        ("score texts.jsonl --output x.csv.gz", &[], 2, "results are not written as `.gz`"),
        ("audit texts.jsonl --scores x.json", &[], 2, "results are not written as `.json`"),
        ("dataset texts.jsonl --output x.txt", &[], 2, "results are not written as `.txt`"),
        ("audit empty.jsonl", &[], 1, "the list of samples is empty"),
        ("audit half.jsonl", &[], 1, "half.jsonl: 1 of 2 samples has a label, and line 3 has none"),
        ("audit rows.csv", &[], 1, "cannot read rows.csv: line 5: 1 field, where the header has 2"),
        (
            r#"audit pair.jsonl --methods [{"name":"recall","prefix":["b"]}]"#,
            &[],
            1,
            "--methods: /0/prefix/0: the text is also scored, as line 3, so the prefix would contain it",
        ),
        ("score pretty.json", &[], 1, "write each on one line (`jq -c .`)"),
        ("score utf16.csv", &[], 1, "the file is UTF-16LE, not UTF-8; convert it (`iconv -f UTF-16LE -t UTF-8`)"),
        (
            "score utf16.csv --input-format csv",
            &[],
            1,
            "the file is UTF-16LE, not UTF-8; convert it (`iconv -f UTF-16LE -t UTF-8`)",
        ),
        ("audit labels.csv", &[], 1, "line 2: `label`: the label is \"yes\"; it must be 0 or 1, true or false"),
        ("score fake.parquet", &[], 1, "not a Parquet file: it does not begin with \"PAR1\""),
        ("score texts.jsonl --input-format xml", &[], 2, "possible values: ndjson, json, csv, parquet"),
        ("score texts.jsonl --delimiter ab", &[], 2, "expected one ASCII character"),
        ("score texts.jsonl --words 0", &[], 2, "--words"),
        ("score - --output x.csv --resume", &[], 1, "--resume needs one file"),
        ("score columns.csv --output x.csv", &[], 1, "use --text-column content"),
        ("score texts.jsonl --output x.csv --model no-model", &[], 1, "found: notes.txt"),
        ("score texts.jsonl --resume", &[], 2, "--output"),
        ("score texts.jsonl --tokens --output x.csv", &[], 1, "--tokens lists of tokens fit no table; write NDJSON"),
        ("score texts.jsonl --output absent/x.csv", &[], 1, "cannot write absent/x.csv"),
        ("audit texts.jsonl --scores absent/x.csv", &[], 1, "cannot write absent/x.csv"),
        ("score texts.jsonl --dtype f8", &[], 2, "possible values: auto, f32, f16, bf16"),
        ("score texts.jsonl --reference demo", &[], 1, "`demo` cannot be its own reference"),
        (
            "score texts.jsonl",
            &[("PDR_AUDIT_SERVER_PORT", "1")],
            1,
            "two underscores separate the parts of a name: PDR_AUDIT__SERVER__PORT",
        ),
        ("score texts.jsonl", &[("PDR_AUDIT__LOG__LEVEL", "verbose")], 1, "expected a filter as in \"info\""),
    ];
    assert_told(directory.path(), mistakes);
    assert!(!directory.path().join("x.csv").exists() && !directory.path().join("x.csv.partial").exists());
}

/// Copies a golden, with one file shorter than it should be.
fn write_cut_off(directory: &Path, golden: &str, cut: &str, length: usize) {
    for entry in std::fs::read_dir(goldens::directory(golden)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        write(directory, &format!("cut-{golden}/{name}"), if name == cut { &bytes[..length] } else { &bytes });
    }
}

/// The address of a Hub without a repository, which gives every request this status and `X-Error-Code`.
fn hub_that_refuses(refusal: Option<(u16, &'static str)>) -> String {
    let server = HubServer::with(&[]);
    server.state().refuse = refusal;
    server.url()
}

#[test]
fn mistakes_about_models_are_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| write(directory.path(), name, content);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo");
    let file = |name: &str| std::fs::read(model.join(name)).unwrap();
    write("texts.jsonl", ndjson().as_bytes());
    write("no-model/notes.txt", b"x");
    write("books/one.md", b"# One\n\nThe ferry left at six, and nobody waved.\n");
    write("books/scan.pdf", b"%PDF-1.4\n");
    write("latin.txt", b"caf\xe9 au lait, and nothing else to read\n");
    write("bare/numbers.txt", b"1 2 3\n");
    for directory in ["cut-off", "pointer", "bin-pointer"] {
        write(&format!("{directory}/config.json"), &file("config.json"));
        write(&format!("{directory}/tokenizer.json"), &file("tokenizer.json"));
    }
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";
    write("cut-off/model.safetensors", &file("model.safetensors")[..1_000]);
    write("pointer/model.safetensors", pointer);
    write("bin-pointer/pytorch_model.bin", pointer);
    write_cut_off(directory.path(), "gptneox-sharded", "model-00002-of-00004.safetensors", 5_000);
    write_cut_off(directory.path(), "opt-post-proj", "pytorch_model.bin", 300_000);

    let hubs = [None, Some((401, "GatedRepo")), Some((403, "GatedRepo")), Some((401, "Other"))].map(hub_that_refuses);
    let [without, gated, forbidden, expired] = hubs.each_ref().map(|url| [("HF_ENDPOINT", url.as_str())]);
    let offline = [("HF_HUB_OFFLINE", "1")];
    let mistakes: &[Mistake] = &[
        (
            "score texts.jsonl --model pythia",
            &[],
            1,
            "`pythia` is neither a configured model (demo, demo-reference), nor a directory",
        ),
        ("score texts.jsonl --model ../absent", &[], 1, "source `../absent` is not a directory, nor a repository"),
        ("score texts.jsonl --model a/../b", &[], 1, "source `a/../b` is not a directory, nor a repository"),
        (
            "score texts.jsonl --model no/such",
            &offline,
            1,
            "`no/such` (there is no such directory, so it names a repository)",
        ),
        (
            "score texts.jsonl --model no/such@v2",
            &offline,
            1,
            "at revision `v2` is not completely in the cache, and HF_HUB_OFFLINE is set",
        ),
        ("score texts.jsonl --model ../a/b", &[], 1, "source `../a/b` is not a directory, nor a repository"),
        ("score texts.jsonl --model a/b@../c", &without, 1, "the Hub has no model `a/b` at revision `../c`"),
        (
            "score texts.jsonl --model no/such",
            &without,
            1,
            "the Hub has no model `no/such` at revision `main`; if it is private, set HF_TOKEN",
        ),
        ("score texts.jsonl --model no/such@v2", &without, 1, "the Hub has no model `no/such` at revision `v2`"),
        ("count-tokens texts.jsonl --model no/such", &without, 1, "the Hub has no model `no/such` at revision `main`"),
        (
            "score texts.jsonl --model some/gated",
            &gated,
            1,
            "the model `some/gated` is gated: accept its licence on its page on the Hub and set HF_TOKEN",
        ),
        ("audit texts.jsonl --model some/gated", &forbidden, 1, "the model `some/gated` is gated: accept its licence"),
        (
            "score texts.jsonl --model some/private",
            &expired,
            1,
            "the Hub refuses access to the model `some/private`: 401 Unauthorized; check HF_TOKEN",
        ),
        (
            "score texts.jsonl --model no-model",
            &[],
            1,
            "no-model/config.json: no such file; is this the right directory? found: notes.txt",
        ),
        ("score texts.jsonl --model cut-off", &[], 1, "the file is cut off: 1000 of "),
        (
            "score texts.jsonl --model cut-gptneox-sharded",
            &[],
            1,
            "model-00002-of-00004.safetensors: the file is cut off: 5000 of 114400 bytes; download it again",
        ),
        (
            "score texts.jsonl --model cut-opt-post-proj",
            &[],
            1,
            "pytorch_model.bin: the file is cut off after 300000 bytes; download it again",
        ),
        ("score texts.jsonl --model pointer", &[], 1, "a pointer of Git LFS, not the weights"),
        ("score texts.jsonl --model bin-pointer", &[], 1, "pytorch_model.bin: a pointer of Git LFS, not the weights"),
    ];
    assert_told(directory.path(), mistakes);
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn a_long_download_is_told_without_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "texts.jsonl", ndjson().as_bytes());
    let hub = HubServer::with(&[("config.json", b"{}"), ("tokenizer.json", b"{}"), ("model.safetensors", &[0; 2_044])]);
    hub.state().delay = Duration::from_secs(20);
    let mut child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(["score", "texts.jsonl", "--model", REPO])
        .current_dir(directory.path())
        .env("HF_HOME", directory.path().join("hub"))
        .env("HF_ENDPOINT", hub.url())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = said.find(|line| line.contains("downloading"));
    child.kill().unwrap();
    child.wait().unwrap();
    let line = line.expect("a line about the download");
    assert!(line.starts_with("downloading `tiny`: 0 B of 2.00 KiB, 1") && line.ends_with(" seconds"), "{line}");
}

#[test]
fn a_directory_is_a_model_without_any_setting() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.jsonl"), ndjson()).unwrap();
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let (demo, reference) = (models.join("demo"), models.join("demo-reference"));
    let (demo, reference) = (demo.to_str().unwrap(), reference.to_str().unwrap());
    let score = |arguments: &[&str]| -> Vec<Value> {
        let out =
            succeeded(&run(directory.path(), &[&["score", "a.jsonl", "--methods", "loss,ref"], arguments].concat()));
        out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["scores"].clone()).collect()
    };
    let expected = score(&[]);
    assert_eq!(expected[0].as_object().unwrap().len(), 2);
    let by_path = score(&["--model", demo, "--reference", reference, "--dtype", "f32"]);
    let values = |scores: &[Value]| -> Vec<Vec<Value>> {
        scores.iter().map(|scores| scores.as_object().unwrap().values().cloned().collect()).collect()
    };
    assert_eq!(values(&by_path), values(&expected));
}
