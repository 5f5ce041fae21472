//! Datasets, and the files of a store.

use super::places::test_stores;
use crate::config::StoreUrl;
use crate::store::{JobEnd, JobOutput, NewJob, Principal, Store, StoreError};
use sqlx::{AnyConnection, Connection, Executor};
use std::time::{Duration, Instant};
use uuid::Uuid;

async fn written(store: &Store, id: Option<&str>, retain: bool) -> Uuid {
    let key = store.begin_dataset("", retain).await.unwrap();
    for (number, content) in ["one", "two"].into_iter().enumerate() {
        store.add_block(key, number, content).await.unwrap();
    }
    store.complete_dataset(key, id, "{}").await.unwrap()
}

async fn job_on(store: &Store, dataset: Uuid) -> Uuid {
    let (model, summary, request) = ("m".to_owned(), "{}".to_owned(), "{}".to_owned());
    let (id, kind, weight) = (Uuid::now_v7(), "audit", 1);
    let job = NewJob {
        id,
        owner: String::new(),
        kind,
        model,
        summary,
        request,
        dataset,
        texts: "sha256:a".to_owned(),
        weight,
        key: None,
        timeout: None,
        adapter: None,
    };
    store.submit(&job).await.unwrap();
    job.id
}

#[tokio::test]
async fn a_dataset_is_there_once_it_is_complete() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let begun = store.begin_dataset("", true).await.unwrap();
        store.add_block(begun, 0, "one").await.unwrap();
        assert!(store.datasets(&Principal::default(), None, 9).await.unwrap().rows.is_empty(), "{name}");
        store.complete_dataset(begun, Some("sha256:a"), "{\"samples\":1}").await.unwrap();
        let dataset = store.dataset(&Principal::default(), "sha256:a").await.unwrap().unwrap();
        assert_eq!((dataset.key, &*dataset.description), (begun, "{\"samples\":1}"), "{name}");
        assert!(dataset.retain && dataset.has_texts, "{name}");

        // The same content again is the same dataset.
        assert_eq!(written(store, Some("sha256:a"), true).await, begun, "{name}");
        let other = written(store, Some("sha256:b"), true).await;
        let listed: Vec<Uuid> = store
            .datasets(&Principal::default(), None, 9)
            .await
            .unwrap()
            .rows
            .iter()
            .map(|dataset| dataset.key)
            .collect();
        assert_eq!(listed, [other, begun], "{name}");
        assert_eq!(store.datasets(&Principal::default(), Some(other), 9).await.unwrap().rows.len(), 1, "{name}");
        let inline = written(store, None, true).await;
        let job = job_on(store, inline).await;
        let inline = store.dataset_of(job).await.unwrap().unwrap();
        assert_eq!((inline.id, inline.digest.as_deref()), (None, Some("sha256:a")), "{name}");
        assert_eq!(store.datasets(&Principal::default(), None, 9).await.unwrap().rows.len(), 2, "{name}");
        assert_eq!(store.sample_block(other, 1).await.unwrap().as_deref(), Some("two"), "{name}");
        assert_eq!(store.sample_block(other, 2).await.unwrap(), None, "{name}");
        assert_eq!(store.sample_block(Uuid::nil(), 0).await.unwrap(), None, "{name}");
        sqlx::query("DELETE FROM samples WHERE block = 1").execute(&store.pool).await.unwrap();
        let damaged = store.sample_block(other, 1).await.unwrap_err().to_string();
        assert!(damaged.contains("block 1 of 2 of the dataset"), "{name}: {damaged}");
    }
}

#[tokio::test]
async fn a_dataset_in_use_is_neither_deleted_nor_emptied() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let key = written(store, Some("sha256:a"), false).await;
        let job = job_on(store, key).await;
        let has_texts = async || store.dataset(&Principal::default(), "sha256:a").await.unwrap().unwrap().has_texts;
        let claimed = store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().unwrap();
        let second = job_on(store, key).await;
        assert!(!store.delete_dataset(key).await.unwrap(), "{name}");
        let end = JobEnd::Succeeded(JobOutput {
            report: "{}".into(),
            header: "{}".into(),
            scores: Vec::new(),
            ..JobOutput::default()
        });
        store.finish(job, claimed.claim, 1, None, &end).await.unwrap().unwrap();
        assert!(has_texts().await, "{name}: another audit needs them");
        store.cancel(second).await.unwrap();
        store.drop_unretained().await.unwrap();
        assert!(!has_texts().await, "{name}");
        assert_eq!(store.sample_block(key, 0).await.unwrap(), None, "{name}");
        // Uploaded again, the texts are there again.
        let again = written(store, Some("sha256:a"), false).await;
        assert!(
            again != key && store.dataset(&Principal::default(), "sha256:a").await.unwrap().unwrap().has_texts,
            "{name}"
        );
        let kept = written(store, Some("sha256:b"), true).await;
        store.drop_unretained().await.unwrap();
        assert!(
            store.dataset(&Principal::default(), "sha256:b").await.unwrap().unwrap().has_texts,
            "{name}: they are retained"
        );
        assert!(store.delete_dataset(kept).await.unwrap() && !store.delete_dataset(kept).await.unwrap(), "{name}");
        assert!(store.job("audit", job).await.unwrap().is_some(), "{name}: the audit outlives its dataset");
    }
}

