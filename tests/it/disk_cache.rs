//! The cache on disk through the front door: the service restarted, the command line again, processes killed.

use crate::common::app::App;
use pdr_audit::config::Settings;
use redb::{Database, ReadableTable, TableDefinition};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pdr-audit");

/// A directory with texts, one a line, and with settings that keep statistics in it.
struct Place(TempDir);

impl Place {
    fn new(texts: usize) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let lines: String = (0..texts).map(|n| format!("{}\n", json!({ "text": text(n) }))).collect();
        std::fs::write(place.path("texts.jsonl"), lines).unwrap();
        // A relative path counts from the file's directory.
        let settings = "[engine]\ndefault_model = \"demo\"\ndisk_cache = \"kept/here\"\n";
        std::fs::write(place.path("settings.toml"), settings).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn score(&self, flags: &[&str]) -> Output {
        let (texts, settings) = (self.path("texts.jsonl"), self.path("settings.toml"));
        Command::new(PROGRAM).arg("score").arg(texts).arg("--config").arg(settings).args(flags).output().unwrap()
    }

    /// The service over the embedded models and the same directory, as it is after a start.
    async fn app(&self) -> App {
        let mut settings = Settings::default();
        settings.engine.disk_cache = Some(self.path("kept/here"));
        settings.engine.threads = 1;
        let app = App::start_as_it_is(&settings).await;
        app.engine.wait_until_loaded().await.unwrap();
        app
    }
}

fn text(n: usize) -> String {
    format!("Lot {n} is a silver jug from Blackham, with {} dents and a note of the year {}.", n * 7 % 31, 1700 + n)
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(text).collect()
}

/// Returns the stderr of a successful run without the note on the model and the progress lines of every ten seconds.
fn stderr(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let is_expected = |line: &&str| line.starts_with("note: ") || line.contains(" texts, ");
    said.lines().filter(|line| !is_expected(line)).map(|line| format!("{line}\n")).collect()
}

fn passes(answer: &Value) -> (u64, u64) {
    let usage = &answer["usage"];
    (usage["forward_passes"].as_u64().unwrap(), usage["cached_passes"].as_u64().unwrap())
}

async fn stop(app: App) {
    let engine = app.engine.clone();
    tokio::task::spawn_blocking(move || engine.shutdown(Duration::ZERO)).await.unwrap();
}

/// The id of the model of one test: counters are shared by all tests of the program, and those of this model have one user.
const RESTARTED: &str = "restarted";

