//! Ownership of jobs and datasets.

use super::damage::{answers, filled};
use super::jobs::new_job;
use super::places::{test_stores, test_stores_at};
use crate::store::{IdempotencyKey, JobEnd, JobOutput, JobQuery, NewJob, Principal, Store, Submitted};
use sqlx::AssertSqlSafe;
use std::time::Duration;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);

async fn submit(store: &Store, owner: &str) -> Uuid {
    let job = NewJob { owner: owner.to_owned(), ..new_job(store, "m", None).await };
    assert_eq!(store.submit(&job).await.unwrap(), Submitted::Queued);
    job.id
}

#[tokio::test]
async fn jobs_are_listed_for_those_who_see_them() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let [first, second] = [submit(store, "alice").await, submit(store, "bob").await];
        let listed = async |owner: Principal| {
            let query = JobQuery { status: None, model: None, after: None, limit: 9 };
            store.jobs("audit", &owner, &query).await.unwrap().rows.iter().map(|job| job.id).collect::<Vec<_>>()
        };
        assert_eq!(listed(Principal::new("alice", false)).await, [first], "{name}");
        assert_eq!(listed(Principal::new("bob", false)).await, [second], "{name}");
        assert!(listed(Principal::new("carol", false)).await.is_empty(), "{name}");
        assert_eq!(listed(Principal::new("carol", true)).await, [second, first], "{name}");
        assert_eq!(store.unfinished("audit", "alice").await.unwrap(), (2, 1), "{name}");
        assert_eq!(store.job("audit", first).await.unwrap().unwrap().owner, "alice", "{name}");
    }
}

#[tokio::test]
async fn owners_take_turns() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        for _ in 0..3 {
            submit(store, "alice").await;
        }
        let bob = submit(store, "bob").await;
        let mut owners = Vec::new();
        while let Some(job) = store.claim("audit", LEASE, 3, None).await.unwrap() {
            assert_eq!(job.owner == "bob", job.id == bob, "{name}");
            owners.push(job.owner);
        }
        assert_eq!(owners, ["alice", "bob", "alice", "alice"], "{name}");
    }
}

/// Two owners with a backlog do not keep a third out, also where only one job runs at a time.
#[tokio::test]
async fn an_owner_that_comes_late_has_its_turn() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        for _ in 0..4 {
            submit(store, "alice").await;
            submit(store, "bob").await;
        }
        let mut owners = Vec::new();
        for round in 0..6 {
            if round == 2 {
                submit(store, "carol").await;
            }
            let job = store.claim("audit", LEASE, 3, None).await.unwrap().unwrap();
            let end = JobEnd::Succeeded(JobOutput {
                report: "{}".to_owned(),
                header: "{}".to_owned(),
                ..JobOutput::default()
            });
            store.finish(job.id, job.claim, 0, None, &end).await.unwrap().unwrap();
            owners.push(job.owner);
        }
        assert_eq!(owners, ["alice", "bob", "carol", "alice", "bob", "alice"], "{name}");
    }
}

#[tokio::test]
async fn the_same_content_is_a_dataset_of_each_owner() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let upload = async |owner: &str| {
            let key = store.begin_dataset(owner, true).await.unwrap();
            store.add_block(key, 0, "one").await.unwrap();
            store.complete_dataset(key, Some("sha256:a"), "{}").await.unwrap()
        };
        let [alice, bob] = [upload("alice").await, upload("bob").await];
        assert_eq!((upload("alice").await, upload("bob").await), (alice, bob), "{name}");
        assert_ne!(alice, bob, "{name}");
        let seen = async |owner: Principal| store.dataset(&owner, "sha256:a").await.unwrap().map(|dataset| dataset.key);
        assert_eq!(seen(Principal::new("alice", false)).await, Some(alice), "{name}");
        assert_eq!(seen(Principal::new("bob", true)).await, Some(bob), "{name}: one's own comes first");
        assert_eq!(seen(Principal::new("carol", false)).await, None, "{name}");
        assert_eq!(seen(Principal::new("carol", true)).await, Some(alice), "{name}");
        let listed = async |owner: Principal| store.datasets(&owner, None, 9).await.unwrap().rows.len();
        assert_eq!((listed(Principal::new("bob", false)).await, listed(Principal::default()).await), (1, 2), "{name}");
    }
}