#[tokio::test]
async fn what_nobody_completes_is_dropped() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let begun = store.begin_dataset("", true).await.unwrap();
        store.add_block(begun, 0, "one").await.unwrap();
        let (orphan, used) = (written(store, None, true).await, written(store, None, true).await);
        job_on(store, used).await;
        let ready = written(store, Some("sha256:a"), true).await;
        store.drop_abandoned(Some(Duration::from_secs(60))).await.unwrap();
        assert!(store.sample_block(begun, 0).await.unwrap().is_some(), "{name}");
        tokio::time::sleep(Duration::from_millis(5)).await;
        store.drop_abandoned(Some(Duration::from_millis(1))).await.unwrap();
        for (key, kept) in [(begun, false), (orphan, false), (used, true), (ready, true)] {
            assert_eq!(store.sample_block(key, 0).await.unwrap().is_some(), kept, "{name}");
        }
    }
}

#[tokio::test]
async fn a_store_that_lasts_is_the_same_after_a_restart() {
    for place in test_stores().await {
        let Some(url) = &place.url else { continue };
        let key = written(&place.store, Some("sha256:a"), true).await;
        let job = job_on(&place.store, key).await;
        let claimed = place.store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().unwrap();
        assert_eq!((claimed.id, place.store.is_durable()), (job, true));
        if let StoreUrl::Sqlite(path) = url {
            let second = Store::open(Some(url)).await.unwrap_err();
            assert!(matches!(second, StoreError::InUse(_)), "{second}");
            #[cfg(unix)]
            for suffix in ["", "-wal"] {
                use std::os::unix::fs::PermissionsExt;
                let file = format!("{}{suffix}", path.display());
                assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
        let cut_off = place.store.begin_dataset("", true).await.unwrap();
        place.store.add_block(cut_off, 0, "one").await.unwrap();
        let (name, shared) = (place.name, place.name == "PostgreSQL");
        place.store.close().await;
        let super::TestStore { store, url, _directory: directory, .. } = place;
        drop(store);
        let store = Store::open(url.as_ref()).await.unwrap();
        assert!(store.dataset(&Principal::default(), "sha256:a").await.unwrap().is_some(), "{name}");
        // Nobody else can have the file, so its jobs are free at once; a shared job is free when its lease is over.
        let again = store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().map(|job| job.attempts);
        assert_eq!(again, if shared { None } else { Some(2) }, "{name}");
        // Nobody else uploads to it either; a process beside this one may.
        assert_eq!(store.sample_block(cut_off, 0).await.unwrap().is_some(), shared, "{name}");
        drop(directory);
    }
}

#[tokio::test]
async fn a_file_that_is_no_store_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let error = async |name: &str| {
        let url = StoreUrl::Sqlite(directory.path().join(name));
        Store::open(Some(&url)).await.unwrap_err().to_string()
    };
    std::fs::write(directory.path().join("text.db"), "this is a text, and long enough to have no header".repeat(9))
        .unwrap();
    let damaged = error("text.db").await;
    assert!(damaged.contains("not a database"), "{damaged}");
    let absent = error("absent/store.db").await;
    assert!(absent.contains("absent"), "{absent}");
}

#[tokio::test]
async fn a_store_of_another_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let url = StoreUrl::Sqlite(directory.path().join("store.db"));
    let store = Store::open(Some(&url)).await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (99, 'of the future', 1, x'00', 0)";
    sqlx::query(newer).execute(&store.pool).await.unwrap();
    store.close().await;
    drop(store);
    let error = Store::open(Some(&url)).await.unwrap_err();
    assert!(matches!(error, StoreError::OtherVersion(99)), "{error}");
}

