//! Audits as jobs: submitted, run behind interactive work, asked for, cancelled. They live in memory.

mod report;
mod run;
mod sample;
mod spec;

pub use report::*;
pub use run::{AuditOutcome, Column, SampleScores, run};
pub use sample::{Label, MAX_GROUPS, Sample, SampleId, samples_error};
pub use spec::{AuditSpec, Metrics};

use crate::scorer::{Scorer, ScorerError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use uuid::Uuid;

/// Audits that may be unfinished at once; each holds its samples in memory.
pub const MAX_UNFINISHED: usize = 64;
/// Finished audits that are kept; the oldest makes room.
pub const MAX_FINISHED: usize = 256;
/// The most scores of one audit, samples times methods (and baselines); some 160 MB.
pub const MAX_SCORES: usize = 10_000_000;
/// The most scores of all finished audits together.
const MAX_KEPT_SCORES: usize = 4 * MAX_SCORES;
/// The most samples of an audit; with any method, more would have more than [`MAX_SCORES`].
pub const MAX_SAMPLES: usize = MAX_SCORES / (SCORES_OF_A_SAMPLE + 1);
/// The most scores that the replicates of one bootstrap look at: about half a minute on two cores.
pub const MAX_RESAMPLED: u64 = 40_000_000_000;
/// The most numbers that the replicates of one bootstrap leave: half a GB.
pub const MAX_KEPT_NUMBERS: u64 = 1 << 26;
/// What a sample costs beside its scores, counted in scores: texts, ids and errors.
const SCORES_OF_A_SAMPLE: usize = 16;

/// Where an audit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl Status {
    /// Whether nothing will change any more.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// The name that clients and metrics see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is known of an audit at one moment.
#[derive(Clone)]
pub struct Snapshot {
    pub id: Uuid,
    pub status: Status,
    /// Samples done, and all of them.
    pub done: usize,
    pub total: usize,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// Why it failed.
    pub error: Option<Arc<ScorerError>>,
    /// What it found.
    pub outcome: Option<Arc<AuditOutcome>>,
}

/// Why an audit cannot be had, changed or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    #[error("there is no audit of this id")]
    NotFound,
    #[error("the audit has finished")]
    Finished,
    #[error("the audit has not finished; cancel it first")]
    Unfinished,
    #[error("{MAX_UNFINISHED} audits are queued or running")]
    Full,
    #[error(
        "the audit asks for {0} scores, samples times methods (16 more for each sample); the limit is {MAX_SCORES}"
    )]
    TooLarge(usize),
    #[error(
        "the bootstrap would look at {0} scores (replicates times samples times methods); the limit is {MAX_RESAMPLED}"
    )]
    TooOften(u64),
    #[error(
        "the bootstrap would keep {0} numbers (replicates times methods times rates asked for, and 1); the limit is \
         {MAX_KEPT_NUMBERS}"
    )]
    TooMany(u64),
    #[error("the service is shutting down")]
    Draining,
}

/// All audits; cheap to clone.
#[derive(Clone)]
pub struct Audits {
    scorer: Scorer,
    jobs: Arc<Mutex<BTreeMap<Uuid, Arc<Job>>>>,
    draining: CancellationToken,
    tasks: tokio_util::task::TaskTracker,
}

struct Job {
    done: AtomicUsize,
    /// Scores that it holds or will hold.
    weight: usize,
    cancel: CancellationToken,
    state: watch::Sender<Snapshot>,
}

impl Job {
    fn snapshot(&self) -> Snapshot {
        let snapshot = self.state.borrow().clone();
        Snapshot { done: self.done.load(Ordering::Relaxed), ..snapshot }
    }
}

impl Audits {
    /// An empty collection.
    pub fn new(scorer: Scorer) -> Self {
        let tasks = tokio_util::task::TaskTracker::new();
        Self { scorer, jobs: Arc::default(), draining: CancellationToken::new(), tasks }
    }

