//! The audits of a service: kept in the store, taken from it a few at a time, asked for, cancelled, deleted.
//!
//! The row of an audit in the store is the truth. Each process claims audits there and runs them; `local_run.rs` is what one
//! process knows of an audit that it runs.

mod local_run;
mod submission;
mod upkeep;
mod work;

use super::error::{AuditError, AuditFailure};
use super::page::{AuditFilter, AuditPage};
use super::request::AuditRequest;
use super::run::{AuditOutcome, RunEvent, run};
use super::sample_blocks::SampleBlocks;
use super::status::AuditSnapshot;
use super::stored_scores::StoredScores;
use crate::config::StoreSettings;
use crate::scorer::Scorer;
use crate::store::{ClaimedJob, JobFilter, Store};
use futures::FutureExt;
use futures::future::BoxFuture;
use local_run::LocalRun;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use submission::{AuditSamples, NewAudit};

/// Audits are jobs of this kind.
const KIND: &str = "audit";
/// How often a wait looks whether another process has changed something.
const POLL: Duration = Duration::from_secs(1);

/// What there is to run.
struct AuditWork {
    request: Arc<AuditRequest>,
    samples: SampleBlocks,
    /// Whether it was begun before, and samples may have been scored then.
    resumed: bool,
    /// Is told how far it is.
    progress: Box<dyn Fn(RunEvent) + Send + Sync>,
}

/// Runs an audit.
type RunAudit = dyn Fn(AuditWork) -> BoxFuture<'static, RunResult> + Send + Sync;
type RunResult = Result<AuditOutcome, AuditFailure>;

/// All audits; cheap to clone.
#[derive(Clone)]
pub struct Audits {
    shared: Arc<RunnerState>,
}

