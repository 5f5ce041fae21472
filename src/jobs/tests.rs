//! The queue of jobs of a kind that ends when it is told to.

mod abort;

use super::*;
use crate::config::StoreSettings;
use crate::datasets::{Sample, SampleTotals, SubmittedSamples};
use crate::store::{JobOutput, JobQuery, JobStatus, Principal, Store};
use crate::telemetry::names;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

const MAX_RUNNING: usize = 4;

const SOON: Duration = Duration::from_secs(20);

/// A kind of job that fails in the end.
enum FakeKind {
    /// Jobs note the model of the request and wait for leave.
    Waiting { started: Arc<Mutex<Vec<String>>>, leave: Arc<Semaphore> },
    /// Jobs do what a future says.
    Running(fn(String) -> BoxFuture<'static, ()>),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FakeSubject {
    model: String,
}

impl JobSubject for FakeSubject {
    fn summary(&self) -> JobSummary<'_> {
        JobSummary { model: &self.model, total: 1, ..JobSummary::default() }
    }
}

/// The model.
impl JobRequest for String {
    type Subject = FakeSubject;

    fn subject(job: &Submission<Self>, _: &SampleTotals) -> FakeSubject {
        FakeSubject { model: job.request.clone() }
    }

    fn weight(&self, _: &SampleTotals) -> Result<usize, JobError> {
        Ok(1)
    }
}

/// The failure that ends a job that is not broken.
fn told(model: &str) -> JobFailure {
    JobFailure::told(FailureKind::ModelChanged, &format!("model `{model}` changed"))
}

impl JobKind for FakeKind {
    const NAME: &'static str = "audit";
    const MOST_RUNNING: usize = MAX_RUNNING;
    const MOST_KEPT: usize = 1_000;
    const COUNTER: &'static str = names::AUDITS;
    type Request = String;

    async fn run(&self, job: JobRun<'_, String>) -> Result<JobOutput, JobFailure> {
        match self {
            Self::Waiting { started, leave } => {
                started.lock().unwrap().push(String::clone(&job.request));
                assert!(*job.request != "broken", "this job is broken");
                job.local.set_done(1);
                leave.acquire().await.unwrap().forget();
            }
            Self::Running(work) => work(String::clone(&job.request)).await,
        }
        Err(told(&job.request))
    }
}

struct TestJobs {
    jobs: Jobs<FakeKind>,
    started: Arc<Mutex<Vec<String>>>,
    leave: Arc<Semaphore>,
}

async fn test_jobs() -> TestJobs {
    let store = Store::open(None).await.unwrap();
    let (started, leave) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let kind = FakeKind::Waiting { started: Arc::clone(&started), leave: Arc::clone(&leave) };
    TestJobs { jobs: Jobs::start(store, StoreSettings::default(), kind), started, leave }
}

fn request(model: &str) -> Submission<String> {
    Submission {
        request: model.to_owned(),
        name: None,
        samples: SubmittedSamples::Inline(vec![Sample::default()]),
        idempotency_key: None,
        timeout: None,
    }
}

async fn all(jobs: &Jobs<FakeKind>) -> Vec<JobSnapshot<FakeSubject>> {
    jobs.list(&JobQuery { status: None, model: None, after: None, limit: 1_000 }).await.unwrap().jobs
}

impl TestJobs {
    async fn submit(&self, model: &str) -> Uuid {
        self.jobs.submit(request(model), &Arc::default()).await.unwrap().id
    }

    async fn submit_all(&self, count: usize) -> Vec<Uuid> {
        let mut ids = Vec::new();
        for number in 0..count {
            ids.push(self.submit(&number.to_string()).await);
        }
        ids
    }

    async fn status(&self, id: Uuid) -> JobStatus {
        self.jobs.get(id).await.unwrap().status
    }

    async fn statuses(&self, ids: &[Uuid]) -> Vec<JobStatus> {
        let mut statuses = Vec::new();
        for &id in ids {
            statuses.push(self.status(id).await);
        }
        statuses
    }

    async fn end(&self, id: Uuid) -> JobSnapshot<FakeSubject> {
        let ended = self.jobs.wait(id, SOON).await.unwrap();
        assert!(ended.status.is_final(), "{ended:?}");
        ended
    }

