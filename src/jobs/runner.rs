//! The jobs of one kind, and where each stands.

use super::error::{FailureRecord, JobError};
use super::kind::{JobKind, JobSubject, JobSummary, LocalRun, Subject};
use crate::config::StoreSettings;
use crate::store::{ClaimedJob, JobQuery, JobRow, JobStatus, Principal, RowPage, Store, listed};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Interval at which a wait polls for changes by other processes.
pub(super) const POLL: Duration = Duration::from_secs(1);

/// All jobs of a kind; cheap to clone.
pub struct Jobs<K: JobKind> {
    shared: Arc<RunnerState<K>>,
    /// Client that submits jobs through this handle, and sees only its own unless it sees all.
    client: Principal,
}

impl<K: JobKind> Clone for Jobs<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), client: self.client.clone() }
    }
}

struct RunnerState<K> {
    store: Store,
    settings: StoreSettings,
    kind: K,
    /// The jobs that this process runs.
    running: Mutex<HashMap<Uuid, (ClaimedJob, Arc<LocalRun>)>>,
    /// Changes with every change of a job by this process.
    changes: watch::Sender<u64>,
    /// Something may be there to be claimed.
    wake: Notify,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl<K: JobKind> Jobs<K> {
    /// The jobs of this kind in a store, run from now on.
    pub fn start(store: Store, settings: StoreSettings, kind: K) -> Self {
        let jobs = Self {
            shared: Arc::new(RunnerState {
                store,
                settings,
                kind,
                running: Mutex::default(),
                changes: watch::Sender::new(0),
                wake: Notify::new(),
                closing: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
            client: Principal::default(),
        };
        jobs.spawn(jobs.clone().take_jobs());
        jobs.spawn(jobs.clone().keep_up());
        jobs.spawn(jobs.clone().watch_deadlines());
        jobs
    }

    /// The same jobs as a client sees them: those of others are not there.
    #[must_use]
    pub fn seen_by(&self, client: Principal) -> Self {
        Self { shared: Arc::clone(&self.shared), client }
    }

    /// Client that submits jobs through this handle.
    #[must_use]
    pub fn client(&self) -> &Principal {
        &self.client
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The kind of the jobs, which runs them.
    #[must_use]
    pub fn kind(&self) -> &K {
        &self.shared.kind
    }

    /// A job as it stands.
    pub async fn get(&self, id: Uuid) -> Result<JobSnapshot<Subject<K>>, JobError> {
        let row = self.store().job(K::NAME, id).await?.filter(|row| self.client.sees(&row.owner));
        let row = row.ok_or(JobError::NotFound(K::NAME))?;
        Ok(self.up_to_date(JobSnapshot::new(row, &self.client)?))
    }

    /// Report of a job, as JSON; `None` until it has succeeded.
    pub async fn report(&self, id: Uuid) -> Result<Option<String>, JobError> {
        Ok(self.store().report(id).await?)
    }

    /// Some jobs, newest first, without those that are damaged.
    pub async fn list(&self, query: &JobQuery) -> Result<JobPage<Subject<K>>, JobError> {
        let RowPage { rows, next } = self.store().jobs(K::NAME, &self.client, query).await?;
        let jobs = rows.into_iter().filter_map(|row| listed(JobSnapshot::new(row, &self.client)));
        Ok(JobPage { jobs: jobs.map(|job| self.up_to_date(job)).collect(), next })
    }

    /// Waits until a job is final, or for the given time; gives it as it stands then.
    pub async fn wait(&self, id: Uuid, at_most: Duration) -> Result<JobSnapshot<Subject<K>>, JobError> {
        let ended = async {
            let mut snapshot = self.get(id).await?;
            while !snapshot.status.is_final() {
                snapshot = self.next_change(id, snapshot.revision).await?;
            }
            Ok(snapshot)
        };
        match tokio::time::timeout(at_most, ended).await {
            Ok(ended) => ended,
            Err(_) => self.get(id).await,
        }
    }

    /// Waits until a job has another revision than this one.
    pub async fn next_change(&self, id: Uuid, revision: i64) -> Result<JobSnapshot<Subject<K>>, JobError> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let snapshot = self.get(id).await?;
            if snapshot.revision != revision {
                return Ok(snapshot);
            }
            // A passed time is no error: another process may have changed something.
            let _ = tokio::time::timeout(POLL, changes.changed()).await;
        }
    }

    /// Cancels a job and waits until it has stopped.
    pub async fn cancel(&self, id: Uuid) -> Result<JobSnapshot<Subject<K>>, JobError> {
        self.check_sight(id).await?;
        if !self.store().cancel(id).await? {
            return Err(JobError::Finished(K::NAME));
        }
        if let Some(local) = self.local(id) {
            local.cancel.cancel();
        }
        self.changed();
        // Another process sees it with its next heartbeat, or its lease ends.
        self.wait(id, self.shared.settings.lease * 2).await
    }

    /// Deletes a job that has ended, with its results.
    pub async fn delete(&self, id: Uuid) -> Result<(), JobError> {
        self.check_sight(id).await?;
        if self.store().delete_job(id).await? {
            return Ok(());
        }
        self.check_sight(id).await?;
        Err(JobError::Unfinished(K::NAME))
    }

    /// Checks that the client sees a job, which may be damaged.
    async fn check_sight(&self, id: Uuid) -> Result<(), JobError> {
        let owner = self.store().job_owner(K::NAME, id).await?.filter(|owner| self.client.sees(owner));
        owner.map(|_| ()).ok_or(JobError::NotFound(K::NAME))
    }

    /// Takes no more jobs, and waits until those that run here have stopped. In a store that lasts they go on when a process
    /// takes them again; others are cancelled. The log names them.
    pub async fn shutdown(&self) {
        if !self.store().is_durable() {
            self.cancel_all().await;
        }
        self.shared.closing.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    async fn cancel_all(&self) {
        let unfinished = |status| JobQuery { status: Some(status), model: None, after: None, limit: usize::MAX - 1 };
        for status in [JobStatus::Running, JobStatus::Queued] {
            // A store in memory fails only where memory does.
            let Ok(page) = self.list(&unfinished(status)).await else { continue };
            for job in page.jobs {
                let JobSummary { name, total, .. } = job.subject.summary();
                tracing::warn!(job = %job.id, name, status = job.status.name(), done = job.done, total, "{} cancelled: the service ends", K::NAME);
            }
        }
        if let Err(error) = self.store().cancel_all(K::NAME).await {
            tracing::warn!(%error, "{}s cannot be cancelled", K::NAME);
        }
    }

    /// With how much is done by now, where this process runs it.
    fn up_to_date(&self, mut snapshot: JobSnapshot<Subject<K>>) -> JobSnapshot<Subject<K>> {
        if !snapshot.status.is_final()
            && let Some(local) = self.local(snapshot.id)
        {
            let row = &mut snapshot.row;
            (row.done, row.note) = (local.done(), local.note().or(row.note.take()));
        }
        snapshot
    }

    fn local(&self, id: Uuid) -> Option<Arc<LocalRun>> {
        self.running_here().get(&id).map(|(_, local)| Arc::clone(local))
    }

    pub(super) fn running_here(&self) -> MutexGuard<'_, HashMap<Uuid, (ClaimedJob, Arc<LocalRun>)>> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settings(&self) -> &StoreSettings {
        &self.shared.settings
    }

    pub(super) fn closing(&self) -> &CancellationToken {
        &self.shared.closing
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing().is_cancelled()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.tasks.spawn(task);
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Waits until something may be there to be claimed.
    pub(super) async fn woken(&self) {
        self.shared.wake.notified().await;
    }

    /// Tells those who wait that something has changed.
    pub(super) fn changed(&self) {
        self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
        self.shared.wake.notify_one();
    }
}

/// State of a job at one moment, as a client sees it.
#[derive(Clone, Debug)]
pub struct JobSnapshot<S> {
    /// The job as it is stored.
    pub row: JobRow,
    /// Name of its owner, if the client may know it.
    pub owner: Option<String>,
    pub subject: S,
    pub failure: Option<FailureRecord>,
}

impl<S> Deref for JobSnapshot<S> {
    type Target = JobRow;

    fn deref(&self) -> &JobRow {
        &self.row
    }
}

impl<S: DeserializeOwned> JobSnapshot<S> {
    /// Reads a stored job.
    ///
    /// # Errors
    /// [`JobError::Internal`] where it cannot be read.
    fn new(row: JobRow, client: &Principal) -> Result<Self, JobError> {
        let unreadable =
            |error: serde_json::Error| JobError::Internal(format!("job {} as it is stored: {error}", row.id));
        let failure = row.failure.as_deref().map(serde_json::from_str).transpose().map_err(unreadable)?;
        let subject = serde_json::from_str(&row.summary).map_err(unreadable)?;
        Ok(Self { owner: client.visible_name(row.owner.clone()), subject, failure, row })
    }
}

#[cfg(test)]
impl<S: JobSubject> JobSnapshot<S> {
    /// A job without an owner, created at the beginning of 1970.
    pub fn example(subject: S, status: JobStatus) -> Self {
        let row = JobRow {
            id: Uuid::nil(),
            owner: String::new(),
            status,
            summary: String::new(),
            done: 0,
            note: None,
            revision: 1,
            created_at: time::OffsetDateTime::UNIX_EPOCH,
            started_at: None,
            finished_at: None,
            failure: None,
            deadline: None,
        };
        Self { row, owner: None, subject, failure: None }
    }
}

/// Jobs, newest first.
#[derive(Clone, Debug)]
pub struct JobPage<S> {
    pub jobs: Vec<JobSnapshot<S>>,
    /// The last job of this page, damaged or not, if there are more after it.
    pub next: Option<Uuid>,
}
