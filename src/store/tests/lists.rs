//! Lists with a damaged row among others, and what can be done with that.

use super::jobs::new_job;
use super::places::{TestStore, test_stores};
use crate::store::{JobEnd, JobQuery, Principal, Store, StoreError};
use sqlx::AssertSqlSafe;
use std::time::Duration;
use uuid::Uuid;

/// Changes one row by a statement that ends with its key.
async fn change(store: &Store, statement: &str, key: Uuid) {
    let statement = format!("{statement} = '{key}'");
    sqlx::query(AssertSqlSafe(statement)).execute(&store.pool).await.unwrap();
}

/// Values of `summary` and `description` that are damaged: PostgreSQL keeps no bytes that are not UTF-8.
fn damages(place: &TestStore) -> &'static [&'static str] {
    if place.name == "PostgreSQL" { &["'{ }'"] } else { &["'{ }'", "CAST(x'7bff7d' AS TEXT)"] }
}

async fn uploaded(store: &Store, id: &str) -> Result<Uuid, StoreError> {
    let key = store.begin_dataset("", true).await?;
    store.add_block(key, 0, "one").await?;
    store.complete_dataset(key, Some(id), "{}").await
}

#[tokio::test]
async fn a_page_goes_on_behind_a_damaged_job() {
    for place in test_stores().await {
        for damage in damages(&place) {
            let (store, name, mut jobs) = (&place.store, place.name, Vec::new());
            for _ in 0..3 {
                let job = new_job(store, "m", None).await;
                store.submit(&job).await.unwrap();
                jobs.push(job.id);
            }
            change(store, &format!("UPDATE jobs SET summary = {damage} WHERE id"), jobs[1]).await;
            let page = async |after, limit| {
                let query = JobQuery { status: None, model: None, after, limit };
                let page = store.jobs("audit", &Principal::default(), &query).await.unwrap();
                (page.rows.iter().map(|job| job.id).collect::<Vec<_>>(), page.next)
            };
            assert_eq!(page(None, 3).await, (vec![jobs[2], jobs[0]], None), "{name}: {damage}");
            let first = page(None, 2).await;
            assert_eq!((first.0, first.1.is_some()), (vec![jobs[2]], true), "{name}: {damage}");
            // One that is not UTF-8 has no key, and is left out of the next page as well.
            assert_eq!(page(first.1, 2).await, (vec![jobs[0]], None), "{name}: {damage}");
            let damaged = store.job("audit", jobs[1]).await.unwrap_err();
            assert!(matches!(damaged, StoreError::Damaged(_)), "{name}: {damaged}");

            assert_eq!(store.job_owner("audit", jobs[1]).await.unwrap().as_deref(), Some(""), "{name}");
            assert!(store.cancel(jobs[1]).await.unwrap(), "{name}: {damage}");
            assert!(!store.cancel(jobs[1]).await.unwrap(), "{name}: it has ended");
            assert!(store.delete_job(jobs[1]).await.unwrap(), "{name}: {damage}");
            for job in [jobs[0], jobs[2]] {
                assert!(store.cancel(job).await.unwrap() && store.delete_job(job).await.unwrap(), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_job_is_claimed_to_fail_by_its_damage() {
    for place in test_stores().await {
        for damage in damages(&place) {
            let (store, name) = (&place.store, place.name);
            let [damaged, sound] = [new_job(store, "m", None).await, new_job(store, "m", None).await];
            for job in [&damaged, &sound] {
                store.submit(job).await.unwrap();
            }
            change(store, &format!("UPDATE jobs SET summary = {damage} WHERE id"), damaged.id).await;
            for (id, is_damaged) in [(damaged.id, true), (sound.id, false)] {
                let claimed = store.claim("audit", Duration::from_secs(60), 3, None).await.unwrap().unwrap();
                assert_eq!((claimed.id, claimed.damage.is_some()), (id, is_damaged), "{name}: {damage}");
                let end = JobEnd::Failed("{}".to_owned());
                store.finish(id, claimed.claim, 0, None, &end).await.unwrap().unwrap();
                assert!(store.delete_job(id).await.unwrap(), "{name}: {damage}");
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_dataset_is_left_out_of_lists_and_replaced_by_an_upload() {
    for place in test_stores().await {
        for damage in damages(&place) {
            let (store, name) = (&place.store, place.name);
            let known = uploaded(store, "sha256:a").await.unwrap();
            let other = uploaded(store, "sha256:b").await.unwrap();
            change(store, &format!("UPDATE datasets SET description = {damage} WHERE dataset"), known).await;
            let page = store.datasets(&Principal::default(), None, 9).await.unwrap();
            assert_eq!(page.rows.iter().map(|row| row.key).collect::<Vec<_>>(), [other], "{name}: {damage}");
            let damaged = store.dataset(&Principal::default(), "sha256:a").await.unwrap_err();
            assert!(matches!(damaged, StoreError::Damaged(_)), "{name}: {damaged}");
            assert_eq!(store.dataset_key("", "sha256:a").await.unwrap(), Some(known), "{name}");

            let mut job = new_job(store, "m", None).await;
            job.dataset = known;
            store.submit(&job).await.unwrap();
            let refused = uploaded(store, "sha256:a").await.unwrap_err();
            assert!(matches!(refused, StoreError::Damaged(_)), "{name}: {refused}");
            assert!(store.cancel(job.id).await.unwrap(), "{name}");
            let replaced = uploaded(store, "sha256:a").await.unwrap();
            assert_ne!(replaced, known, "{name}");
            let row = store.dataset(&Principal::default(), "sha256:a").await.unwrap().unwrap();
            assert_eq!((row.key, &*row.description), (replaced, "{}"), "{name}: {damage}");
            assert!(store.delete_dataset(replaced).await.unwrap() && store.delete_dataset(other).await.unwrap());
        }
    }
}
