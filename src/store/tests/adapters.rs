//! Adapters: named when their jobs are submitted, whole when these succeed.

use super::jobs::new_job;
use super::places::test_stores;
use crate::store::{AdapterFiles, AdapterName, ClaimedJob, JobEnd, JobOutput, NewJob, Store, Submitted};
use std::time::Duration;
use uuid::Uuid;

fn named(name: &str) -> AdapterName {
    AdapterName { model: "demo".to_owned(), name: name.to_owned() }
}

async fn submitted(store: &Store, name: &str) -> (Uuid, Submitted) {
    let job = NewJob { adapter: Some(named(name)), ..new_job(store, "demo", None).await };
    (job.id, store.submit(&job).await.unwrap())
}

async fn claimed(store: &Store) -> ClaimedJob {
    store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_name_is_taken_from_the_submission_to_the_end_of_the_adapter() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (first, taken) = submitted(store, "a").await;
        assert_eq!(taken, Submitted::Queued, "{name}");
        assert_eq!(submitted(store, "a").await.1, Submitted::NameTaken, "{name}");
        assert_eq!(store.adapters().await.unwrap(), [], "{name}: it is not whole yet");
        // A job that ends without an adapter frees the name.
        store.cancel(first).await.unwrap();
        let (second, taken) = submitted(store, "a").await;
        assert_eq!(taken, Submitted::Queued, "{name}");

        let job = claimed(store).await;
        assert_eq!(job.id, second, "{name}");
        // Longer than a block, so that the blocks come in order.
        let tensors: Vec<u8> = (0..3_000_000_u32).map(|i| i.to_le_bytes()[i as usize % 4]).collect();
        let files = vec![("config".to_owned(), b"{}".to_vec()), ("tensors".to_owned(), tensors)];
        let adapter = AdapterFiles { base_digest: "sha256:b".to_owned(), files: files.clone() };
        let end = JobEnd::Succeeded(JobOutput { adapter: Some(adapter), ..JobOutput::default() });
        store.finish(job.id, job.claim, 1, None, &end).await.unwrap().unwrap();
        let rows = store.adapters().await.unwrap();
        assert_eq!((rows.len(), &rows[0].name, &*rows[0].base_digest), (1, &named("a"), "sha256:b"), "{name}");
        assert_eq!(store.adapter_files(second).await.unwrap(), files, "{name}");

        // It outlives its job, and goes with its files.
        assert!(store.delete_job(second).await.unwrap(), "{name}");
        assert_eq!(submitted(store, "a").await.1, Submitted::NameTaken, "{name}");
        assert!(store.delete_adapter(&named("a")).await.unwrap(), "{name}");
        assert!(!store.delete_adapter(&named("a")).await.unwrap(), "{name}");
        assert_eq!(store.adapter_files(second).await.unwrap(), [], "{name}");
        assert_eq!(submitted(store, "a").await.1, Submitted::Queued, "{name}");
    }
}

#[tokio::test]
async fn an_unfinished_job_that_names_an_adapter_is_seen() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let request = r#"{"methods":[{"name":"fsd","adapter":"demo:a_b"}]}"#.to_owned();
        let job = NewJob { request, ..new_job(store, "demo", None).await };
        store.submit(&job).await.unwrap();
        assert!(store.is_named("demo:a_b").await.unwrap(), "{name}");
        for other in ["demo:a", "demo:aXb", "demo:a%"] {
            assert!(!store.is_named(other).await.unwrap(), "{name}: {other}");
        }
        store.cancel(job.id).await.unwrap();
        assert!(!store.is_named("demo:a_b").await.unwrap(), "{name}");
    }
}