/// The file may not grow, as on a full disk.
#[tokio::test]
async fn a_full_disk_is_named_and_nothing_is_lost_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let url = StoreUrl::Sqlite(directory.path().join("store.db"));
    let store = Store::open(Some(&url)).await.unwrap();
    let key = store.begin_dataset("", true).await.unwrap();
    sqlx::query("PRAGMA max_page_count = 60").fetch_all(&store.pool).await.unwrap();
    let large = "x".repeat(1 << 20);
    let error = store.add_block(key, 0, &large).await.unwrap_err();
    assert!(matches!(error, StoreError::Full), "{error}");
    assert_eq!(store.sample_block(key, 0).await.unwrap(), None);
    // As when space is freed: the connection that failed is not used again.
    store.add_block(key, 0, &large).await.unwrap();
    let kept = written(&store, Some("sha256:a"), true).await;
    let dropped = store.begin_dataset("", true).await.unwrap();
    assert!(store.add_block(dropped, 0, "one").await.is_ok() && store.add_block(dropped, 0, "one").await.is_err());
    store.drop_dataset(dropped).await.unwrap();
    let key = store.complete_dataset(key, Some("sha256:b"), "{}").await.unwrap();
    store.close().await;
    drop(store);
    let store = Store::open(Some(&url)).await.unwrap();
    assert!(
        store.sample_block(kept, 1).await.unwrap().is_some() && store.sample_block(key, 0).await.unwrap().is_some()
    );
}

/// Whoever waits for a store in memory may stop waiting at any moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_memory_survives_those_who_stop_waiting() {
    let store = Store::open(None).await.unwrap();
    let key = written(&store, Some("sha256:a"), true).await;
    for round in 0..2_000 {
        let pause = Duration::from_micros(round % 200);
        let _ = tokio::time::timeout(pause, store.sample_block(key, 0)).await;
        if round % 10 == 0 {
            let _ = tokio::time::timeout(pause, store.begin_dataset("", true)).await;
        }
    }
    assert_eq!(store.sample_block(key, 0).await.unwrap().as_deref(), Some("one"));
}

#[tokio::test]
async fn what_is_deleted_is_in_no_file_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let url = StoreUrl::Sqlite(directory.path().join("store.db"));
    let store = Store::open(Some(&url)).await.unwrap();
    let key = store.begin_dataset("", true).await.unwrap();
    store.add_block(key, 0, &"a canary text ".repeat(1_000)).await.unwrap();
    let key = store.complete_dataset(key, Some("sha256:a"), "{}").await.unwrap();
    let holds_canary = || {
        let files = std::fs::read_dir(directory.path()).unwrap();
        let contents = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        contents.into_iter().any(|content| content.windows(13).any(|window| window == b"a canary text"))
    };
    assert!(holds_canary());
    assert!(store.delete_dataset(key).await.unwrap());
    assert!(!holds_canary());
}

/// Another process holds the file for writing.
#[tokio::test]
async fn who_reads_a_file_waits_for_nobody_who_writes_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let store = Store::open(Some(&StoreUrl::Sqlite(file.clone()))).await.unwrap();
    let key = written(&store, Some("sha256:a"), true).await;
    let job = job_on(&store, key).await;
    let mut other = AnyConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    other.execute("BEGIN IMMEDIATE; UPDATE jobs SET done = 7").await.unwrap();
    let begun = Instant::now();
    for _ in 0..20 {
        assert_eq!(store.datasets(&Principal::default(), None, 9).await.unwrap().rows.len(), 1);
        assert_eq!(store.job("audit", job).await.unwrap().unwrap().done, 0);
        assert_eq!(store.sample_block(key, 1).await.unwrap().as_deref(), Some("two"));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    other.execute("COMMIT").await.unwrap();
    assert_eq!(store.job("audit", job).await.unwrap().unwrap().done, 7);
    // No reader keeps what it saw before, however many there are.
    for round in 0..200 {
        let key = store.begin_dataset("", true).await.unwrap();
        store.add_block(key, 0, "one").await.unwrap();
        let reads = (0..6).map(|_| store.sample_block(key, 0));
        let read = futures::future::try_join_all(reads).await.unwrap();
        assert!(read.iter().all(|block| block.as_deref() == Some("one")), "round {round}");
    }
    assert!(sqlx::query("UPDATE jobs SET done = 8").execute(&store.readers).await.is_err(), "a reader writes nothing");
}