struct RunnerState {
    store: Store,
    settings: StoreSettings,
    work: Box<RunAudit>,
    /// The audits that this process runs.
    running: Mutex<HashMap<Uuid, (ClaimedJob, Arc<LocalRun>)>>,
    /// Changes with every change of an audit by this process.
    changes: watch::Sender<u64>,
    /// Something may be there to be claimed.
    wake: Notify,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Audits {
    /// The audits in a store, run by this scorer from now on.
    pub fn start(scorer: Scorer, store: Store, settings: StoreSettings) -> Self {
        Self::running(store, settings, move |AuditWork { request, samples, resumed, progress }| {
            let scorer = scorer.clone();
            let work = async move {
                // What is scored stays on disk until the audit has ended, so that to run it again costs no forward pass.
                let _hold = scorer.engine().hold_statistics(resumed);
                run(request, &samples, &scorer, progress).await
            };
            work.boxed()
        })
    }

    fn running(
        store: Store,
        settings: StoreSettings,
        work: impl Fn(AuditWork) -> BoxFuture<'static, RunResult> + Send + Sync + 'static,
    ) -> Self {
        let audits = Self {
            shared: Arc::new(RunnerState {
                store,
                settings,
                work: Box::new(work),
                running: Mutex::default(),
                changes: watch::Sender::new(0),
                wake: Notify::new(),
                closing: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
        };
        audits.shared.tasks.spawn(audits.clone().take_audits());
        audits.shared.tasks.spawn(audits.clone().keep_up());
        audits.shared.tasks.spawn(audits.clone().watch_deadlines());
        audits
    }

    /// The store that they are in.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// An audit as it stands.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Store`].
    pub async fn get(&self, id: Uuid) -> Result<AuditSnapshot, AuditError> {
        let row = self.shared.store.job(id).await?.ok_or(AuditError::NotFound)?;
        Ok(self.up_to_date(row.try_into()?))
    }

    /// The report of an audit, as JSON; none until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::Store`].
    pub async fn report(&self, id: Uuid) -> Result<Option<String>, AuditError> {
        Ok(self.shared.store.report(id).await?)
    }

    /// The scores of an audit; none until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Store`].
    pub async fn scores(&self, id: Uuid) -> Result<Option<StoredScores>, AuditError> {
        StoredScores::open(&self.shared.store, id).await
    }

    /// Some audits, newest first.
    ///
    /// # Errors
    /// [`AuditError::Store`].
    pub async fn list(&self, filter: &AuditFilter) -> Result<AuditPage, AuditError> {
        let AuditFilter { status, model, after, limit } = filter.clone();
        let jobs = JobFilter { kind: KIND, status, model, after, limit: limit.saturating_add(1) };
        let rows = self.shared.store.jobs(&jobs).await?;
        let has_more = rows.len() > limit;
        let audits = rows.into_iter().take(limit).map(|row| Ok(self.up_to_date(row.try_into()?)));
        let audits: Vec<AuditSnapshot> = audits.collect::<Result<_, AuditError>>()?;
        Ok(AuditPage { next: audits.last().map(|audit| audit.id).filter(|_| has_more), audits })
    }

    /// Waits until an audit is final, or for the given time; gives it as it stands then.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Store`].
    pub async fn wait(&self, id: Uuid, at_most: Duration) -> Result<AuditSnapshot, AuditError> {
        let ended = async {
            let mut snapshot = self.get(id).await?;
            while !snapshot.status.is_final() {
                snapshot = self.next_change(id, &snapshot).await?;
            }
            Ok(snapshot)
        };
        match tokio::time::timeout(at_most, ended).await {
            Ok(ended) => ended,
            Err(_) => self.get(id).await,
        }
    }

    /// Waits until an audit differs from what is known of it: by its status, or by how many samples are done.
    ///
    /// # Errors
    /// [`AuditError::NotFound`] or [`AuditError::Store`].
    pub async fn next_change(&self, id: Uuid, known: &AuditSnapshot) -> Result<AuditSnapshot, AuditError> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let snapshot = self.get(id).await?;
            if snapshot.revision != known.revision {
                return Ok(snapshot);
            }
            // A passed time is no error: another process may have changed something.
            let _ = tokio::time::timeout(POLL, changes.changed()).await;
        }
    }

    /// Cancels an audit and waits until it has stopped.
    ///
    /// # Errors
    /// [`AuditError::NotFound`], [`AuditError::Finished`] or [`AuditError::Store`].
    pub async fn cancel(&self, id: Uuid) -> Result<AuditSnapshot, AuditError> {
        if self.get(id).await?.status.is_final() {
            return Err(AuditError::Finished);
        }
        self.shared.store.cancel(id).await?;
        if let Some(local) = self.local(id) {
            local.cancel.cancel();
        }
        self.changed();
        // Another process sees it with its next heartbeat, or its lease ends.
        self.wait(id, self.shared.settings.lease * 2).await
    }

    /// Deletes an audit that has ended, with its results.
    ///
    /// # Errors
    /// [`AuditError::NotFound`], [`AuditError::Unfinished`] or [`AuditError::Store`].
    pub async fn delete(&self, id: Uuid) -> Result<(), AuditError> {
        if self.shared.store.delete_job(id).await? {
            return Ok(());
        }
        self.get(id).await?;
        Err(AuditError::Unfinished)
    }

    /// Takes no more audits, and waits until those that run here have stopped. In a store that lasts they go on when a process
    /// takes them again; others are cancelled. The log names them.
    pub async fn shutdown(&self) {
        if !self.shared.store.is_durable() {
            self.cancel_all().await;
        }
        self.shared.closing.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    async fn cancel_all(&self) {
        let unfinished = |status| AuditFilter { status: Some(status), model: None, after: None, limit: usize::MAX - 1 };
        for status in [crate::store::JobStatus::Running, crate::store::JobStatus::Queued] {
            // A store in memory fails only where memory does.
            let Ok(page) = self.list(&unfinished(status)).await else { continue };
            for AuditSnapshot { id, subject, status, done, .. } in page.audits {
                let (name, total) = (subject.name.as_deref(), subject.total);
                tracing::warn!(audit = %id, name, status = status.name(), done, total, "audit cancelled: the service ends");
            }
        }
        if let Err(error) = self.shared.store.cancel_all().await {
            tracing::warn!(%error, "audits cannot be cancelled");
        }
    }

    /// With how many samples are done by now, where this process runs it.
    fn up_to_date(&self, snapshot: AuditSnapshot) -> AuditSnapshot {
        match self.local(snapshot.id) {
            Some(local) if !snapshot.status.is_final() => AuditSnapshot { done: local.done(), ..snapshot },
            _ => snapshot,
        }
    }

    fn local(&self, id: Uuid) -> Option<Arc<LocalRun>> {
        self.running_here().get(&id).map(|(_, local)| Arc::clone(local))
    }

    fn running_here(&self) -> MutexGuard<'_, HashMap<Uuid, (ClaimedJob, Arc<LocalRun>)>> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait that something has changed.
    fn changed(&self) {
        self.shared.changes.send_modify(|count| *count = count.wrapping_add(1));
        self.shared.wake.notify_one();
    }
}

#[cfg(test)]
mod tests;
