//! Stores that cannot be written, are locked, are damaged, or hold half of an upload.

use crate::common::app::App;
use crate::common::client::send;
use pdr_audit::config::StoreUrl;
use pdr_audit::store::Store;
use reqwest::Method;
use serde_json::json;
use sqlx::{AnyConnection, Connection, Executor, Row};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

async fn app_in(file: &Path) -> App {
    let url = StoreUrl::Sqlite(file.to_owned());
    App::with(|settings| settings.store.url = Some(url)).await
}

/// A connection beside those of the service.
async fn connect(file: &Path) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap()
}

async fn rows(connection: &mut AnyConnection, table: &'static str) -> i64 {
    let statement = match table {
        "datasets" => "SELECT COUNT(*) AS rows FROM datasets",
        _ => "SELECT COUNT(*) AS rows FROM samples",
    };
    connection.fetch_one(statement).await.unwrap().try_get("rows").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_off_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let app = app_in(&file).await;
    let mut store = connect(&file).await;
    // A few blocks' worth whose end never comes: once by its length, once in the middle of a chunk.
    let body: String = (0..3_000).map(|number| format!("{{\"text\": \"Sample {number} of some words.\"}}\n")).collect();
    let heads = [
        format!("content-length: {}\r\n\r\n", body.len() + 1_000),
        format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len() + 1_000),
    ];
    for head in heads {
        let mut upload = TcpStream::connect(app.address).unwrap();
        let request = "POST /v1/datasets HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n";
        upload.write_all(format!("{request}{head}{body}").as_bytes()).unwrap();
        let begun = Instant::now();
        while rows(&mut store, "samples").await == 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "blocks are written as they come");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(upload);
        while rows(&mut store, "datasets").await + rows(&mut store, "samples").await > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "what is left over is dropped");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert_eq!(app.get("/v1/datasets").await.ok()["datasets"], json!([]));
    let whole = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), body.into_bytes()).await;
    assert_eq!((whole.status, &whole.json()["samples"]), (201, &json!(3_000)));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "slow: `.ci/full` runs it"]
