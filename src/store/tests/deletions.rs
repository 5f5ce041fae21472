//! Deletions beside those who read.

use crate::config::StoreUrl;
use crate::store::Store;
use sqlx::{AnyConnection, Connection, Executor};
use std::time::{Duration, Instant};

/// Another process reads the file, as a backup does.
#[tokio::test]
async fn a_deletion_waits_for_no_reader_and_its_bytes_go_when_that_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let store = Store::open(Some(&StoreUrl::Sqlite(file.clone()))).await.unwrap();
    let key = store.begin_dataset("", true).await.unwrap();
    store.add_block(key, 0, &"a canary text ".repeat(1_000)).await.unwrap();
    let key = store.complete_dataset(key, Some("sha256:a"), "{}").await.unwrap();
    let holds_canary = || {
        let files = std::fs::read_dir(directory.path()).unwrap();
        let contents = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        contents.into_iter().any(|content| content.windows(13).any(|window| window == b"a canary text"))
    };
    let mut reader = AnyConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    reader.execute("BEGIN; SELECT blocks FROM datasets").await.unwrap();
    let begun = Instant::now();
    assert!(store.delete_dataset(key).await.unwrap());
    let other = store.begin_dataset("", true).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(store.sample_block(key, 0).await.unwrap().is_none() && holds_canary());
    reader.execute("COMMIT").await.unwrap();
    // Upkeep, which finds nothing to drop.
    store.drop_abandoned(Some(Duration::from_secs(60))).await.unwrap();
    assert!(!holds_canary());
    store.add_block(other, 0, "one").await.unwrap();
}
