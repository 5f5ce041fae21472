//! The queue of audits, with work that ends when it is told to.

use super::*;
use crate::audits::request::AuditMetrics;
use crate::audits::sample::Sample;
use crate::audits::status::AuditStatus;
use crate::methods::default_methods;
use crate::scorer::Overflow;
use tokio::sync::Semaphore;

const SOON: Duration = Duration::from_secs(20);

/// Audits whose work notes the model of the request, waits for leave, and fails.
struct TestAudits {
    audits: Audits,
    started: Arc<Mutex<Vec<String>>>,
    leave: Arc<Semaphore>,
}

fn test_audits() -> TestAudits {
    let (started, leave) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let (noted, waited_for) = (Arc::clone(&started), Arc::clone(&leave));
    let audits = Audits::running(move |request, progress| {
        let (noted, waited_for) = (Arc::clone(&noted), Arc::clone(&waited_for));
        async move {
            noted.lock().unwrap().push(request.model.clone());
            assert!(request.model != "broken", "this audit is broken");
            progress(1);
            waited_for.acquire().await.unwrap().forget();
            Err(AuditFailure::ModelChanged(request.model.clone()))
        }
        .boxed()
    });
    TestAudits { audits, started, leave }
}

fn request(model: &str) -> AuditRequest {
    AuditRequest {
        model: model.to_owned(),
        methods: default_methods(),
        overflow: Overflow::Error,
        metrics: AuditMetrics::default(),
        samples: vec![Sample::default()],
    }
}

fn all(audits: &Audits) -> Vec<AuditSnapshot> {
    audits.list(&AuditFilter { status: None, model: None, after: None, limit: usize::MAX }).audits
}

impl TestAudits {
    fn submit(&self, model: &str) -> Uuid {
        self.audits.submit(request(model), None).unwrap().id
    }

    fn status(&self, id: Uuid) -> AuditStatus {
        self.audits.get(id).unwrap().status
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
    let rig = test_audits();
    let ids: Vec<Uuid> = (0..MAX_RUNNING + 4).map(|number| rig.submit(&number.to_string())).collect();
    rig.started(MAX_RUNNING).await;
    let statuses: Vec<AuditStatus> = ids.iter().map(|&id| rig.status(id)).collect();
    assert!(statuses[..MAX_RUNNING].iter().all(|status| *status == AuditStatus::Running), "{statuses:?}");
    assert!(statuses[MAX_RUNNING..].iter().all(|status| *status == AuditStatus::Queued), "{statuses:?}");

    let cancelled = rig.audits.cancel(ids[MAX_RUNNING + 1]).await.unwrap();
    assert_eq!((cancelled.status, cancelled.started_at, cancelled.done), (AuditStatus::Cancelled, None, 0));
    assert!(cancelled.finished_at.is_some());
    let again = rig.audits.cancel(ids[MAX_RUNNING + 1]).await.map(|snapshot| snapshot.status);
    assert_eq!(again, Err(AuditError::Finished));

    for (ended, next) in [MAX_RUNNING, MAX_RUNNING + 2, MAX_RUNNING + 3].into_iter().enumerate() {
        rig.leave.add_permits(1);
        let started = rig.started(MAX_RUNNING + ended + 1).await;
        assert_eq!(started.last(), Some(&next.to_string()));
    }
    // A cancelled one makes room as well as a finished one does.
    let last = rig.submit("last");
    rig.leave.add_permits(ids.len());
    let ended = rig.end(last).await;
    assert_eq!((ended.status, ended.done), (AuditStatus::Failed, 1));
    assert_eq!(ended.error.unwrap().to_string(), "the files of model `last` changed during the audit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_audit_makes_room_for_the_next() {
    let rig = test_audits();
    let ids: Vec<Uuid> = (0..MAX_RUNNING + 1).map(|number| rig.submit(&number.to_string())).collect();
    rig.started(MAX_RUNNING).await;
    assert_eq!(rig.audits.cancel(ids[0]).await.unwrap().status, AuditStatus::Cancelled);
    assert_eq!(rig.started(MAX_RUNNING + 1).await.last(), Some(&MAX_RUNNING.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_its_audit_alone() {
    let rig = test_audits();
    let sound = rig.submit("sound");
    // More than run at once: each must give its place back.
    let broken: Vec<Uuid> = (0..2 * MAX_RUNNING).map(|_| rig.submit("broken")).collect();
    for id in broken {
        let ended = rig.end(id).await;
        assert_eq!(ended.status, AuditStatus::Failed);
        assert_eq!(ended.error.unwrap().to_string(), "the audit panicked: this audit is broken");
    }
    assert_eq!(rig.status(sound), AuditStatus::Running);
    rig.leave.add_permits(1);
    assert!(matches!(*rig.end(sound).await.error.unwrap(), AuditFailure::ModelChanged(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_cancels_what_runs_and_what_waits() {
    let rig = test_audits();
    let ids: Vec<Uuid> = (0..2 * MAX_RUNNING).map(|number| rig.submit(&number.to_string())).collect();
    rig.started(MAX_RUNNING).await;
    tokio::time::timeout(SOON, rig.audits.shutdown()).await.expect("all end");
    assert!(ids.iter().all(|&id| rig.status(id) == AuditStatus::Cancelled));
    assert_eq!(rig.started.lock().unwrap().len(), MAX_RUNNING);
    assert_eq!(rig.audits.submit(request("late"), None).map(|snapshot| snapshot.status), Err(AuditError::Draining));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unfinished_are_limited_and_only_the_finished_are_forgotten() {
    let rig = test_audits();
    let ids: Vec<Uuid> = (0..MAX_UNFINISHED).map(|number| rig.submit(&number.to_string())).collect();
    let refused = rig.audits.submit(request("one more"), None).map(|snapshot| snapshot.status);
    assert_eq!(refused, Err(AuditError::Full(MAX_UNFINISHED)));
    assert_eq!(rig.audits.delete(ids[0]), Err(AuditError::Unfinished));
    rig.leave.add_permits(MAX_UNFINISHED);
    for &id in &ids {
        rig.end(id).await;
    }
    assert_eq!((rig.audits.delete(ids[0]), rig.audits.delete(ids[0])), (Ok(()), Err(AuditError::NotFound)));
    let newest_first: Vec<Uuid> = all(&rig.audits).iter().map(|snapshot| snapshot.id).collect();
    assert!(newest_first.is_sorted_by(|a, b| a > b) && newest_first.len() == MAX_UNFINISHED - 1);
}