async fn a_locked_database_is_waited_for_and_then_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let app = app_in(&file).await;
    let mut other = connect(&file).await;
    let audit = json!({ "samples": [{ "text": "One text of some words." }], "methods": ["loss"] });

    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let waiting = send(app.request(Method::POST, "/v1/audits").json(&audit));
    let free = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.execute("ROLLBACK").await.unwrap();
        Instant::now()
    };
    let (answer, freed) = tokio::join!(async { (waiting.await, Instant::now()) }, free);
    assert_eq!(answer.0.status, 202, "{}", answer.0.text());
    assert!(answer.1 >= freed, "it has waited for the lock");

    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let problem = app.post("/v1/audits", &audit).await.problem(503);
    assert_eq!(problem["detail"], "the store failed; the service's log says why", "{problem}");
    other.execute("ROLLBACK").await.unwrap();
    assert_eq!(app.audit(&audit).await.ok()["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_damaged_is_neither_scored_nor_served() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let app = app_in(&file).await;
    let mut store = connect(&file).await;
    let lines: String = (0..600).map(|number| format!("{{\"text\": \"Sample {number} of some words.\"}}\n")).collect();
    let dataset = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.clone().into_bytes()).await;
    assert_eq!(dataset.status, 201);
    let audit = json!({ "dataset": dataset.json()["id"], "methods": ["loss"] });
    let sound = app.audit(&audit).await.ok();
    let (id, internal) =
        (sound["id"].as_str().unwrap(), "the service failed; its log has more under the id of this request");
    let damaged = "what the store has of the job is damaged; the service's log names it";
    // Without its seal, as of an old version, the block differs from the dataset's id; then the block is not that of its seal.
    for change in ["seal = NULL, content = REPLACE(content, 'Sample 7 ', 'Sample 8 ')", "seal = 'another'"] {
        store.execute(sqlx::AssertSqlSafe(format!("UPDATE samples SET {change} WHERE block = 0"))).await.unwrap();
        let failed = app.audit(&audit).await.ok();
        assert_eq!((&failed["status"], &failed["error"]["detail"]), (&json!("failed"), &json!(damaged)), "{failed}");
    }
    assert_eq!(app.get(&format!("/v1/audits/{id}")).await.ok()["results"], sound["results"]);
    store.execute("UPDATE results SET report = REPLACE(report, '600', '601')").await.unwrap();
    assert_eq!(app.get(&format!("/v1/audits/{id}")).await.problem(500)["detail"], internal);
    // Lists leave out what is damaged, and it can still be deleted.
    assert_eq!(app.get("/v1/audits").await.ok()["audits"].as_array().unwrap().len(), 3);
    store.execute("UPDATE jobs SET done = done - 1").await.unwrap();
    assert_eq!(app.get("/v1/audits").await.ok()["audits"], json!([]));
    assert_eq!(app.get(&format!("/v1/audits/{id}")).await.problem(500)["detail"], internal);
    app.post(&format!("/v1/audits/{id}/cancel"), &json!({})).await.problem(409);
    for status in [204, 404] {
        assert_eq!(app.delete(&format!("/v1/audits/{id}")).await.status, status);
    }
    let dataset = format!("/v1/datasets/{}", audit["dataset"].as_str().unwrap());
    store.execute("UPDATE datasets SET description = '{ }'").await.unwrap();
    assert_eq!(app.get("/v1/datasets").await.ok()["datasets"], json!([]));
    assert_eq!(app.get(&dataset).await.problem(500)["detail"], internal);
    let again = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into_bytes()).await;
    assert_eq!((again.status, &again.json()["id"]), (201, &audit["dataset"]));
    store.execute("UPDATE datasets SET description = '{ }'").await.unwrap();
    for status in [204, 404] {
        assert_eq!(app.delete(&dataset).await.status, status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_adapter_keeps_no_service_from_starting_and_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let tables = Store::open(Some(&StoreUrl::Sqlite(file.clone()))).await.unwrap();
    tables.close().await;
    drop(tables);
    let mut store = connect(&file).await;
    let adapter = "INSERT INTO adapters (adapter, model, name, base_digest, ready, created_at, seal) \
                   VALUES ('67e55044-10b1-426f-9247-bb680e5fe0c8', 'tiny', 'tuned', '', 1, 0, 'another')";
    store.execute(adapter).await.unwrap();
    let app = app_in(&file).await;
    for status in [204, 404] {
        assert_eq!(app.delete("/v1/models/tiny/adapters/tuned").await.status, status);
    }
}

/// Returns the error of the program, which cannot start with this store as a user without write access to files of others.
fn refused(program: &Path, store: &Path) -> String {
    let mut command = Command::new(program);
    command
        .args(["serve", "--port", "0"])
        .env("PDR_AUDIT__STORE__URL", format!("sqlite://{}", store.display()))
        .stdin(Stdio::null());
    if std::fs::metadata(store.parent().unwrap()).unwrap().uid() == 0 {
        // Permissions do not bind root.
        command.uid(NOBODY);
    }
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_written_is_refused_by_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    mode(directory.path(), 0o777);
    let file = directory.path().join("store.db");
    drop(app_in(&file).await);
    std::fs::remove_file(directory.path().join("store.db.lock")).unwrap();
    mode(&file, 0o444);
    // The program lies where another user may not look.
    let program = directory.path().join("pdr-audit");
    let built = Path::new(env!("CARGO_BIN_EXE_pdr-audit"));
    std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(|_| ())).unwrap();

    let said = refused(&program, &file);
    let expected = format!("`store.url`: the store failed: cannot write {}: Permission denied", file.display());
    assert!(said.contains(&expected), "{said}");
    // A directory in which no file can be made.
    let closed = directory.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    mode(&closed, 0o555);
    let said = refused(&program, &closed.join("store.db"));
    assert!(said.contains(&format!("cannot write {}", closed.join("store.db.lock").display())), "{said}");
}
