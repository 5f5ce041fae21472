//! Jobs: submitted, claimed, ended.

use super::places::test_stores;
use crate::store::{
    ClaimedJob, DatasetKey, IdempotencyKey, JobEnd, JobOutput, JobQuery, JobStatus, LostClaim, NewJob, Principal,
    Store, Submitted,
};
use std::time::Duration;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(60);
const OVER: Duration = Duration::ZERO;

async fn dataset(store: &Store) -> DatasetKey {
    let key = store.begin_dataset("", true).await.unwrap();
    store.complete_dataset(key, None, "{}").await.unwrap()
}

async fn submit(store: &Store, model: &str, key: Option<(&str, &str)>) -> (Uuid, Submitted) {
    let job = new_job(store, model, key).await;
    (job.id, store.submit(&job).await.unwrap())
}

pub(super) async fn new_job(store: &Store, model: &str, key: Option<(&str, &str)>) -> NewJob {
    NewJob {
        id: Uuid::now_v7(),
        owner: String::new(),
        kind: "audit",
        model: model.to_owned(),
        // A database must hold everything that JSON may hold.
        summary: "{\"name\":\"a \\u0000 'quoted' \u{1f642}\"}".to_owned(),
        request: "{}".to_owned(),
        dataset: dataset(store).await,
        texts: "sha256:a".to_owned(),
        weight: 7,
        key: key.map(|(key, digest)| IdempotencyKey { key: key.to_owned(), digest: digest.to_owned() }),
        timeout: None,
        adapter: None,
    }
}

async fn claim(store: &Store, lease: Duration) -> Option<ClaimedJob> {
    store.claim("audit", lease, 3, None).await.unwrap()
}

fn every() -> JobQuery {
    JobQuery { status: None, model: None, after: None, limit: 100 }
}

fn succeeded() -> JobEnd {
    JobEnd::Succeeded(JobOutput {
        report: "{\"a\":1}".into(),
        header: "[]".into(),
        scores: vec!["first".into(), "second".into()],
        ..JobOutput::default()
    })
}

#[tokio::test]
async fn jobs_go_from_queued_to_an_end_and_leave_their_results() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (first, _) = submit(store, "m", None).await;
        let (second, _) = submit(store, "n", None).await;
        assert_eq!(store.unfinished("audit", "").await.unwrap(), (2, 2), "{name}");
        let claimed = claim(store, LEASE).await.unwrap();
        assert_eq!((claimed.id, claimed.attempts, claimed.numerics.as_deref()), (first, 1, None), "{name}");
        assert!(claimed.dataset.is_some() && claimed.summary.contains('\u{1f642}'), "{name}");
        assert_eq!(store.renew(first, claimed.claim, LEASE, 5, None).await.unwrap(), Ok(false), "{name}");
        store.note_numerics(first, claimed.claim, "n1").await.unwrap();
        let running = store.job("audit", first).await.unwrap().unwrap();
        assert_eq!((running.status, running.done, running.revision), (JobStatus::Running, 5, 3), "{name}");
        assert!(running.created_at <= running.started_at.unwrap() && running.finished_at.is_none(), "{name}");
        assert!(!store.delete_job(first).await.unwrap(), "{name}: a running job is not deleted");
        assert_eq!(store.report(first).await.unwrap(), None, "{name}");

        assert_eq!(store.finish(first, claimed.claim, 9, None, &succeeded()).await.unwrap(), Ok(()), "{name}");
        let ended = store.job("audit", first).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.done, ended.revision), (JobStatus::Succeeded, 9, 4), "{name}");
        assert_eq!(store.report(first).await.unwrap().as_deref(), Some("{\"a\":1}"), "{name}");
        assert_eq!(store.score_header(first).await.unwrap().as_deref(), Some("[]"), "{name}");
        let blocks = [0, 1, 2].map(|block| store.score_block(first, block));
        let blocks = futures::future::try_join_all(blocks).await.unwrap();
        assert_eq!(blocks, [Some("first".to_owned()), Some("second".to_owned()), None], "{name}");
        assert_eq!(
            store.finish(first, claimed.claim, 9, None, &JobEnd::Cancelled).await.unwrap(),
            Err(LostClaim),
            "{name}"
        );

        assert_eq!(claim(store, LEASE).await.unwrap().id, second, "{name}");
        assert!(claim(store, LEASE).await.is_none(), "{name}");
        assert_eq!(store.ended_jobs("audit").await.unwrap(), [(first, String::new(), 7)], "{name}");
        assert!(store.delete_job(first).await.unwrap() && !store.delete_job(first).await.unwrap(), "{name}");
        assert_eq!(store.score_block(first, 0).await.unwrap(), None, "{name}");
        assert!(store.dataset_of(first).await.unwrap().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_lease_that_is_over_is_claimed_anew_and_the_old_claim_changes_nothing() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (id, _) = submit(store, "m", None).await;
        let first = claim(store, OVER).await.unwrap();
        store.note_numerics(id, first.claim, "n1").await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let second = claim(store, OVER).await.unwrap();
        assert_eq!((second.id, second.attempts, second.numerics.as_deref()), (id, 2, Some("n1")), "{name}");
        assert_eq!(store.renew(id, first.claim, LEASE, 1, None).await.unwrap(), Err(LostClaim), "{name}");
        assert_eq!(store.finish(id, first.claim, 1, None, &succeeded()).await.unwrap(), Err(LostClaim), "{name}");
        assert_eq!(store.report(id).await.unwrap(), None, "{name}");
        store.release(id, first.claim).await.unwrap();
        assert_eq!(store.job("audit", id).await.unwrap().unwrap().status, JobStatus::Running, "{name}");

        store.release(id, second.claim).await.unwrap();
        assert_eq!(store.job("audit", id).await.unwrap().unwrap().status, JobStatus::Queued, "{name}");
        // Claims that were given back do not count; those that ended with their process do.
        for attempts in [2, 3] {
            assert_eq!(claim(store, OVER).await.unwrap().attempts, attempts, "{name}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(claim(store, OVER).await.is_none(), "{name}");
        assert_eq!(store.end_abandoned("audit", 3, "{\"why\":1}").await.unwrap(), [id], "{name}");
        let failed = store.job("audit", id).await.unwrap().unwrap();
        assert_eq!((failed.status, failed.failure.as_deref()), (JobStatus::Failed, Some("{\"why\":1}")), "{name}");
    }
}

#[tokio::test]
async fn jobs_are_cancelled_in_any_state() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (running, _) = submit(store, "m", None).await;
        let (queued, _) = submit(store, "m", None).await;
        let claimed = claim(store, LEASE).await.unwrap();
        for id in [running, queued] {
            store.cancel(id).await.unwrap();
        }
        let status = async |id| store.job("audit", id).await.unwrap().unwrap().status;
        assert_eq!((status(running).await, status(queued).await), (JobStatus::Running, JobStatus::Cancelled), "{name}");
        assert_eq!(store.renew(running, claimed.claim, LEASE, 0, None).await.unwrap(), Ok(true), "{name}");
        assert_eq!(store.finish(running, claimed.claim, 0, None, &JobEnd::Cancelled).await.unwrap(), Ok(()), "{name}");
        assert_eq!(status(running).await, JobStatus::Cancelled, "{name}");

        let (lost, _) = submit(store, "m", None).await;
        claim(store, OVER).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        store.cancel_all("audit").await.unwrap();
        assert_eq!(status(lost).await, JobStatus::Cancelled, "{name}");
    }
}

