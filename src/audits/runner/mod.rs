//! The audits of a service: queued in the order of their submission, a few run at a time, asked for, cancelled, forgotten. They
//! live in memory.

use super::error::{AuditError, AuditFailure};
use super::job::AuditJob;
use super::limits::{MAX_SCORES, check_cost};
use super::page::{AuditFilter, AuditPage};
use super::request::AuditRequest;
use super::run::{AuditOutcome, run};
use super::status::{AuditSnapshot, AuditSubject};
use crate::scorer::Scorer;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Audits that run at once: enough that a short one seldom waits for a long one, few enough that the first ones finish first.
/// They share the engine's window of batch work, so more of them would not be faster.
const MAX_RUNNING: usize = 4;
/// Audits that may be unfinished at once; each holds its samples in memory.
const MAX_UNFINISHED: usize = 64;
/// Finished audits that are kept; the oldest makes room.
const MAX_FINISHED: usize = 256;
/// The most scores of all finished audits together.
const MAX_KEPT_SCORES: usize = 4 * MAX_SCORES;

/// Runs a request, and tells the function how many samples are done.
type RunAudit =
    dyn Fn(Arc<AuditRequest>, Box<dyn Fn(usize) + Send + Sync>) -> BoxFuture<'static, RunResult> + Send + Sync;
type RunResult = Result<AuditOutcome, AuditFailure>;

/// All audits; cheap to clone.
#[derive(Clone)]
pub struct Audits {
    work: Arc<RunAudit>,
    jobs: Arc<Mutex<AuditQueue>>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct AuditQueue {
    all: BTreeMap<Uuid, Arc<AuditJob>>,
    /// Those that wait for their turn, the first one first.
    queue: VecDeque<(Arc<AuditJob>, AuditRequest)>,
    running: usize,
    draining: bool,
}

impl Audits {
    /// An empty collection, whose audits are run by this scorer.
    pub fn new(scorer: Scorer) -> Self {
        Self::running(move |request, progress| {
            let scorer = scorer.clone();
            async move { run(request, &scorer, progress).await }.boxed()
        })
    }

    fn running(
        work: impl Fn(Arc<AuditRequest>, Box<dyn Fn(usize) + Send + Sync>) -> BoxFuture<'static, RunResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { work: Arc::new(work), jobs: Arc::default(), tasks: TaskTracker::new() }
    }

    /// Accepts an audit, which the client may have given a name. It runs as soon as it is its turn.
    ///
    /// # Errors
    /// Those of `check_cost`, [`AuditError::Full`] or [`AuditError::Draining`].
    pub fn submit(&self, request: AuditRequest, name: Option<String>) -> Result<AuditSnapshot, AuditError> {
        let cost = check_cost(&request)?;
        let job = Arc::new(AuditJob::new(AuditSubject::new(&request, name), cost));
        let snapshot = job.snapshot();
        let mut jobs = self.lock();
        if jobs.draining {
            return Err(AuditError::Draining);
        }
        jobs.make_room()?;
        jobs.all.insert(snapshot.id, Arc::clone(&job));
        jobs.queue.push_back((job, request));
        self.start_queued(&mut jobs);
        Ok(snapshot)
    }

    /// An audit as it stands.
    pub fn get(&self, id: Uuid) -> Option<AuditSnapshot> {
        self.job(id).map(|job| job.snapshot())
    }

    /// Some audits, newest first.
    pub fn list(&self, filter: &AuditFilter) -> AuditPage {
        filter.page(self.lock().all.values().rev().map(|job| job.snapshot()))
    }

    /// Waits until an audit is final, or for the given time; gives it as it stands then.
    pub async fn wait(&self, id: Uuid, at_most: Duration) -> Option<AuditSnapshot> {
        let job = self.job(id)?;
        // A passed time is no error here: the snapshot tells.
        let _ = tokio::time::timeout(at_most, job.ended()).await;
        Some(job.snapshot())
    }

    /// Cancels an audit and waits until it has stopped.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Finished`].
    pub async fn cancel(&self, id: Uuid) -> Result<AuditSnapshot, AuditError> {
        let job = self.job(id).ok_or(AuditError::NotFound)?;
        if job.is_final() {
            return Err(AuditError::Finished);
        }
        self.lock().stop(&job);
        job.ended().await;
        Ok(job.snapshot())
    }

