//! Datasets over HTTP: uploaded in every kind of file, audited, kept or not, deleted.

use crate::common::app::App;
use crate::common::client::{Answer, send};
use flate2::write::GzEncoder;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pdr_audit::config::{ByteSize, StoreUrl};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

const NDJSON: &str = "application/x-ndjson";

fn lines(count: usize) -> String {
    let line = |number: usize| {
        let sample = json!({ "id": number, "text": format!("Sample {number} of the dataset."), "label": number % 2 });
        format!("{sample}\n")
    };
    (0..count).map(line).collect()
}

async fn upload(app: &App, query: &str, media: &str, body: impl Into<Vec<u8>>) -> Answer {
    app.post_bytes(&format!("/v1/datasets{query}"), Some(media), body.into()).await
}

async fn stored(app: &App, query: &str, media: &str, body: impl Into<Vec<u8>>) -> Value {
    let answer = upload(app, query, media, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let dataset = answer.json();
    assert_eq!(answer.header("location"), format!("/v1/datasets/{}", dataset["id"].as_str().unwrap()));
    dataset
}

async fn ids(app: &App) -> Vec<String> {
    let listed = app.get("/v1/datasets").await.ok();
    listed["datasets"].as_array().unwrap().iter().map(|dataset| dataset["id"].as_str().unwrap().to_owned()).collect()
}

fn table(separator: char) -> String {
    let row =
        |number: usize| format!("{number}{separator}\"Sample {number} of\nthe dataset.\"{separator}{}\n", number % 2);
    format!("id{separator}text{separator}label\n{}", (0..6).map(row).collect::<String>())
}

/// The samples of an array as a table of Parquet.
fn parquet(samples: &Value) -> Vec<u8> {
    let schema = "message samples { required binary id (UTF8); required binary text (UTF8); required int32 label; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let samples = samples.as_array().unwrap();
    for name in ["id", "text"] {
        let texts: Vec<ByteArray> = samples.iter().map(|sample| sample[name].as_str().unwrap().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
    }
    let labels: Vec<i32> = samples.iter().map(|sample| sample["label"].as_i64().unwrap() as i32).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&labels, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_file_is_the_same_dataset() {
    let app = App::start().await;
    let sample = |number: usize| json!({ "id": number.to_string(), "text": format!("Sample {number} of\nthe dataset."), "label": number % 2 });
    let array = Value::Array((0..6).map(sample).collect());
    let first = stored(&app, "", "application/json", array.to_string()).await;
    assert_eq!((&first["samples"], &first["members"], &first["non_members"]), (&json!(6), &json!(3), &json!(3)));
    assert_eq!(
        (&first["groups"], &first["bytes"], &first["retain"], &first["texts"]),
        (&json!(0), &json!(6 * 24), &json!(true), &json!(true))
    );
    let ndjson: String = array.as_array().unwrap().iter().map(|sample| format!("{sample}\n")).collect();
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(ndjson.as_bytes()).unwrap();
    let (gzip, zstd) = (gzip.finish().unwrap(), zstd::encode_all(ndjson.as_bytes(), 3).unwrap());
    for (query, media, body) in [
        ("", "application/x-ndjson; charset=utf-8", ndjson.into_bytes()),
        ("", "text/csv", table(',').into_bytes()),
        ("", "text/csv", table(';').into_bytes()),
        ("", "text/tab-separated-values", table('\t').into_bytes()),
        ("", "application/jsonl", gzip),
        ("", "application/ndjson", zstd),
        (
            "?text_column=body&id_column=number&label_column=seen",
            "text/csv",
            table(',').replace("id,text,label", "number,body,seen").into_bytes(),
        ),
    ] {
        assert_eq!(stored(&app, query, media, body).await["id"], first["id"], "{media} {query}");
    }
    let table = parquet(&array);
    assert_eq!(stored(&app, "", "application/vnd.apache.parquet", table.clone()).await["id"], first["id"]);
    let packed = zstd::encode_all(&*table, 3).unwrap();
    assert_eq!(stored(&app, "", "application/vnd.apache.parquet", packed).await["id"], first["id"]);
    let cut = stored(&app, "?words=2", "application/json", array.to_string()).await;
    assert_eq!((&cut["bytes"], ids(&app).await.len() >= 2), (&json!(6 * 8), true));
}

/// Returns a table of one row: a text, and a list that refers `references` times to one text of a mebibyte in the dictionary.
fn table_of_references(references: usize) -> Vec<u8> {
    let schema = "message samples { required binary text (UTF8); optional group neighbors (LIST) { repeated group list { \
                  required binary element (UTF8); } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(4 << 20)
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<ByteArrayType>().write_batch(&["a".into()], None, None).unwrap();
    column.close().unwrap();
    let text = ByteArray::from(vec![b'a'; 1 << 20]);
    let mut repetition = vec![1; references];
    repetition[0] = 0;
    let mut column = group.next_column().unwrap().unwrap();
    let values = vec![text; references];
    column.typed::<ByteArrayType>().write_batch(&values, Some(&vec![2; references]), Some(&repetition)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Returns a table without pages, whose metadata claim 2^31 - 1 columns.
fn table_of_claims() -> Vec<u8> {
    let root = b"\x48\x01r\x15\xfe\xff\xff\xff\x0f\x00";
    let leaf = b"\x15\x0c\x25\x00\x18\x04text\x00";
    let metadata = [&b"\x15\x02\x19\x2c"[..], root, leaf, b"\x16\x02\x19\x0c\x00"].concat();
    let size = u32::try_from(metadata.len()).unwrap().to_le_bytes();
    [b"PAR1", &*metadata, &size, b"PAR1"].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_claims_too_much_ends_only_the_process_that_reads_it() {
    let app = App::start().await;
    let refused = async |body: Vec<u8>, words: &str| {
        let answer = upload(&app, "", "application/vnd.apache.parquet", body).await;
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(answer.text().contains(words), "{}", answer.text());
    };
    let references = table_of_references(1_000);
    assert!(references.len() < 100_000);
    let out_of_memory = "reading takes more than 512 MiB of memory or 300 s";
    // More of them than run at a time.
    tokio::join!(
        refused(references.clone(), out_of_memory),
        refused(table_of_claims(), out_of_memory),
        refused(references, out_of_memory),
    );
    refused(table_of_references(40), "row 1: the row is longer than 33554432 bytes as JSON (server.body_limit)").await;
    let long = json!([{ "id": "1", "text": "a".repeat((1 << 20) + 1), "label": 1 }]);
    refused(parquet(&long), "row 1: `text`: 1048577 bytes; the limit `limits.text` is 1048576").await;
    let answer = upload(&app, "", "text/csv", format!("text{}\n", ",a".repeat(10_000))).await;
    assert!(
        answer.status == 422 && answer.text().contains("line 1: 10001 columns; the limit is 10000"),
        "{}",
        answer.text()
    );
    stored(&app, "", "application/vnd.apache.parquet", parquet(&json!([{ "id": "1", "text": "a b", "label": 0 }])))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dataset_is_audited_as_samples_in_a_request_are() {
    let app = App::start().await;
    let dataset = stored(&app, "", NDJSON, lines(60)).await;
    let samples: Vec<Value> = lines(60).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let methods = json!(["loss", { "name": "min_k", "k": 0.3, "pdr": { "decay": "entropy_dataset" } }]);
    let inline = app.audit(&json!({ "samples": samples, "methods": methods })).await.ok();
    let by_id = app.audit(&json!({ "dataset": dataset["id"], "methods": methods, "name": "by id" })).await.ok();
    assert_eq!((&by_id["status"], &by_id["dataset"]), (&json!("succeeded"), &dataset["id"]));
    assert!(inline.get("dataset").is_none());
    let without_usage = |audit: &Value| {
        let mut results = audit["results"].clone();
        results.as_object_mut().unwrap().retain(|field, _| field != "usage" && field != "plan");
        results
    };
    assert_eq!(without_usage(&by_id), without_usage(&inline));
    let scores = |audit: &Value| {
        let path = format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap());
        let app = &app;
        async move { app.get(&path).await.text().to_owned() }
    };
    assert_eq!(scores(&by_id).await, scores(&inline).await);
    assert_eq!(scores(&by_id).await.lines().count(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_uploads_have_a_place_and_nothing_is_kept() {
    let app = App::with(|settings| settings.limits.dataset = ByteSize::kib(64)).await;
    let faults = [
        ("", NDJSON, format!("{}{{\"text\": 7}}\n", lines(700)), "line 701: `text`: invalid type"),
        (
            "",
            NDJSON,
            format!("{}{{\"text\": \"a\", \"label\": 3}}\n", lines(3)),
            "line 4: the label is 3; it must be 0 or 1",
        ),
        ("", NDJSON, "{\"text\": \"a\", \"label\": 1}\n".to_owned(), "1 member and 0 non-members"),
        ("", NDJSON, format!("{}{{\"text\": \"a\"}}\n", lines(3)), "3 of 4 samples have a label, and line 4 has none"),
        ("", NDJSON, String::new(), "the list of samples is empty"),
        ("", "text/csv", "body,label\na,1\n".to_owned(), "columns found: body, label; use `text_column` body"),
        ("", "text/csv", "text,label\na,1,2\n".to_owned(), "line 2: 3 fields, where the header has 2"),
        ("", "application/json", "[{\"text\": \"a\"".to_owned(), "element 1"),
        ("", "application/vnd.apache.parquet", "PAR1 but nothing more".to_owned(), "not a Parquet file"),
        ("?text_column=body", NDJSON, lines(2), "no column `body`"),
    ];
    for (query, media, body, words) in faults {
        let problem = upload(&app, query, media, body).await.problem(422);
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    // A body that is small compressed and large decompressed, and one that is large as sent.
    let bomb = zstd::encode_all(lines(20_000).as_bytes(), 3).unwrap();
    assert!(bomb.len() < 150_000);
    for body in [bomb, lines(2_000).into_bytes()] {
        let problem = upload(&app, "", NDJSON, body).await.problem(413);
        assert!(problem["detail"].as_str().unwrap().contains("limits.dataset"), "{problem}");
    }
    upload(&app, "", "application/pdf", "").await.problem(415);
    app.post_bytes("/v1/datasets", None, Vec::new()).await.problem(415);
    let coded =
        app.request(Method::POST, "/v1/datasets").header("content-type", NDJSON).header("content-encoding", "br");
    send(coded).await.problem(415);
    for query in ["?retain=maybe", "?keep_columns=maybe", "?words=0", "?words=x", "?more=1"] {
        upload(&app, query, NDJSON, lines(2)).await.problem(422);
    }
    assert_eq!(ids(&app).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_name_datasets_that_are_there() {
    let app = App::start().await;
    let dataset = stored(&app, "", NDJSON, lines(4)).await;
    app.post("/v1/audits", &json!({ "dataset": "sha256:0" })).await.problem(404);
    let both = app.post("/v1/audits", &json!({ "dataset": dataset["id"], "samples": [{ "text": "a" }] })).await;
    assert_eq!(both.pointers(), ["/dataset"]);
    assert_eq!(app.post("/v1/audits", &json!({ "methods": ["loss"] })).await.pointers(), [""]);
    assert_eq!(app.post("/v1/audits", &json!({ "dataset": 7 })).await.pointers(), ["/dataset"]);
    let neighbor = app.post("/v1/audits", &json!({ "dataset": dataset["id"], "methods": ["neighbor"] })).await;
    let problem = neighbor.problem(422);
    assert!(problem["detail"].as_str().unwrap().contains("sample 0 (from 0) of the dataset"), "{problem}");
    let recall = json!({ "name": "recall", "prefix": ["Sample 2 of the dataset."] });
    let problem = app.post("/v1/audits", &json!({ "dataset": dataset["id"], "methods": [recall] })).await.problem(422);
    assert!(problem["detail"].as_str().unwrap().contains("sample 2 (from 0) of the dataset"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn datasets_are_listed_in_pages_and_deleted() {
    let app = App::start().await;
    let mut all = Vec::new();
    for count in [2, 4, 6] {
        all.push(stored(&app, "", NDJSON, lines(count)).await["id"].as_str().unwrap().to_owned());
    }
    let page = app.get("/v1/datasets?limit=2").await.ok();
    assert_eq!((&page["datasets"][0]["id"], &page["datasets"][1]["id"]), (&json!(all[2]), &json!(all[1])));
    let rest = app.get(&format!("/v1/datasets?after={}", page["next"].as_str().unwrap())).await.ok();
    assert_eq!((&rest["datasets"][0]["id"], rest.get("next")), (&json!(all[0]), None));
    let path = format!("/v1/datasets/{}", all[1]);
    assert_eq!(app.get(&path).await.ok()["samples"], 4);
    assert_eq!(app.delete(&path).await.status, 204);
    app.get(&path).await.problem(404);
    app.delete(&path).await.problem(404);
    for query in ["?limit=0", "?limit=501", "?after=x"] {
        app.get(&format!("/v1/datasets{query}")).await.problem(422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_are_not_retained_are_gone_after_the_audit() {
    let app = App::start().await;
    let dataset = stored(&app, "?retain=false", NDJSON, lines(6)).await;
    assert_eq!((&dataset["retain"], &dataset["texts"]), (&json!(false), &json!(true)));
    let audit = app.audit(&json!({ "dataset": dataset["id"], "methods": ["loss"] })).await.ok();
    let path = format!("/v1/datasets/{}", dataset["id"].as_str().unwrap());
    assert_eq!((&audit["status"], &app.get(&path).await.ok()["texts"]), (&json!("succeeded"), &json!(false)));
    let problem = app.post("/v1/audits", &json!({ "dataset": dataset["id"] })).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("retain=false"), "{problem}");
    let scores = app.get(&format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap())).await;
    assert_eq!(scores.text().lines().count(), 6);
    stored(&app, "?retain=false", NDJSON, lines(6)).await;
    assert_eq!(app.get(&path).await.ok()["texts"], true);
}

/// After the deletion of a dataset no file has a canary text of it, nor the key without which its statistics cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_dataset_leaves_no_trace_in_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_owned();
    let app = App::with(|settings| {
        settings.store.url = Some(StoreUrl::Sqlite(place.join("store.db")));
        settings.engine.disk_cache = settings.store.statistics();
    })
    .await;
    let canary = "The canary of the dataset sings in the coal mine of Fallowfield.";
    let body = format!("{}{}\n", lines(3), json!({ "text": canary, "label": 1 }));
    let dataset = stored(&app, "", NDJSON, body).await;
    let passes = async || {
        let audit = app.audit(&json!({ "dataset": dataset["id"], "methods": ["loss"], "control": null })).await.ok();
        let usage = &audit["results"]["usage"];
        (usage["forward_passes"].as_u64().unwrap(), usage["cached_passes"].as_u64().unwrap())
    };
    assert_eq!((passes().await, passes().await), ((4, 0), (0, 4)));
    let details = json!({ "inputs": canary, "methods": ["loss"], "details": ["tokens"] });
    let scored = app.score(&details).await;
    assert_eq!(scored["usage"]["cached_passes"], 0, "the statistics of the dataset are its own");
    // One second is how long the cache on disk gathers.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let token = &scored["results"][0]["tokens"][3];
    let number = token["lp"].as_f64().unwrap().to_le_bytes();
    assert!(holds(&place, canary.as_bytes()), "else the test looks for the wrong thing");
    let before = ids_in_files(&place);
    assert!(!holds(&place, &number), "statistics are encrypted");

    assert_eq!(app.delete(&format!("/v1/datasets/{}", dataset["id"].as_str().unwrap())).await.status, 204);
    assert!(!holds(&place, canary.as_bytes()));
    let after = ids_in_files(&place);
    assert_eq!(before.difference(&after).count(), 1, "the key of the dataset is gone: {before:?}, {after:?}");
    assert_eq!(app.score(&details).await["usage"]["cached_passes"], 1, "what is not of the dataset stays");
    let body = format!("{}{}\n", lines(3), json!({ "text": canary, "label": 1 }));
    assert_eq!(stored(&app, "", NDJSON, body).await["id"], dataset["id"]);
    assert_eq!(passes().await, (4, 0), "the same content is another dataset");
}

/// Returns true if these bytes are in a file of the directory or below it.
fn holds(directory: &Path, bytes: &[u8]) -> bool {
    contents(directory).iter().any(|content| content.windows(bytes.len()).any(|window| window == bytes))
}

/// Returns the ids of datasets and jobs, UUIDs of version 7, in the files of the directory and below it.
fn ids_in_files(directory: &Path) -> BTreeSet<Uuid> {
    let uuid = |window: &[u8]| {
        str::from_utf8(window)
            .ok()
            .filter(|text| text.contains('-'))?
            .parse()
            .ok()
            .filter(|uuid: &Uuid| uuid.get_version_num() == 7)
    };
    contents(directory).iter().flat_map(|content| content.windows(36).filter_map(uuid)).collect()
}

/// Returns the contents of the files of the directory and below it.
fn contents(directory: &Path) -> Vec<Vec<u8>> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { contents(&path) } else { vec![std::fs::read(path).unwrap()] }).collect()
}