#[tokio::test]
async fn a_key_names_one_submission() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (first, submitted) = submit(store, "m", Some(("k", "d"))).await;
        assert_eq!(submitted, Submitted::Queued, "{name}");
        let known = Submitted::Known { job: first, digest: "d".to_owned() };
        for digest in ["d", "other"] {
            assert_eq!(submit(store, "m", Some(("k", digest))).await.1, known, "{name}");
        }
        assert_eq!(store.submitted_under("", "k").await.unwrap(), Some(known), "{name}");
        assert_eq!(store.jobs("audit", &Principal::default(), &every()).await.unwrap().rows.len(), 1, "{name}");
        assert_eq!(submit(store, "m", Some(("l", "d"))).await.1, Submitted::Queued, "{name}");
        let both = [submit(store, "m", Some(("race", "d"))), submit(store, "m", Some(("race", "d")))];
        let both = futures::future::join_all(both).await;
        assert_eq!(both.iter().filter(|(_, submitted)| *submitted == Submitted::Queued).count(), 1, "{name}");
    }
}

#[tokio::test]
async fn lists_are_filtered_and_have_pages() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let mut ids = Vec::new();
        for model in ["m", "n", "m", "n", "m"] {
            ids.push(submit(store, model, None).await.0);
        }
        claim(store, LEASE).await.unwrap();
        let listed_of = async |kind: &str, query: JobQuery| -> Vec<usize> {
            let rows = store.jobs(kind, &Principal::default(), &query).await.unwrap().rows;
            rows.iter().map(|row| ids.iter().position(|id| *id == row.id).unwrap()).collect()
        };
        let listed = async |query: JobQuery| listed_of("audit", query).await;
        assert_eq!(listed(every()).await, [4, 3, 2, 1, 0], "{name}");
        assert_eq!(listed(JobQuery { limit: 2, ..every() }).await, [4, 3], "{name}");
        assert_eq!(listed(JobQuery { after: Some(ids[3]), limit: 2, ..every() }).await, [2, 1], "{name}");
        assert_eq!(listed(JobQuery { model: Some("n".into()), ..every() }).await, [3, 1], "{name}");
        assert_eq!(listed(JobQuery { status: Some(JobStatus::Running), ..every() }).await, [0], "{name}");
        assert_eq!(listed_of("other", every()).await, [0; 0], "{name}");
    }
}