    /// Returns the models of the jobs that have started, once there are `count`.
    async fn started(&self, count: usize) -> Vec<String> {
        let all_started = async {
            while self.started.lock().unwrap().len() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(SOON, all_started).await.expect("the jobs start");
        self.started.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_run_and_the_others_wait_in_order() {
    let rig = test_jobs().await;
    let ids = rig.submit_all(MAX_RUNNING + 4).await;
    rig.started(MAX_RUNNING).await;
    let statuses = rig.statuses(&ids).await;
    assert!(statuses[..MAX_RUNNING].iter().all(|status| *status == JobStatus::Running), "{statuses:?}");
    assert!(statuses[MAX_RUNNING..].iter().all(|status| *status == JobStatus::Queued), "{statuses:?}");

    let cancelled = rig.jobs.cancel(ids[MAX_RUNNING + 1]).await.unwrap();
    assert_eq!((cancelled.status, cancelled.started_at, cancelled.done), (JobStatus::Cancelled, None, 0));
    assert!(cancelled.finished_at.is_some());
    let again = rig.jobs.cancel(ids[MAX_RUNNING + 1]).await.map(|snapshot| snapshot.status);
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
    assert_eq!(ended.failure.unwrap().detail, "model `last` changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_makes_room_for_the_next() {
    let rig = test_jobs().await;
    let ids = rig.submit_all(MAX_RUNNING + 1).await;
    rig.started(MAX_RUNNING).await;
    assert_eq!(rig.jobs.cancel(ids[0]).await.unwrap().status, JobStatus::Cancelled);
    assert_eq!(rig.started(MAX_RUNNING + 1).await.last(), Some(&MAX_RUNNING.to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_leaves_places_for_another() {
    let rig = test_jobs().await;
    let [alice, bob] = ["alice", "bob"].map(|name| rig.jobs.seen_by(Principal::new(name, false)));
    for _ in 0..2 * MAX_RUNNING {
        alice.submit(request("alice"), &Arc::default()).await.unwrap();
    }
    let share = MAX_RUNNING.div_ceil(2);
    assert_eq!(rig.started(share).await, vec!["alice"; share]);
    bob.submit(request("bob"), &Arc::default()).await.unwrap();
    assert_eq!(rig.started(share + 1).await.last().unwrap(), "bob");
    // A place of her own that gets free is taken by her next job.
    rig.leave.add_permits(share + 1);
    assert_eq!(rig.started(2 * share + 1).await.iter().filter(|name| *name == "alice").count(), 2 * share);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_left_empty_after_a_job_beside_those_of_another_client() {
    let rig = test_jobs().await;
    let [alice, bob] = ["alice", "bob"].map(|name| rig.jobs.seen_by(Principal::new(name, false)));
    let share = MAX_RUNNING.div_ceil(2);
    let mut first = None;
    for _ in 0..=share {
        let submitted = alice.submit(request("alice"), &Arc::default()).await.unwrap();
        first.get_or_insert(submitted.id);
    }
    rig.started(share).await;
    bob.submit(request("bob"), &Arc::default()).await.unwrap();
    rig.started(share + 1).await;
    // The pause is twice as long as the job: a second at least.
    tokio::time::sleep(Duration::from_millis(500)).await;
    rig.leave.add_permits(1);
    rig.end(first.unwrap()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(rig.started.lock().unwrap().len(), share + 1);
    assert_eq!(rig.started(share + 2).await.last().unwrap(), "alice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_its_job_alone() {
    let rig = test_jobs().await;
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
    let rig = test_jobs().await;
    let ids = rig.submit_all(2 * MAX_RUNNING).await;
    rig.started(MAX_RUNNING).await;
    tokio::time::timeout(SOON, rig.jobs.shutdown()).await.expect("all end");
    assert!(rig.statuses(&ids).await.iter().all(|status| *status == JobStatus::Cancelled));
    assert_eq!(rig.started.lock().unwrap().len(), MAX_RUNNING);
    let late = rig.jobs.submit(request("late"), &Arc::default()).await;
    assert!(matches!(late, Err(JobError::Draining)), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_unfinished_are_limited_and_only_the_finished_are_forgotten() {
    let rig = test_jobs().await;
    let ids = rig.submit_all(MAX_UNFINISHED[0]).await;
    let refused = rig.jobs.submit(request("one more"), &Arc::default()).await;
    assert!(matches!(refused, Err(JobError::Full(_, 64))), "{refused:?}");
    let unfinished = rig.jobs.delete(ids[0]).await;
    assert!(matches!(unfinished, Err(JobError::Unfinished(_))), "{unfinished:?}");
    rig.leave.add_permits(MAX_UNFINISHED[0]);
    for &id in &ids {
        rig.end(id).await;
    }
    assert!(rig.jobs.delete(ids[0]).await.is_ok());
    let again = rig.jobs.delete(ids[0]).await;
    assert!(matches!(again, Err(JobError::NotFound(_))), "{again:?}");
    let newest_first: Vec<Uuid> = all(&rig.jobs).await.iter().map(|snapshot| snapshot.id).collect();
    assert!(newest_first.is_sorted_by(|a, b| a > b) && newest_first.len() == MAX_UNFINISHED[0] - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_fails_when_its_time_is_over_whether_it_runs_or_waits() {
    let rig = test_jobs().await;
    let with_timeout = |model: &str, timeout| Submission { timeout: Some(timeout), ..request(model) };
    let running = rig.jobs.submit(with_timeout("running", Duration::from_secs(1)), &Arc::default()).await.unwrap().id;
    rig.submit_all(MAX_RUNNING - 1).await;
    rig.started(MAX_RUNNING).await;
    let waiting =
        rig.jobs.submit(with_timeout("waiting", Duration::from_millis(50)), &Arc::default()).await.unwrap().id;
    // The one makes room for another, which is not the one that waited too long.
    let patient = rig.jobs.submit(with_timeout("patient", 2 * SOON), &Arc::default()).await.unwrap();
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