    /// Forgets a finished audit.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Unfinished`].
    pub fn delete(&self, id: Uuid) -> Result<(), AuditError> {
        let mut jobs = self.lock();
        let job = jobs.all.get(&id).ok_or(AuditError::NotFound)?;
        if !job.is_final() {
            return Err(AuditError::Unfinished);
        }
        jobs.all.remove(&id);
        Ok(())
    }

    /// Takes no more audits, cancels those that are queued or run, and waits for their end. The log names them.
    pub async fn shutdown(&self) {
        let jobs: Vec<AuditSnapshot> = {
            let mut jobs = self.lock();
            let all = jobs.all.values().map(|job| job.snapshot()).collect();
            jobs.drain();
            all
        };
        for AuditSnapshot { id, subject, status, done, .. } in jobs.into_iter().filter(|job| !job.status.is_final()) {
            let (name, total) = (subject.name.as_deref(), subject.total);
            tracing::warn!(audit = %id, name, status = status.name(), done, total, "audit cancelled: the service ends");
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Starts what is queued, as far as there is room.
    fn start_queued(&self, jobs: &mut AuditQueue) {
        while jobs.running < MAX_RUNNING
            && let Some((job, request)) = jobs.queue.pop_front()
        {
            jobs.running += 1;
            job.start();
            let audits = self.clone();
            self.tasks.spawn(async move {
                audits.perform(&job, request).await;
                let mut jobs = audits.lock();
                jobs.running -= 1;
                audits.start_queued(&mut jobs);
            });
        }
    }

    /// Runs one audit to its end, whatever that is. A panic is the end of this audit alone.
    async fn perform(&self, job: &Arc<AuditJob>, request: AuditRequest) {
        let (model, texts, started) = (request.model.clone(), request.samples.len(), Instant::now());
        let progress = Arc::clone(job);
        let work = async { (self.work)(Arc::new(request), Box::new(move |done| progress.advance(done))).await };
        let ended = job.cancel.run_until_cancelled(AssertUnwindSafe(work).catch_unwind()).await;
        job.finish(ended.map(|ended| ended.unwrap_or_else(|payload| Err(AuditFailure::panicked(&*payload)))));
        let AuditSnapshot { id, status, outcome, .. } = job.snapshot();
        let tokens = outcome.map(|outcome| outcome.results.usage.tokens);
        let seconds = started.elapsed().as_secs_f64();
        tracing::info!(audit = %id, model, texts, tokens, seconds, status = status.name(), "audit ended");
    }

    fn job(&self, id: Uuid) -> Option<Arc<AuditJob>> {
        self.lock().all.get(&id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, AuditQueue> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditQueue {
    /// Forgets the oldest finished audits until one more may be kept.
    fn make_room(&mut self) -> Result<(), AuditError> {
        let finished = self.all.iter().filter(|(_, job)| job.is_final());
        let finished: Vec<(Uuid, usize)> = finished.map(|(id, job)| (*id, job.cost)).collect();
        if self.all.len() - finished.len() >= MAX_UNFINISHED {
            return Err(AuditError::Full(MAX_UNFINISHED));
        }
        let (mut count, mut total) = (finished.len(), finished.iter().map(|(_, cost)| cost).sum::<usize>());
        // Ids of version 7 grow with time, so the map's first is the oldest.
        for (id, cost) in finished {
            if count < MAX_FINISHED && total <= MAX_KEPT_SCORES {
                break;
            }
            self.all.remove(&id);
            count -= 1;
            total -= cost;
        }
        Ok(())
    }

    /// Takes an audit from the queue, or asks it to stop where it runs. Both under the lock, so that none starts in between.
    fn stop(&mut self, job: &Arc<AuditJob>) {
        match self.queue.iter().position(|(queued, _)| Arc::ptr_eq(queued, job)) {
            Some(place) => {
                self.queue.remove(place);
                job.finish(None);
            }
            None => job.cancel.cancel(),
        }
    }

    fn drain(&mut self) {
        self.draining = true;
        for (job, _) in self.queue.drain(..) {
            job.finish(None);
        }
        self.all.values().for_each(|job| job.cancel.cancel());
    }
}

#[cfg(test)]
mod tests;
