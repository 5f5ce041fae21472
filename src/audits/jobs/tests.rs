//! The queue of audits, with work that ends when it is told to.

mod abort;

use super::*;
use crate::audits::RunEvent;
use crate::audits::evidence::EvidenceRequest;
use crate::audits::request::AuditMetrics;
use crate::config::StoreSettings;
use crate::datasets::{Sample, SubmittedSamples};
use crate::jobs::{FailureKind, JobError, JobQuery, MAX_UNFINISHED};
use crate::scorer::Overflow;
use crate::store::JobStatus;
use mia::methods::default_methods;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Semaphore;

const MAX_RUNNING: usize = AuditKind::MOST_RUNNING;

const SOON: Duration = Duration::from_secs(20);

/// Audits whose work notes the model of the request, waits for leave, and fails.
struct TestAudits {
    audits: Audits,
    started: Arc<Mutex<Vec<String>>>,
    leave: Arc<Semaphore>,
}

async fn test_audits() -> TestAudits {
    let store = Store::open(None).await.unwrap();
    let (started, leave) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let (noted, waited_for) = (Arc::clone(&started), Arc::clone(&leave));
    let kind = AuditKind::new(move |AuditWork { request, progress, .. }| {
        let (noted, waited_for) = (Arc::clone(&noted), Arc::clone(&waited_for));
        async move {
            noted.lock().unwrap().push(request.model.clone());
            assert!(request.model != "broken", "this audit is broken");
            progress(RunEvent::Scored { done: 1 });
            waited_for.acquire().await.unwrap().forget();
            Err(AuditFailure::ModelChanged(request.model.clone()))
        }
        .boxed()
    });
    TestAudits { audits: Audits::start(store, StoreSettings::default(), kind), started, leave }
}

fn request(model: &str) -> NewAudit {
    let request = AuditRequest {
        model: model.to_owned(),
        methods: default_methods(),
        overflow: Overflow::Error,
        metrics: AuditMetrics::default(),
        evidence: EvidenceRequest::default(),
    };
    NewAudit {
        request,
        name: None,
        samples: SubmittedSamples::Inline(vec![Sample::default()]),
        idempotency_key: None,
        timeout: None,
    }
}

async fn all(audits: &Audits) -> Vec<AuditSnapshot> {
    audits.list(&JobQuery { status: None, model: None, after: None, limit: 1_000 }).await.unwrap().jobs
}

impl TestAudits {
    async fn submit(&self, model: &str) -> Uuid {
        self.audits.submit(request(model)).await.unwrap().id
    }