#[tokio::test]
async fn two_owners_may_use_the_same_idempotency_key() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        for owner in ["alice", "bob"] {
            let key = IdempotencyKey { key: "k".to_owned(), digest: owner.to_owned() };
            let job = NewJob { owner: owner.to_owned(), key: Some(key), ..new_job(store, "m", None).await };
            assert_eq!(store.submit(&job).await.unwrap(), Submitted::Queued, "{name}");
            let known = Submitted::Known { job: job.id, digest: owner.to_owned() };
            assert_eq!(store.submitted_under(owner, "k").await.unwrap(), Some(known), "{name}");
        }
    }
}

/// Rows from before owners existed are still there, and belong to nobody.
#[tokio::test]
async fn a_store_without_owners_is_brought_up_to_date() {
    for place in test_stores_at(3).await {
        let (Some(url), name) = (&place.url, place.name) else { continue };
        let [dataset, inline, job] = [(); 3].map(|()| Uuid::now_v7());
        let insert = "INSERT INTO datasets (dataset, id, state, description, blocks, retain, texts, created_at, touched_at) VALUES";
        for statement in [
            format!(
                "{insert} ('{dataset}', 'sha256:a', 'ready', '{{}}', 1, 1, 1, 1, 1), ('{inline}', NULL, 'inline', '{{}}', 1, 1, 1, 1, 1)"
            ),
            format!(
                "INSERT INTO samples (dataset, block, content) VALUES ('{dataset}', 0, 'one'), ('{inline}', 0, 'two')"
            ),
            format!(
                "INSERT INTO jobs (id, kind, status, model, summary, request, dataset, weight, done, revision, created_at, attempts, cancel) \
                 VALUES ('{job}', 'audit', 'queued', 'm', '{{}}', '{{}}', '{inline}', 1, 0, 1, 1, 0, 0)"
            ),
            format!("INSERT INTO idempotency_keys (client_key, digest, job) VALUES ('k', 'd', '{job}')"),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&place.store.pool).await.unwrap();
        }
        let url = url.clone();
        place.store.close().await;
        let _directory = place._directory;
        drop(place.store);
        let store = Store::open(Some(&url)).await.unwrap();
        let nobody = Principal::default();
        let kept = store.dataset(&nobody, "sha256:a").await.unwrap().unwrap();
        assert_eq!((kept.key, &*kept.owner, kept.id.as_deref()), (dataset, "", Some("sha256:a")), "{name}");
        assert_eq!(store.sample_block(dataset, 0).await.unwrap().as_deref(), Some("one"), "{name}");
        assert!(store.dataset(&Principal::new("alice", false), "sha256:a").await.unwrap().is_none(), "{name}");
        let known = Submitted::Known { job, digest: "d".to_owned() };
        assert_eq!(store.submitted_under("", "k").await.unwrap(), Some(known), "{name}");
        let claimed = store.claim("audit", LEASE, 3, None).await.unwrap().unwrap();
        assert_eq!((claimed.id, claimed.dataset, &*claimed.owner), (job, Some(inline), ""), "{name}");
        // The same content again is the same dataset, and another's is another one.
        for (owner, is_same) in [("", true), ("alice", false)] {
            let key = store.begin_dataset(owner, true).await.unwrap();
            let key = store.complete_dataset(key, Some("sha256:a"), "{}").await.unwrap();
            assert_eq!(key == dataset, is_same, "{name}");
        }
    }
}

#[tokio::test]
async fn a_column_that_a_newer_version_adds_stops_no_statement() {
    // A file has one process, which adds columns before it reads.
    for place in test_stores().await.into_iter().filter(|place| place.name == "PostgreSQL") {
        let (store, name) = (&place.store, place.name);
        let filled = filled(store).await;
        let before = answers(store, &filled).await;
        for table in ["datasets", "jobs", "plans", "adapters"] {
            let statement = format!("ALTER TABLE {table} ADD COLUMN of_the_future TEXT");
            sqlx::query(AssertSqlSafe(statement)).execute(&store.pool).await.unwrap();
        }
        let after = answers(store, &filled).await;
        assert!(format!("{after:?}") == format!("{before:?}"), "{name}");
        submit(store, "alice").await;
        let claimed = store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().unwrap();
        store.finish(claimed.id, claimed.claim, 1, None, &JobEnd::Cancelled).await.unwrap().unwrap();
        assert!(store.plan(&Principal::new("alice", false), "sha256:p").await.unwrap().is_some(), "{name}");
    }
}
