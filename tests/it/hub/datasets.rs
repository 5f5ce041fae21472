//! Datasets of the Hub: their Parquet files, and what the command line makes of them.

use super::*;
use crate::common::DEMO_BY_DEFAULT;
use crate::common::hub_server::CONVERTED;
use lm::hub::DatasetSplit;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::Value;
use std::process::Output;
use std::sync::Arc;

fn texts(values: &[&str]) -> Vec<ByteArray> {
    values.iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect()
}

/// A table of this schema; `write` writes the columns of its one group, each by its place.
fn table(schema: &str, write: impl Fn(usize, &mut ColumnWriter<'_>)) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut place = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        write(place, column.untyped());
        column.close().unwrap();
        place += 1;
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Samples as WikiMIA has them.
fn wikimia(samples: &[(&str, i64)]) -> Vec<u8> {
    let (inputs, labels): (Vec<&str>, Vec<i64>) = samples.iter().copied().unzip();
    let present = vec![1; samples.len()];
    table("message m { optional binary input (UTF8); optional int64 label; }", |_, column| {
        match column {
            ColumnWriter::ByteArrayColumnWriter(column) => column.write_batch(&texts(&inputs), Some(&present), None),
            ColumnWriter::Int64ColumnWriter(column) => column.write_batch(&labels, Some(&present), None),
            _ => unreachable!(),
        }
        .unwrap();
    })
}

/// Two rows as MIMIR has them: the first member has two neighbours, the second one, and non-members have none.
fn mimir() -> Vec<u8> {
    let list = |name: &str| {
        format!("optional group {name} (LIST) {{ repeated group list {{ optional binary element (UTF8); }} }}")
    };
    let (members, non_members) = (list("member_neighbors"), list("nonmember_neighbors"));
    let schema = format!(
        "message m {{ optional binary member (UTF8); optional binary nonmember (UTF8); {members} {non_members} }}"
    );
    table(&schema, |place, column| {
        let ColumnWriter::ByteArrayColumnWriter(column) = column else { unreachable!() };
        let (values, definitions, repetitions): (_, &[i16], Option<&[i16]>) = match place {
            0 => (texts(&["The first member.", "The second member."]), &[1, 1], None),
            1 => (texts(&["No member at all.", "Nor is this one."]), &[1, 1], None),
            2 => (texts(&["a", "b", "c"]), &[3, 3, 3], Some(&[0, 1, 0])),
            // Empty lists.
            _ => (Vec::new(), &[1, 1], Some(&[0, 0])),
        };
        column.write_batch(&values, Some(definitions), repetitions).unwrap();
    })
}

/// A dataset as that of WikiMIA: two files of one split, one of another.
fn dataset() -> HubServer {
    HubServer::with(&[
        ("README.md", b"#"),
        ("data/length64-00000-of-00002-ab12.parquet", &wikimia(&[("One text of some words.", 1)])),
        ("data/length64-00001-of-00002-cd34.parquet", &wikimia(&[("Two texts.", 0), ("Three texts, in all.", 1)])),
        ("data/length32-00000-of-00001.parquet", &wikimia(&[("Short.", 0)])),
    ])
}

fn split(text: &str) -> DatasetSplit {
    DatasetSplit::parse(text).unwrap()
}

fn fetch_split(hub: &Hub, text: &str) -> Result<Vec<PathBuf>, HubError> {
    hub.fetch_split(&split(text), None, &DownloadProgress::default())
}

fn dataset_directory(home: &TempDir) -> PathBuf {
    home.path().join("hub/datasets--some-org--tiny")
}

#[test]
fn the_files_of_a_split_are_fetched_once_into_the_usual_cache() {
    let (home, server) = (TempDir::new().unwrap(), dataset());
    let files = fetch_split(&hub(&home, &server), "some-org/tiny:length64").unwrap();
    let snapshot = dataset_directory(&home).join("snapshots").join(COMMIT);
    let names = ["data/length64-00000-of-00002-ab12.parquet", "data/length64-00001-of-00002-cd34.parquet"];
    assert_eq!(files, names.map(|name| snapshot.join(name)));
    for (file, name) in files.iter().zip(names) {
        assert_eq!(std::fs::read(file).unwrap(), server.state().files[name]);
        #[cfg(unix)]
        assert!(std::fs::read_link(file).unwrap().starts_with("../../../blobs"), "links hold wherever the cache is");
    }
    assert_eq!(std::fs::read_to_string(dataset_directory(&home).join("refs/main")).unwrap(), COMMIT);
    let bearer = Some(format!("Bearer {TOKEN}"));
    assert!(server.state().requests.iter().all(|request| request.token == bearer));
    assert!(server.requests("data/length32-00000-of-00001.parquet").is_empty(), "the other split is not fetched");

    let asked = server.state().requests.len();
    assert_eq!(fetch_split(&hub(&home, &server), "some-org/tiny:length64"), Ok(files.clone()));
    assert_eq!(server.state().requests.len(), asked + 1);
    assert_eq!(fetch_split(&offline(&home, &server), "some-org/tiny:length64"), Ok(files.clone()));
    let at_commit =
        hub(&home, &server).fetch_split(&split("some-org/tiny:length64"), Some(COMMIT), &DownloadProgress::default());
    assert_eq!(at_commit, Ok(files.clone()));
    assert_eq!(server.state().requests.len(), asked + 1, "neither asks the Hub");
    // A split with a missing file is not in the cache.
    std::fs::remove_file(&files[1]).unwrap();
    let lacking = fetch_split(&offline(&home, &server), "some-org/tiny:length64").unwrap_err();
    assert!(matches!(&lacking, HubError::Offline { kind: RepoKind::Dataset, .. }), "{lacking}");
    assert!(lacking.to_string().starts_with("the dataset `some-org/tiny` at revision `main` is not completely"));
}

#[test]
fn where_there_is_no_parquet_the_hubs_conversion_is_taken() {
    let (home, server) = (TempDir::new().unwrap(), HubServer::with(&[("cache/train/arxiv.jsonl", b"\"a\"\n")]));
    let refused = fetch_split(&hub(&home, &server), "some-org/tiny/arxiv (x):ngram_13_0.8").unwrap_err();
    assert_eq!(refused.to_string(), "the dataset `some-org/tiny` has no Parquet files");
    let name = "arxiv (x)/ngram_13_0.8/0000.parquet".to_owned();
    server.state().converted = Some([(name.clone(), mimir())].into_iter().collect());
    let files = fetch_split(&hub(&home, &server), "some-org/tiny/arxiv (x):ngram_13_0.8").unwrap();
    assert_eq!(files, [dataset_directory(&home).join("snapshots").join(CONVERTED).join(name)]);
    assert_eq!(fetch_split(&offline(&home, &server), "some-org/tiny:ngram_13_0.8"), Ok(files));
    let refused = fetch_split(&hub(&home, &server), "some-org/tiny:train").unwrap_err();
    assert!(
        refused.to_string().ends_with("has no split `train`; its splits are `ngram_13_0.8` of `arxiv (x)`"),
        "{refused}"
    );
}

#[test]
fn a_spoiled_file_and_refusals_are_named() {
    let (home, server) = (TempDir::new().unwrap(), dataset());
    let name = "data/length32-00000-of-00001.parquet";
    let length = server.state().files[name].len();
    server.state().spoiled.insert(name.to_owned(), vec![0; length]);
    let spoiled = fetch_split(&hub(&home, &server), "some-org/tiny:length32").unwrap_err();
    assert!(matches!(&spoiled, HubError::Digest { file, .. } if file == name), "{spoiled}");
    server.state().refuse = Some((401, "GatedRepo"));
    let gated = fetch_split(&hub(&home, &server), "some-org/tiny:length32").unwrap_err().to_string();
    assert!(gated.starts_with("the dataset `some-org/tiny` is gated") && gated.contains("HF_TOKEN"), "{gated}");
    server.state().refuse = Some((404, "RepoNotFound"));
    let unknown = fetch_split(&hub(&home, &server), "some-org/tiny:length32").unwrap_err().to_string();
    assert!(unknown.starts_with("the Hub has no dataset `some-org/tiny` at revision `main`"), "{unknown}");
}

fn run(home: &TempDir, server: &HubServer, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
        .args(arguments)
        .envs(DEMO_BY_DEFAULT)
        .envs([("HF_HOME", home.path().to_str().unwrap()), ("HF_ENDPOINT", &server.url())])
        .output()
        .unwrap()
}

fn success(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn failure(output: &Output) -> String {
    assert!(!output.status.success() && output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_command_line_writes_a_split_as_samples() {
    let (home, server) = (TempDir::new().unwrap(), dataset());
    let written = run(&home, &server, &["dataset", "hub:some-org/tiny:length64", "--words", "2", "--group", "w"]);
    let samples = [("One text", 1), ("Two texts.", 0), ("Three texts,", 1)]
        .map(|(text, label)| json!({"text": text, "label": label, "group": "w"}));
    assert_eq!(lines(&success(&written)), samples);
    let said = String::from_utf8_lossy(&written.stderr).into_owned();
    assert!(said.ends_with("3 samples: 2 members, 1 non-member, 0 without a label\n"), "{said}");
    assert!(said.contains("download is complete"), "{said}");

    for name in ["samples.jsonl", "samples.csv", "samples.parquet"] {
        let file = home.path().join(name);
        let file = file.to_str().unwrap();
        success(&run(&home, &server, &["dataset", "hub:some-org/tiny:length64", "--output", file]));
        let again = lines(&success(&run(&home, &server, &["dataset", file])));
        let samples = [("One text of some words.", 1), ("Two texts.", 0), ("Three texts, in all.", 1)];
        assert_eq!(again, samples.map(|(text, label)| json!({"text": text, "label": label})), "{name}");
    }
}

#[test]
fn members_and_non_members_of_mimir_become_samples_with_their_neighbours() {
    let (home, server) = (TempDir::new().unwrap(), HubServer::with(&[("README.md", b"#")]));
    server.state().converted = Some([("arxiv/ngram_7_0.2/0000.parquet".to_owned(), mimir())].into_iter().collect());
    let written = success(&run(&home, &server, &["dataset", "hub:some-org/tiny/arxiv:ngram_7_0.2"]));
    let expected = [
        json!({"text": "The first member.", "label": 1, "neighbors": ["a", "b"]}),
        json!({"text": "No member at all.", "label": 0}),
        json!({"text": "The second member.", "label": 1, "neighbors": ["c"]}),
        json!({"text": "Nor is this one.", "label": 0}),
    ];
    assert_eq!(lines(&written), expected);
}

#[test]
fn score_and_audit_read_a_split_by_its_name() {
    let (home, server) = (TempDir::new().unwrap(), dataset());
    let name = "hub:some-org/tiny:length64";
    let scored = lines(&success(&run(&home, &server, &["score", name, "--methods", "loss"])));
    assert_eq!(scored.iter().map(|row| &row["label"]).collect::<Vec<_>>(), [1, 0, 1]);
    assert!(scored.iter().all(|row| row["scores"]["loss"].as_f64().unwrap() < 0.0));
    let audit = success(&run(&home, &server, &["audit", name, "--methods", "loss", "--replicates", "0"]));
    let report: Value = serde_json::from_str(&audit).unwrap();
    assert_eq!((&report["samples"]["members"], &report["samples"]["non_members"]), (&json!(2), &json!(1)));
}

#[test]
fn a_split_that_cannot_be_read_is_an_error_with_its_place() {
    let (home, server) = (TempDir::new().unwrap(), dataset());
    for (name, words) in [
        ("hub:some-org/tiny", "expected hub:OWNER/NAME:SPLIT"),
        ("hub:some-org/tiny:train", "has no split `train`; its splits are `length32`, `length64`"),
        ("hub:some-org/tiny:length64@other", "no dataset `some-org/tiny` at revision `other`"),
    ] {
        let said = failure(&run(&home, &server, &["dataset", name]));
        assert!(said.contains(words) && said.contains(&format!("cannot read {name}")), "{said}");
    }
    // A bad row of the second file, counted through both; nothing is written.
    let file = wikimia(&[("Two texts.", 0), ("Three texts.", 7)]);
    server.state().files.insert("data/length64-00001-of-00002-cd34.parquet".to_owned(), file);
    let target = home.path().join("samples.jsonl");
    let said =
        failure(&run(&home, &server, &["dataset", "hub:some-org/tiny:length64", "--output", target.to_str().unwrap()]));
    assert!(said.contains("row 3: the label is 7; it must be 0 or 1"), "{said}");
    assert!(!target.exists());
}
