//! `pdr-audit count-tokens` as a user sees it, against counts made here with the crate's own tokenizer.

use crate::common::DEMO_BY_DEFAULT;
use lm::tokenizer::Tokenizer;
use pdr_audit::config::{Settings, TokenCountsSettings};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const TEXTS: [&str; 4] = [
    "Lot 7 is a silver jug from Blackham.",
    "",
    "The ferry left Ironbury at six,\nwith ninety passengers and a \"goat\".",
    "日本語 and <|endoftext|> stand here too.",
];

fn demo() -> Tokenizer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/demo/tokenizer.json");
    Tokenizer::from_json(&std::fs::read(path).unwrap()).unwrap()
}

/// Expected output of the command for these texts, each tokenized as a whole.
fn expected(texts: &[&str]) -> Value {
    let tokenizer = demo();
    let mut counts = vec![0u64; tokenizer.id_bound()];
    for text in texts {
        let encoded = tokenizer.encode(text).unwrap();
        for &id in encoded.ids.iter().skip(usize::from(encoded.bos_prepended())) {
            counts[id as usize] += 1;
        }
    }
    json!({
        "format": "pdr-audit token counts 1",
        "tokenizer": tokenizer.fingerprint().unwrap(),
        "model": "demo",
        "texts": texts.len(),
        "tokens": counts.iter().sum::<u64>(),
        "counts": counts,
    })
}