#[tokio::test]
async fn two_claims_at_once_never_take_the_same_job() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        for _ in 0..8 {
            submit(store, "m", None).await;
        }
        let claims = futures::future::join_all((0..12).map(|_| claim(store, LEASE))).await;
        let mut claimed: Vec<Uuid> = claims.into_iter().flatten().map(|job| job.id).collect();
        claimed.sort();
        let all = claimed.len();
        claimed.dedup();
        assert_eq!((all, claimed.len()), (8, 8), "{name}");
    }
}

#[tokio::test]
async fn what_ended_long_ago_is_deleted() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (id, _) = submit(store, "m", None).await;
        store.cancel(id).await.unwrap();
        assert_eq!(store.delete_ended_before(LEASE).await.unwrap(), 0, "{name}");
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(store.delete_ended_before(Duration::from_millis(1)).await.unwrap(), 1, "{name}");
        assert!(store.job("audit", id).await.unwrap().is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_job_ends_when_its_time_is_over() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let in_time = async |timeout| {
            let job = NewJob { timeout: Some(timeout), ..new_job(store, "m", None).await };
            store.submit(&job).await.unwrap();
            job.id
        };
        let running = in_time(Duration::from_millis(300)).await;
        let claimed = claim(store, LEASE).await.unwrap();
        let left = claimed.time_left.unwrap();
        assert!(
            claimed.id == running && left > Duration::ZERO && left <= Duration::from_millis(300),
            "{name}: {left:?}"
        );
        let queued = in_time(Duration::from_millis(1)).await;
        let patient = in_time(LEASE).await;
        let (unbounded, _) = submit(store, "m", None).await;
        tokio::time::sleep(Duration::from_millis(350)).await;
        assert_eq!(claim(store, OVER).await.unwrap().id, patient, "{name}: what is overdue is not begun");
        assert_eq!(store.end_overdue("audit", "{}").await.unwrap(), [queued], "{name}: whoever runs a job ends it");
        let ended = store.job("audit", queued).await.unwrap().unwrap();
        assert_eq!((ended.status, ended.failure.as_deref()), (JobStatus::Failed, Some("{}")), "{name}");
        assert!(ended.deadline.unwrap() > ended.created_at && ended.finished_at >= ended.deadline, "{name}");
        assert_eq!(store.job("audit", unbounded).await.unwrap().unwrap().deadline, None, "{name}");
        // The process that ran it has ended.
        store.renew(running, claimed.claim, OVER, 0, None).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(store.end_overdue("audit", "{}").await.unwrap(), [running], "{name}");
        assert_eq!(claim(store, LEASE).await.unwrap().id, patient, "{name}: its lease was over");
        assert_eq!(claim(store, LEASE).await.unwrap().time_left, None, "{name}");
    }
}

/// Shifts the times of the jobs that change, as if the clock were set back or forward by `seconds` seconds.
async fn set_clock(store: &Store, seconds: i64) {
    let statement = "UPDATE jobs SET started_at = started_at - $1, lease_until = lease_until - $1";
    sqlx::query(statement).bind(seconds * 1_000_000).execute(&store.pool).await.unwrap();
}

#[tokio::test]
async fn a_clock_that_jumps_loses_no_job_and_gives_none_to_two() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let (id, _) = submit(store, "m", None).await;
        let first = claim(store, LEASE).await.unwrap();
        // Forward: the lease is over, and the first to notice has the job.
        set_clock(store, 3_600).await;
        assert_eq!(store.renew(id, first.claim, LEASE, 1, None).await.unwrap(), Ok(false), "{name}: nobody took it");
        set_clock(store, 3_600).await;
        let second = claim(store, LEASE).await.unwrap();
        assert_eq!(second.id, id, "{name}");
        assert_eq!(store.finish(id, first.claim, 1, None, &succeeded()).await.unwrap(), Err(LostClaim), "{name}");
        // Back: the lease would last for an hour more. Who renews it keeps it.
        set_clock(store, -3_600).await;
        store.shorten_leases(LEASE).await.unwrap();
        assert!(claim(store, LEASE).await.is_none(), "{name}");
        assert_eq!(store.renew(id, second.claim, LEASE, 1, None).await.unwrap(), Ok(false), "{name}");
        set_clock(store, -3_600).await;
        // Nobody does, and it ends after a lease from now.
        let short = Duration::from_millis(20);
        store.shorten_leases(short).await.unwrap();
        tokio::time::sleep(short * 2).await;
        let third = claim(store, LEASE).await.unwrap();
        assert_eq!((third.id, third.attempts), (id, 3), "{name}");
        assert_eq!(store.finish(id, third.claim, 1, None, &succeeded()).await.unwrap(), Ok(()), "{name}");
        let ended = store.job("audit", id).await.unwrap().unwrap();
        assert!(ended.status == JobStatus::Succeeded && ended.finished_at.is_some(), "{name}");
    }
}
