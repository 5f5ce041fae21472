//! How audits are taken from the store, run and ended.

use super::local_run::LocalRun;
use super::{AuditWork, Audits, KIND};
use crate::audits::error::AuditFailure;
use crate::audits::failure_record::FailureRecord;
use crate::audits::request::AuditRequest;
use crate::audits::retry::{Pauses, until_final};
use crate::audits::run::{AuditOutcome, RunEvent};
use crate::audits::sample_blocks::SampleBlocks;
use crate::audits::status::AuditSubject;
use crate::audits::stored_scores::encode;
use crate::statistics::{Warning, WarningCode};
use crate::store::{ClaimedJob, JobEnd, StoreError};
use crate::telemetry::names;
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Audits that a process runs at once: enough that a short one seldom waits for a long one, few enough that the first ones finish
/// first. They share the engine's window of batch work, so more of them would not be faster.
pub const MAX_RUNNING: usize = 4;
/// Claims of an audit: one that ends every process that runs it must not end all of them, one after another, for ever.
const MAX_ATTEMPTS: usize = 3;
/// How often the store is told how many samples are done.
const PROGRESS: Duration = Duration::from_millis(500);
/// The longest pause between two looks for audits that another process gave up.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// A lease is renewed so many times before it ends.
const RENEWALS: u32 = 3;

/// How the run of an audit by this process came to its end.
enum RunEnd {
    /// By itself.
    Done(Box<Result<AuditOutcome, AuditFailure>>),
    Cancelled,
    /// The process ends.
    Interrupted,
    /// Its time is over.
    Overdue,
    /// Another process has taken it over.
    Lost,
}