    /// Accepts an audit and starts it.
    ///
    /// # Errors
    /// [`AuditError::TooLarge`], [`AuditError::TooOften`], [`AuditError::TooMany`],
    /// [`AuditError::Full`] or [`AuditError::Draining`].
    pub fn submit(&self, spec: AuditSpec) -> Result<Snapshot, AuditError> {
        if self.draining.is_cancelled() {
            return Err(AuditError::Draining);
        }
        let columns = run::columns(&spec.plan.methods).len();
        let weight = spec.samples.len().saturating_mul(columns + SCORES_OF_A_SAMPLE);
        if weight > MAX_SCORES {
            return Err(AuditError::TooLarge(weight));
        }
        let replicates = spec.metrics.bootstrap.as_ref().map_or(0, |bootstrap| bootstrap.replicates as u64);
        let resampled = replicates.saturating_mul(spec.samples.len() as u64).saturating_mul(columns as u64);
        if resampled > MAX_RESAMPLED {
            return Err(AuditError::TooOften(resampled));
        }
        let numbers = 1 + spec.metrics.fpr_targets.len() as u64;
        let kept = replicates.saturating_mul(columns as u64).saturating_mul(numbers);
        if kept > MAX_KEPT_NUMBERS {
            return Err(AuditError::TooMany(kept));
        }
        let mut jobs = self.lock();
        make_room(&mut jobs)?;
        let snapshot = Snapshot {
            id: Uuid::now_v7(),
            status: Status::Queued,
            done: 0,
            total: spec.samples.len(),
            created_at: OffsetDateTime::now_utc(),
            started_at: None,
            finished_at: None,
            error: None,
            outcome: None,
        };
        let job = Arc::new(Job {
            done: AtomicUsize::new(0),
            weight,
            cancel: self.draining.child_token(),
            state: watch::Sender::new(snapshot.clone()),
        });
        jobs.insert(snapshot.id, job.clone());
        self.tasks.spawn(perform(self.scorer.clone(), Arc::new(spec), job));
        Ok(snapshot)
    }

    /// An audit as it stands.
    pub fn get(&self, id: Uuid) -> Option<Snapshot> {
        self.job(id).map(|job| job.snapshot())
    }

    /// All audits, newest first.
    pub fn list(&self) -> Vec<Snapshot> {
        self.lock().values().rev().map(|job| job.snapshot()).collect()
    }

    /// Waits until an audit is final, or for the given time; gives it as it stands then.
    pub async fn wait(&self, id: Uuid, at_most: Duration) -> Option<Snapshot> {
        let job = self.job(id)?;
        let mut state = job.state.subscribe();
        // Neither a passed time nor an ended task is an error here: the snapshot tells.
        let _ = tokio::time::timeout(at_most, state.wait_for(|s| s.status.is_final())).await;
        Some(job.snapshot())
    }

    /// Cancels an audit and waits until it has stopped.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Finished`].
    pub async fn cancel(&self, id: Uuid) -> Result<Snapshot, AuditError> {
        let job = self.job(id).ok_or(AuditError::NotFound)?;
        if job.snapshot().status.is_final() {
            return Err(AuditError::Finished);
        }
        job.cancel.cancel();
        let mut state = job.state.subscribe();
        let _ = state.wait_for(|s| s.status.is_final()).await;
        Ok(job.snapshot())
    }

    /// Forgets a finished audit.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Unfinished`].
    pub fn delete(&self, id: Uuid) -> Result<(), AuditError> {
        let mut jobs = self.lock();
        let job = jobs.get(&id).ok_or(AuditError::NotFound)?;
        if !job.snapshot().status.is_final() {
            return Err(AuditError::Unfinished);
        }
        jobs.remove(&id);
        Ok(())
    }

    /// Takes no more audits, cancels those that run and waits for their end.
    pub async fn shutdown(&self) {
        self.draining.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn job(&self, id: Uuid) -> Option<Arc<Job>> {
        self.lock().get(&id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest finished audits until one more may be kept.
fn make_room(jobs: &mut BTreeMap<Uuid, Arc<Job>>) -> Result<(), AuditError> {
    let finished = jobs.iter().filter(|(_, job)| job.state.borrow().status.is_final());
    let finished: Vec<(Uuid, usize)> = finished.map(|(id, job)| (*id, job.weight)).collect();
    if jobs.len() - finished.len() >= MAX_UNFINISHED {
        return Err(AuditError::Full);
    }
    let (mut count, mut weight) = (finished.len(), finished.iter().map(|(_, weight)| weight).sum::<usize>());
    // Ids of version 7 grow with time, so the map's first is the oldest.
    for (id, own) in finished {
        if count < MAX_FINISHED && weight <= MAX_KEPT_SCORES {
            break;
        }
        jobs.remove(&id);
        count -= 1;
        weight -= own;
    }
    Ok(())
}

/// Runs one job to its end, whatever that is.
async fn perform(scorer: Scorer, spec: Arc<AuditSpec>, job: Arc<Job>) {
    job.state.send_modify(|s| {
        s.status = Status::Running;
        s.started_at = Some(OffsetDateTime::now_utc());
    });
    let work = run(&scorer, spec, |done| job.done.store(done, Ordering::Relaxed));
    let ended = job.cancel.run_until_cancelled(work).await;
    job.state.send_modify(|s| {
        s.finished_at = Some(OffsetDateTime::now_utc());
        s.status = match ended {
            None => Status::Cancelled,
            Some(Ok(outcome)) => {
                s.outcome = Some(Arc::new(outcome));
                Status::Succeeded
            }
            Some(Err(error)) => {
                tracing::error!(audit = %s.id, %error, "audit failed");
                s.error = Some(Arc::new(error));
                Status::Failed
            }
        };
        metrics::counter!(crate::telemetry::names::AUDITS, "status" => s.status.name()).increment(1);
    });
}