    async fn submit_all(&self, count: usize) -> Vec<Uuid> {
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push(self.submit(&number.to_string()).await);
        }
        ids
    }

    async fn status(&self, id: Uuid) -> JobStatus {
        self.audits.get(id).await.unwrap().status
    }

    async fn statuses(&self, ids: &[Uuid]) -> Vec<JobStatus> {
        let mut statuses = Vec::new();
        for &id in ids {
            statuses.push(self.status(id).await);
        }
        statuses
    }

    async fn end(&self, id: Uuid) -> AuditSnapshot {
        let ended = self.audits.wait(id, SOON).await.unwrap();
        assert!(ended.status.is_final(), "{ended:?}");
        ended
    }

    /// The models of the audits that have started, once there are so many.
    async fn started(&self, count: usize) -> Vec<String> {
        let all_started = async {
            while self.started.lock().unwrap().len() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, all_started).await.expect("the audits start");
        self.started.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_run_and_the_others_wait_in_order() {
    let rig = test_audits().await;
    let ids = rig.submit_all(MAX_RUNNING + 4).await;
    rig.started(MAX_RUNNING).await;
    let statuses = rig.statuses(&ids).await;
    assert!(statuses[..MAX_RUNNING].iter().all(|status| *status == JobStatus::Running), "{statuses:?}");
    assert!(statuses[MAX_RUNNING..].iter().all(|status| *status == JobStatus::Queued), "{statuses:?}");

    let cancelled = rig.audits.cancel(ids[MAX_RUNNING + 1]).await.unwrap();
    assert_eq!((cancelled.status, cancelled.started_at, cancelled.done), (JobStatus::Cancelled, None, 0));
    assert!(cancelled.finished_at.is_some());
    let again = rig.audits.cancel(ids[MAX_RUNNING + 1]).await.map(|snapshot| snapshot.status);
    assert!(matches!(again, Err(JobError::Finished(_))), "{again:?}");

    for (ended, next) in [MAX_RUNNING, MAX_RUNNING + 2, MAX_RUNNING + 3].into_iter().enumerate() {
        rig.leave.add_permits(1);
        let started = rig.started(MAX_RUNNING + ended + 1).await;
        assert_eq!(started.last(), Some(&next.to_string()));
    }
    // A cancelled one makes room as well as a finished one does.
    let last = rig.submit("last").await;
    rig.leave.add_permits(ids.len());
    let ended = rig.end(last).await;
    assert_eq!((ended.status, ended.done), (JobStatus::Failed, 1));
    assert_eq!(ended.failure.unwrap().detail, "model `last` changed during the audit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_audit_makes_room_for_the_next() {
    let rig = test_audits().await;
    let ids = rig.submit_all(MAX_RUNNING + 1).await;
    rig.started(MAX_RUNNING).await;
    assert_eq!(rig.audits.cancel(ids[0]).await.unwrap().status, JobStatus::Cancelled);
    assert_eq!(rig.started(MAX_RUNNING + 1).await.last(), Some(&MAX_RUNNING.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_its_audit_alone() {
    let rig = test_audits().await;
    let sound = rig.submit("sound").await;
    // More than run at once: each must give its place back.
    let mut broken = Vec::new();
    for _ in 0..2 * MAX_RUNNING {
        broken.push(rig.submit("broken").await);
    }
    for id in broken {
        let ended = rig.end(id).await;
        assert_eq!((ended.status, ended.failure.unwrap().kind), (JobStatus::Failed, FailureKind::Internal));
    }
    assert_eq!(rig.status(sound).await, JobStatus::Running);
    rig.leave.add_permits(1);
    assert_eq!(rig.end(sound).await.failure.unwrap().kind, FailureKind::ModelChanged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_cancels_what_runs_and_what_waits() {
    let rig = test_audits().await;
    let ids = rig.submit_all(2 * MAX_RUNNING).await;
    rig.started(MAX_RUNNING).await;
    tokio::time::timeout(SOON, rig.audits.shutdown()).await.expect("all end");
    assert!(rig.statuses(&ids).await.iter().all(|status| *status == JobStatus::Cancelled));
    assert_eq!(rig.started.lock().unwrap().len(), MAX_RUNNING);
    let late = rig.audits.submit(request("late")).await;
    assert!(matches!(late, Err(AuditError::Job(JobError::Draining))), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unfinished_are_limited_and_only_the_finished_are_forgotten() {
    let rig = test_audits().await;
    let ids = rig.submit_all(MAX_UNFINISHED[0]).await;
    let refused = rig.audits.submit(request("one more")).await;
    assert!(matches!(refused, Err(AuditError::Job(JobError::Full(_, 64)))), "{refused:?}");
    let unfinished = rig.audits.delete(ids[0]).await;
    assert!(matches!(unfinished, Err(JobError::Unfinished(_))), "{unfinished:?}");
    rig.leave.add_permits(MAX_UNFINISHED[0]);
    for &id in &ids {
        rig.end(id).await;
    }
    assert!(rig.audits.delete(ids[0]).await.is_ok());
    let again = rig.audits.delete(ids[0]).await;
    assert!(matches!(again, Err(JobError::NotFound(_))), "{again:?}");
    let newest_first: Vec<Uuid> = all(&rig.audits).await.iter().map(|snapshot| snapshot.id).collect();
    assert!(newest_first.is_sorted_by(|a, b| a > b) && newest_first.len() == MAX_UNFINISHED[0] - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_fails_when_its_time_is_over_whether_it_runs_or_waits() {
    let rig = test_audits().await;
    let with_timeout = |model: &str, timeout| NewAudit { timeout: Some(timeout), ..request(model) };
    let running = rig.audits.submit(with_timeout("running", Duration::from_secs(1))).await.unwrap().id;
    rig.submit_all(MAX_RUNNING - 1).await;
    rig.started(MAX_RUNNING).await;
    let waiting = rig.audits.submit(with_timeout("waiting", Duration::from_millis(50))).await.unwrap().id;
    // The one makes room for another, which is not the one that waited too long.
    let patient = rig.audits.submit(with_timeout("patient", 2 * SOON)).await.unwrap();
    assert_eq!(patient.deadline.map(|deadline| deadline - patient.created_at), Some((2 * SOON).try_into().unwrap()));
    for id in [running, waiting] {
        let failure = rig.end(id).await.failure.unwrap();
        let detail = "the job did not end within its `timeout_seconds`";
        assert_eq!((failure.kind, &*failure.detail), (FailureKind::DeadlineExceeded, detail));
    }
    let started = rig.started(MAX_RUNNING + 1).await;
    assert_eq!(rig.status(patient.id).await, JobStatus::Running);
    assert!(!started.contains(&"waiting".to_owned()), "{started:?}");
}