impl Audits {
    /// Takes audits and runs them, a few at a time, until the service ends.
    pub(super) async fn take_audits(self) {
        let (places, closing) = (Arc::new(Semaphore::new(MAX_RUNNING)), &self.shared.closing);
        // Only the waits are cut short: a claim that is under way is awaited, so that what was claimed is run or given back.
        while let Some(Ok(place)) = closing.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
            let pause = match self.next_audit().await {
                Ok(Some(job)) => {
                    let audits = self.clone();
                    self.shared.tasks.spawn(async move {
                        audits.perform(&job).await;
                        drop(place);
                    });
                    continue;
                }
                Ok(None) => LONGEST_LOOK.min(self.shared.settings.lease / 2),
                Err(error) => {
                    tracing::warn!(%error, "no audit can be taken from the store");
                    LONGEST_LOOK
                }
            };
            // A passed time is no error: a lease may be over.
            let look = tokio::time::timeout(pause, self.shared.wake.notified());
            closing.run_until_cancelled(look).await;
        }
    }

    /// Claims the next audit, after ending those that nobody should run any more.
    async fn next_audit(&self) -> Result<Option<ClaimedJob>, StoreError> {
        // What this process runs it must not take from itself, however late a renewal is.
        let here: Vec<(ClaimedJob, Arc<LocalRun>)> = self.running_here().values().cloned().collect();
        for (job, local) in here {
            // A claim that is lost is seen by its heartbeat.
            let _ = self.store().renew(job.id, job.claim, self.shared.settings.lease, local.done()).await?;
        }
        self.store().shorten_leases(self.shared.settings.lease).await?;
        let failure = json_record(&AuditFailure::Abandoned(MAX_ATTEMPTS));
        for id in self.store().end_abandoned(MAX_ATTEMPTS, &failure).await? {
            tracing::error!(audit = %id, attempts = MAX_ATTEMPTS, "audit failed: every process that ran it ended");
            count("failed");
            self.changed();
        }
        self.store().claim(KIND, self.shared.settings.lease, MAX_ATTEMPTS).await
    }

    /// Runs one audit to its end, whatever that is.
    async fn perform(&self, job: &ClaimedJob) {
        let (local, started) = (Arc::new(LocalRun::default()), Instant::now());
        self.running_here().insert(job.id, (job.clone(), Arc::clone(&local)));
        self.changed();
        if job.attempts > 1 {
            tracing::info!(audit = %job.id, attempts = job.attempts, "audit taken up again");
        }
        let end = self.run_claimed(job, &local).await;
        self.end(job, &local, end, started).await;
        self.running_here().remove(&job.id);
        self.changed();
    }

    async fn run_claimed(&self, job: &ClaimedJob, local: &Arc<LocalRun>) -> RunEnd {
        // A panic is the end of this audit alone.
        let work = AssertUnwindSafe(self.run_stored(job, local)).catch_unwind();
        tokio::select! {
            ended = work => {
                let ended = ended.unwrap_or_else(|payload| Err(AuditFailure::panicked(&*payload)));
                RunEnd::Done(Box::new(ended))
            }
            end = self.keep_claim(job, local) => end,
            () = local.cancel.cancelled() => RunEnd::Cancelled,
            () = over(job.time_left) => RunEnd::Overdue,
            () = self.shared.closing.cancelled() => {
                if self.store().is_durable() { RunEnd::Interrupted } else { RunEnd::Cancelled }
            }
        }
    }

    /// Runs the request as it is stored.
    async fn run_stored(&self, job: &ClaimedJob, local: &Arc<LocalRun>) -> Result<AuditOutcome, AuditFailure> {
        let request: AuditRequest = serde_json::from_str(&job.request)
            .map_err(|error| StoreError::Damaged(format!("the request of audit {}: {error}", job.id)))?;
        let key = job.dataset.ok_or(AuditFailure::DatasetGone)?;
        let dataset = until_final(|| async { Ok(self.store().dataset_of_job(key).await?) }).await?;
        let dataset = dataset.filter(|dataset| dataset.has_texts).ok_or(AuditFailure::DatasetGone)?;
        let samples = SampleBlocks::Stored { store: self.store().clone(), dataset: dataset.key };
        let noted = Arc::clone(local);
        let progress = Box::new(move |event: RunEvent| noted.note(event));
        let work = AuditWork { request: Arc::new(request), samples, resumed: job.numerics.is_some(), progress };
        let mut outcome = (self.shared.work)(work).await?;
        if let Some(before) = &job.numerics
            && local.numerics().is_some_and(|now| now != *before)
        {
            tracing::warn!(audit = %job.id, before, "audit begun anew: its numbers come from something else than before");
            let detail = "the audit was interrupted, and begun anew, since the program, the processor, the device or the files of a \
                          model were others than before; all scores come from what provenance names";
            let warning = Warning { code: WarningCode::StartedOver, detail: detail.to_owned() };
            outcome.report.warnings.push(warning);
        }
        Ok(outcome)
    }

    /// Renews the claim and notes progress in the store, until the audit is not this process's to run any more.
    async fn keep_claim(&self, job: &ClaimedJob, local: &LocalRun) -> RunEnd {
        let lease = self.shared.settings.lease;
        let (mut renewed, mut done, mut numerics) = (Instant::now(), 0, job.numerics.clone());
        loop {
            tokio::time::sleep(PROGRESS.min(lease / (2 * RENEWALS))).await;
            let now = local.done();
            if now == done && renewed.elapsed() < lease / RENEWALS {
                continue;
            }
            match self.store().renew(job.id, job.claim, lease, now).await {
                Ok(Ok(true)) => return RunEnd::Cancelled,
                Ok(Ok(false)) => (renewed, done) = (Instant::now(), now),
                Ok(Err(_)) => return RunEnd::Lost,
                Err(error) => tracing::warn!(audit = %job.id, %error, "the claim of an audit cannot be renewed now"),
            }
            if let Some(known) = local.numerics().filter(|known| Some(known) != numerics.as_ref())
                && self.store().note_numerics(job.id, job.claim, &known).await.is_ok()
            {
                numerics = Some(known);
            }
            self.changed();
        }
    }

    /// Notes in the store how the audit ended.
    async fn end(&self, job: &ClaimedJob, local: &LocalRun, end: RunEnd, started: Instant) {
        let mut tokens = None;
        let stored = match end {
            RunEnd::Lost => return tracing::warn!(audit = %job.id, "another process has taken over the audit"),
            RunEnd::Interrupted => return self.give_back(job, local).await,
            RunEnd::Cancelled => JobEnd::Cancelled,
            RunEnd::Overdue => failed(job, &AuditFailure::Overdue),
            RunEnd::Done(done) => match *done {
                Ok(outcome) => {
                    tokens = Some(outcome.results.usage.tokens);
                    encoded(outcome).await
                }
                Err(failure) if failure.ends_process() && self.store().is_durable() => {
                    return tracing::error!(audit = %job.id, %failure, "audit interrupted: another process takes it over");
                }
                Err(failure) => failed(job, &failure),
            },
        };
        let status = self.finish(job, local, stored).await;
        let (model, texts) = subject(job);
        let seconds = started.elapsed().as_secs_f64();
        tracing::info!(audit = %job.id, model, texts, tokens, seconds, status, "audit ended");
        count(status);
    }

    /// Stores the end, however long the store does not answer; the status that came of it.
    async fn finish(&self, job: &ClaimedJob, local: &LocalRun, mut end: JobEnd) -> &'static str {
        let mut pauses = Pauses::default();
        loop {
            match self.store().finish(job.id, job.claim, local.done(), &end).await {
                Ok(Ok(())) => return end.status().name(),
                Ok(Err(lost)) => {
                    tracing::warn!(audit = %job.id, "{lost}");
                    return "lost";
                }
                Err(error) => {
                    tracing::error!(audit = %job.id, %error, "the end of an audit cannot be stored");
                    if !error.is_retryable() || self.shared.closing.is_cancelled() {
                        return "lost";
                    }
                    if matches!(error, StoreError::Full) {
                        // This takes next to nothing.
                        end = JobEnd::Failed(json_record(&AuditFailure::Store(error)));
                    }
                }
            }
            // The results are kept for as long as the claim is.
            let _ = self.store().renew(job.id, job.claim, self.shared.settings.lease, local.done()).await;
            tokio::time::sleep(pauses.next_pause()).await;
        }
    }

    /// Back into the queue, for the next process.
    async fn give_back(&self, job: &ClaimedJob, local: &LocalRun) {
        let (model, total) = subject(job);
        let done = local.done();
        tracing::warn!(audit = %job.id, model, done, total, "audit interrupted: it goes on when a process takes it again");
        if let Err(error) = self.store().release(job.id, job.claim).await {
            tracing::warn!(audit = %job.id, %error, "the audit goes on only when its lease has ended");
        }
    }
}