async fn start(directory: &Path) -> App {
    App::with(|settings| {
        settings.engine.disk_cache = Some(directory.to_owned());
        settings.engine.default_model = Some(RESTARTED.into());
        settings.models[0].id = RESTARTED.into();
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_scored_before_a_restart_is_not_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let request = json!({ "inputs": texts(20), "details": ["tokens"],
        "methods": [{ "name": "min_k_plus_plus" }, { "name": "ref" }, { "name": "lowercase" }] });
    let app = start(directory.path()).await;
    let first = app.score(&request).await;
    assert_eq!(passes(&first), (60, 0));
    stop(app).await;
    let app = start(directory.path()).await;
    let again = app.score(&request).await;
    assert_eq!(passes(&again), (0, 60));
    assert_eq!(again["results"], first["results"], "to the last digit of every token");
    let metrics = app.get("/metrics").await;
    let hits = format!("pdr_audit_engine_cache_hits_total{{model=\"{RESTARTED}\",tier=\"disk\"}} 40");
    assert!(metrics.text().contains(&hits), "{hits} in {}", metrics.text());
    // An audit of the same texts asks the same way.
    let samples: Vec<Value> = (0..20).map(|n| json!({ "text": text(n), "label": n % 2 })).collect();
    stop(app).await;
    let app = start(directory.path()).await;
    let audit = app.audit(&json!({ "samples": samples, "methods": [{ "name": "loss" }] })).await.json();
    assert_eq!(audit["status"], "succeeded", "{audit}");
    let metrics = app.get("/metrics").await;
    let hits = format!("pdr_audit_engine_cache_hits_total{{model=\"{RESTARTED}\",tier=\"disk\"}} 60");
    assert!(metrics.text().contains(&hits), "{hits} in {}", metrics.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_keeps_and_finds_what_the_service_does() {
    let place = Place::new(10);
    let first = place.score(&["--tokens"]);
    assert_eq!(stderr(&first), "");
    let again = place.score(&["--tokens"]);
    assert_eq!((stderr(&again), &again.stdout), (String::new(), &first.stdout));
    let app = place.app().await;
    assert_eq!(passes(&app.score(&json!({ "inputs": texts(10) })).await), (0, 10));
    // Another process has the directory now.
    let beside = place.score(&["--tokens"]);
    assert!(stderr(&beside).contains("another process uses it"), "{}", stderr(&beside));
    assert_eq!(beside.stdout, first.stdout);
    stop(app).await;

    // That the command line does look shows when what it finds is damaged.
    damage_values(&place.path("kept/here/statistics.redb"));
    let damaged = place.score(&["--tokens"]);
    assert!(stderr(&damaged).contains("damaged and not used"), "{}", stderr(&damaged));
    assert_eq!(damaged.stdout, first.stdout);
    assert_eq!(stderr(&place.score(&["--tokens"])), "", "it was replaced");
}

/// Flips a bit of each value in a file of statistics.
fn damage_values(file: &Path) {
    const STATISTICS: TableDefinition<&[u8; 32], &[u8]> = TableDefinition::new("statistics");
    let transaction = Database::open(file).unwrap().begin_write().unwrap();
    let mut table = transaction.open_table(STATISTICS).unwrap();
    let values: Vec<_> = table.iter().unwrap().map(Result::unwrap).collect();
    let values: Vec<_> = values.into_iter().map(|(key, value)| (*key.value(), value.value().to_vec())).collect();
    assert!(!values.is_empty());
    for (key, mut value) in values {
        value[20] ^= 1;
        table.insert(&key, value.as_slice()).unwrap();
    }
    drop(table);
    transaction.commit().unwrap();
}

#[test]
fn an_audit_of_the_command_line_keeps_its_statistics() {
    let place = Place::new(0);
    let lines: String = (0..10).map(|n| format!("{}\n", json!({ "text": text(n), "label": n % 2 }))).collect();
    std::fs::write(place.path("texts.jsonl"), lines).unwrap();
    let audit = || {
        let (texts, settings) = (place.path("texts.jsonl"), place.path("settings.toml"));
        let flags = ["--methods", "loss", "--replicates", "0", "--control", "none"];
        Command::new(PROGRAM).arg("audit").arg(texts).arg("--config").arg(settings).args(flags).output().unwrap()
    };
    let report = |output: Output| {
        assert_eq!(stderr(&output), "");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let passes = passes(&report);
        report["usage"].take();
        (passes, report)
    };
    let (first, again) = (report(audit()), report(audit()));
    assert_eq!((first.0, again.0), ((10, 0), (0, 10)));
    assert_eq!(first.1, again.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_killed_in_the_middle_leaves_a_cache_that_serves() {
    let place = Place::new(60);
    let mut child = Command::new(PROGRAM)
        .args(["score", "-", "--config"])
        .arg(place.path("settings.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for n in 0..40 {
        writeln!(input, "{}", json!({ "text": text(n) })).unwrap();
        output.read_line(&mut String::new()).unwrap();
        // A commit comes a second after its first text, so some are done and one is not.
        std::thread::sleep(Duration::from_millis(60));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let app = place.app().await;
    let (ran, cached) = passes(&app.score(&json!({ "inputs": texts(60) })).await);
    assert_eq!(ran + cached, 60);
    assert!((1..=40).contains(&cached), "{cached} of the 40 were kept");
    stop(app).await;
    let whole = place.score(&[]);
    assert_eq!(stderr(&whole), "");
    assert_eq!(passes(&place.app().await.score(&json!({ "inputs": texts(60) })).await), (0, 60));
}

#[test]
fn a_place_that_cannot_be_written_costs_a_warning_and_nothing_else() {
    let place = Place::new(3);
    let good = place.score(&[]);
    assert_eq!(stderr(&good), "");
    std::fs::remove_dir_all(place.path("kept")).unwrap();
    std::fs::write(place.path("kept"), "in the way").unwrap();
    let without = place.score(&[]);
    assert!(stderr(&without).contains("there is no cache on disk"), "{}", stderr(&without));
    assert_eq!(without.stdout, good.stdout);
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn a_full_disk_costs_a_warning_and_nothing_else() {
    let place = Place::new(0);
    let long = |n: usize| texts(n + 6)[n..].join(" ");
    let lines: String = (0..220).map(|n| format!("{}\n", json!({ "text": long(n) }))).collect();
    std::fs::write(place.path("texts.jsonl"), lines).unwrap();
    let good = place.score(&["--methods", "loss"]);
    assert_eq!(stderr(&good), "");
    std::fs::remove_dir_all(place.path("kept")).unwrap();
    // No file of the program may be longer than 1.6 MB, and it has 2 MB to write: that fails as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 1600; exec \"$@\"";
    let (texts, settings) = (place.path("texts.jsonl"), place.path("settings.toml"));
    let full = Command::new("bash")
        .args(["-c", script, "bash", PROGRAM, "score", "--methods", "loss", "--config"])
        .args([&settings, &texts])
        .output()
        .unwrap();
    assert!(stderr(&full).contains("cannot be written"), "{}", stderr(&full));
    assert_eq!(full.stdout, good.stdout);
}