struct Directory(TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Counts in this directory, with `input` on standard input.
    fn count(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
            .arg("count-tokens")
            .args(arguments)
            .current_dir(self.0.path())
            // Settings with other models name the model themselves.
            .envs(DEMO_BY_DEFAULT.into_iter().filter(|_| !arguments.contains(&"--config")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that refuses its arguments never reads: a closed pipe is no failure of the test.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap()
    }

    fn counted(&self, arguments: &[&str], input: &str) -> Value {
        let output = self.count(arguments, input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str], input: &str) -> String {
        let output = self.count(arguments, input);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{said}");
        said
    }
}

fn ndjson(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{}\n", json!({ "text": text, "label": 1 }))).collect()
}

fn csv(texts: &[&str]) -> String {
    let rows = texts.iter().map(|text| format!("7,\"{}\"\n", text.replace('"', "\"\"")));
    format!("id,input\n{}", rows.collect::<String>())
}

#[test]
fn lines_of_standard_input_are_counted() {
    let counted = Directory::new().counted(&["-"], &ndjson(&TEXTS));
    assert_eq!(counted, expected(&TEXTS));
    assert!(counted["tokens"].as_u64().unwrap() > 40);
}

#[test]
fn files_of_every_kind_add_up() {
    let directory = Directory::new();
    directory.file("a.jsonl", ndjson(&TEXTS));
    directory.file("b.NDJSON", ndjson(&TEXTS[..1]));
    directory.file("c.csv", csv(&TEXTS));
    directory.file("d.txt", TEXTS[2]);
    let all = ["a.jsonl", "b.NDJSON", "c.csv", "d.txt"];
    let texts = [&TEXTS[..], &TEXTS[..1], &TEXTS[..], &TEXTS[2..3]].concat();
    let arguments = [&all[..], &["--model", "demo", "--output", "counts.json"]].concat();
    assert_eq!(directory.count(&arguments, "").stdout, b"");
    assert_eq!(directory.names(), ["a.jsonl", "b.NDJSON", "c.csv", "counts.json", "d.txt"]);
    let written = std::fs::read(directory.0.path().join("counts.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), expected(&texts));
}

#[test]
fn what_is_counted_of_a_file_can_be_said() {
    let directory = Directory::new();
    directory.file("a.csv", csv(&TEXTS).replacen("id,input", "id,content", 1));
    directory.file("b.data", ndjson(&TEXTS));
    directory.file("c.tsv", "text;input\nnothing;one two three\n");
    assert_eq!(directory.counted(&["a.csv", "--text-column", "content"], ""), expected(&TEXTS));
    assert_eq!(directory.counted(&["b.data", "--input-format", "ndjson"], ""), expected(&TEXTS));
    let arguments = ["c.tsv", "--delimiter", ";", "--text-column", "input", "--words", "2"];
    assert_eq!(directory.counted(&arguments, ""), expected(&["one two"]));

    assert!(directory.refused(&["a.csv"], "").contains("columns found: id, content; use --text-column content"));
    let said = directory.refused(&["a.csv", "b.data", "--text-column", "content"], "");
    assert!(said.contains("b.data: ") && said.contains("takes no --text-column; say what it is"), "{said}");
}

#[test]
fn a_long_corpus_is_counted_as_if_by_one_thread() {
    let texts: Vec<String> = (0..3_000).map(|i| format!("Entry {i}: {} and so on.", TEXTS[i % 4])).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let directory = Directory::new();
    directory.file("texts.jsonl", ndjson(&texts));
    assert_eq!(directory.counted(&["texts.jsonl"], ""), expected(&texts));
}

#[test]
fn a_bad_line_is_named_and_leaves_no_file_and_an_old_one_as_it_was() {
    let directory = Directory::new();
    directory.file("good.jsonl", ndjson(&TEXTS));
    directory.file("bad.jsonl", ndjson(&TEXTS) + "nonsense\n");
    directory.file("bad.csv", csv(&TEXTS) + "7\n");
    directory.file("bad.txt", b"one\ntwo \xff\n");
    directory.file("nothing.txt", "");
    let before = directory.names();
    let refused = |file: &str| directory.refused(&["good.jsonl", file, "--output", "counts.json"], "");
    for (file, named) in [("bad.jsonl", "line 5: not JSON"), ("bad.csv", "line 7"), ("bad.txt", "line 2: not UTF-8")] {
        let said = refused(file);
        assert!(said.contains(&format!("{file}: ")) && said.contains(named), "{said}");
    }
    assert!(refused("absent.jsonl").contains("absent.jsonl"));
    assert!(directory.refused(&["nothing.txt", "--output", "counts.json"], "").contains("no tokens"));
    assert_eq!(directory.names(), before);

    directory.file("counts.json", "what was counted before");
    refused("bad.jsonl");
    assert_eq!(std::fs::read(directory.0.path().join("counts.json")).unwrap(), b"what was counted before");
    assert_eq!(directory.names().len(), before.len() + 1);
}

#[test]
fn faults_of_the_arguments_are_named() {
    let directory = Directory::new();
    directory.file("good.jsonl", ndjson(&TEXTS));
    assert!(directory.refused(&["good.jsonl", "--model", "nope"], "").contains("`nope`"));
    assert!(directory.refused(&["good.jsonl", "--output", "absent/counts.json"], "").contains("absent/counts.json"));
    assert!(directory.refused(&[], "").contains("<FILES>"));
    assert!(directory.refused(&["-"], "{}\n").contains("-: line 1: no column `text` or `input`"));
}

#[test]
fn what_was_written_can_be_configured() {
    let directory = Directory::new();
    let arguments = ["-", "--output", "counts.json"];
    assert!(directory.count(&arguments, &ndjson(&TEXTS)).status.success());
    let file = directory.0.path().join("counts.json");
    let mut settings = Settings::default();
    settings.token_counts.push(TokenCountsSettings { id: "mine".into(), file: file.clone() });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let scorer = pdr_audit::app::start_scorer(&settings, pdr_audit::app::hub()).unwrap();
    let counts = scorer.token_counts("mine").unwrap();
    assert!(counts.fit(&demo()));
    assert_eq!(json!(counts.table.tokens()), expected(&TEXTS)["tokens"]);

    std::fs::write(&file, "{}").unwrap();
    let error = pdr_audit::app::start_scorer(&settings, pdr_audit::app::hub()).err().unwrap();
    let said = format!("{error:#}");
    assert!(said.contains("`mine`") && said.contains("counts.json") && said.contains("`format` is null"), "{said}");
}

#[test]
fn only_the_tokenizer_of_a_model_is_needed_and_its_own_special_tokens_are_not_counted() {
    let directory = Directory::new();
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens/opt-pre/tokenizer.json");
    std::fs::create_dir(directory.0.path().join("opt")).unwrap();
    std::fs::copy(&saved, directory.0.path().join("opt/tokenizer.json")).unwrap();
    // The counts that the settings name may be those that are to be made.
    let (model, counts) = ("id = \"opt\"\nsource = \"opt\"", "id = \"mine\"\nfile = \"counts.json\"");
    directory.file("settings.toml", format!("[[models]]\n{model}\n[[token_counts]]\n{counts}\n"));
    directory.file("text.txt", TEXTS[0]);
    let counted = directory.counted(&["text.txt", "--config", "settings.toml"], "");

    let tokenizer = Tokenizer::from_json(&std::fs::read(saved).unwrap()).unwrap();
    let encoded = tokenizer.encode(TEXTS[0]).unwrap();
    assert!(encoded.bos_prepended());
    assert_eq!(counted["tokens"], encoded.ids.len() - 1);
    assert_eq!(counted["counts"][encoded.ids[0] as usize], 0);
    assert_eq!(counted["counts"].as_array().unwrap().len(), tokenizer.id_bound());
    assert_eq!((&counted["model"], &counted["tokenizer"]), (&json!("opt"), &json!(tokenizer.fingerprint().unwrap())));
}