/// Returns when so much time has passed; never where there is no limit.
async fn over(time_left: Option<Duration>) {
    match time_left {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

fn failed(job: &ClaimedJob, failure: &AuditFailure) -> JobEnd {
    tracing::error!(audit = %job.id, error = %failure, "audit failed");
    JobEnd::Failed(json_record(failure))
}

/// The outcome as it is stored. Megabytes of JSON are no work for the async runtime's threads.
async fn encoded(outcome: AuditOutcome) -> JobEnd {
    let encoding = tokio::task::spawn_blocking(move || {
        let (header, scores) = encode(&outcome.results)?;
        Ok::<_, serde_json::Error>(JobEnd::Succeeded {
            report: serde_json::to_string(&outcome.report)?,
            header,
            scores,
        })
    });
    let failed = |why: String| JobEnd::Failed(json_record(&AuditFailure::Panicked(why)));
    match encoding.await {
        Ok(Ok(end)) => end,
        Ok(Err(error)) => failed(error.to_string()),
        Err(error) => failed(error.to_string()),
    }
}

pub(super) fn json_record(failure: &AuditFailure) -> String {
    // A record of texts has a form as JSON; were it otherwise, the log has the failure.
    serde_json::to_string(&FailureRecord::from(failure))
        .unwrap_or_else(|_| r#"{"kind":"internal","detail":"?"}"#.to_owned())
}

/// Model and number of texts, for the log.
fn subject(job: &ClaimedJob) -> (String, usize) {
    let subject = serde_json::from_str::<AuditSubject>(&job.summary).ok();
    subject.map_or_else(Default::default, |subject| (subject.model, subject.total))
}

pub(super) fn count(status: &'static str) {
    if status != "lost" {
        metrics::counter!(names::AUDITS, "status" => status).increment(1);
    }
}
