//! Jobs are claimed and run, one after another in each of a few places, and their ends are stored.

use super::error::JobFailure;
use super::kind::{JobKind, JobRun, JobSubject, JobSummary, LocalRun, Subject, is_started_over};
use super::runner::Jobs;
use crate::retry::Pauses;
use crate::store::{ClaimedJob, JobEnd, JobOutput, StoreError};
use futures::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Claims of a job: one that ends every process that runs it must not end all of them, one after another, for ever.
const MAX_ATTEMPTS: usize = 3;
/// Interval at which progress is written to the store.
const PROGRESS: Duration = Duration::from_millis(500);
/// Longest pause between two polls for jobs that another process gave up.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// Number of renewals of a lease before it would expire.
const RENEWALS: u32 = 3;

/// Length of the pause after a job beside jobs of another client, in multiples of the time that the job took. What is cached takes no
/// turns on a device, so without pauses a client that has the same texts audited again and again would have the processors alone.
const PAUSE: u32 = 2;
/// Maximum length of that pause.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Outcome of the run of a job by this process.
enum RunEnd {
    /// By itself.
    Done(Box<Result<JobOutput, JobFailure>>),
    Cancelled,
    /// The process ends.
    Interrupted,
    /// Its time is over.
    Overdue,
    /// Another process has taken it over.
    Lost,
}

impl<K: JobKind> Jobs<K> {
    /// Takes jobs and runs them, a few at a time, until the service ends.
    pub(super) async fn take_jobs(self) {
        let (places, closing) = (Arc::new(Semaphore::new(K::MOST_RUNNING)), self.closing());
        // Only the waits are cut short: a claim that is under way is awaited, so that what was claimed is run or given back.
        while let Some(Ok(place)) = closing.run_until_cancelled(Arc::clone(&places).acquire_owned()).await {
            let pause = match self.next_job().await {
                Ok(Some(job)) => {
                    let (jobs, local) = (self.clone(), Arc::new(LocalRun::default()));
                    // At once, so that the next claim counts it.
                    self.running_here().insert(job.id, (job.clone(), Arc::clone(&local)));
                    self.spawn(async move {
                        jobs.perform(&job, local).await;
                        drop(place);
                    });
                    continue;
                }
                Ok(None) => LONGEST_LOOK.min(self.settings().lease / 2),
                Err(error) => {
                    tracing::warn!(%error, "no {} can be taken from the store", K::NAME);
                    LONGEST_LOOK
                }
            };
            // A passed time is no error: a lease may be over.
            let look = tokio::time::timeout(pause, self.woken());
            closing.run_until_cancelled(look).await;
        }
    }

    /// Claims the next job, after ending those that nobody should run any more.
    async fn next_job(&self) -> Result<Option<ClaimedJob>, StoreError> {
        let (store, lease) = (self.store(), self.settings().lease);
        // This process must not take its own jobs from itself, however late a renewal is.
        let here: Vec<(ClaimedJob, Arc<LocalRun>)> = self.running_here().values().cloned().collect();
        for (job, local) in here {
            // A claim that is lost is seen by its heartbeat.
            let _ = store.renew(job.id, job.claim, lease, local.done(), local.note().as_deref()).await?;
        }
        store.shorten_leases(lease).await?;
        let failure = JobFailure::abandoned(MAX_ATTEMPTS);
        for id in store.end_abandoned(K::NAME, MAX_ATTEMPTS, &failure.json()).await? {
            let attempts = MAX_ATTEMPTS;
            tracing::error!(job = %id, attempts, "{} failed: every process that ran it ended", K::NAME);
            Self::count("failed");
            self.changed();
        }
        store.claim(K::NAME, lease, MAX_ATTEMPTS, self.saturating_owner().as_deref()).await
    }

    /// Returns the owner that has its share of the places, if one has: half of them, rounded up. As long as there is a place, no two have
    /// theirs. Without names all are those of one client, which may have all.
    fn saturating_owner(&self) -> Option<String> {
        let running = self.running_here();
        let owners = || running.values().map(|(job, _)| &job.owner).filter(|owner| !owner.is_empty());
        let share = K::MOST_RUNNING.div_ceil(2);
        owners().find(|owner| owners().filter(|other| other == owner).count() >= share).cloned()
    }

    /// Returns true if jobs of another client than `owner` run here, or ended so recently that their places are still empty.
    fn others_run_beside(&self, owner: &str) -> bool {
        !owner.is_empty() && self.running_here().values().any(|(job, _)| job.owner != owner)
    }

    /// Runs one job to its end, whatever that is.
    async fn perform(&self, job: &ClaimedJob, local: Arc<LocalRun>) {
        let started = Instant::now();
        self.changed();
        if job.attempts > 1 {
            tracing::info!(job = %job.id, attempts = job.attempts, "{} taken up again", K::NAME);
        }
        let end = self.run_claimed(job, &local).await;
        if is_started_over(job, &local) {
            let before = job.numerics.as_deref();
            tracing::warn!(job = %job.id, before, "{} begun anew: its numbers depend on something else than before", K::NAME);
        }
        self.end(job, &local, end, started).await;
        self.changed();
        if self.others_run_beside(&job.owner) {
            // Its place stays taken, and counts for its owner.
            let pause = tokio::time::sleep((started.elapsed() * PAUSE).min(MAX_PAUSE));
            let _ = self.closing().run_until_cancelled(pause).await;
        }
        self.running_here().remove(&job.id);
        self.changed();
    }

    async fn run_claimed(&self, job: &ClaimedJob, local: &Arc<LocalRun>) -> RunEnd {
        // A panic is the end of this job alone.
        let work = async { self.kind().run(JobRun::read(K::NAME, self.store(), job, local).await?).await };
        let work = AssertUnwindSafe(work).catch_unwind();
        tokio::select! {
            ended = work => {
                let ended = ended.unwrap_or_else(|payload| Err(JobFailure::panicked(&*payload)));
                RunEnd::Done(Box::new(ended))
            }
            end = self.keep_claim(job, local) => end,
            () = local.cancel.cancelled() => RunEnd::Cancelled,
            () = over(job.time_left) => RunEnd::Overdue,
            () = self.closing().cancelled() => {
                if self.store().is_durable() { RunEnd::Interrupted } else { RunEnd::Cancelled }
            }
        }
    }

    /// Renews the claim and notes progress in the store, until the job is not this process's to run any more.
    async fn keep_claim(&self, job: &ClaimedJob, local: &LocalRun) -> RunEnd {
        let lease = self.settings().lease;
        let (mut renewed, mut numerics) = (Instant::now(), job.numerics.clone());
        let mut told = (0, None);
        loop {
            tokio::time::sleep(PROGRESS.min(lease / (2 * RENEWALS))).await;
            let now = (local.done(), local.note());
            if now == told && renewed.elapsed() < lease / RENEWALS {
                continue;
            }
            match self.store().renew(job.id, job.claim, lease, now.0, now.1.as_deref()).await {
                Ok(Ok(true)) => return RunEnd::Cancelled,
                Ok(Ok(false)) => (renewed, told) = (Instant::now(), now),
                Ok(Err(_)) => return RunEnd::Lost,
                Err(error) => tracing::warn!(job = %job.id, %error, "the claim of a job cannot be renewed now"),
            }
            if let Some(known) = local.numerics().filter(|known| Some(known) != numerics.as_ref())
                && self.store().note_numerics(job.id, job.claim, &known).await.is_ok()
            {
                numerics = Some(known);
            }
            self.changed();
        }
    }

    /// Notes in the store how the job ended.
    async fn end(&self, job: &ClaimedJob, local: &LocalRun, end: RunEnd, started: Instant) {
        let mut tokens = None;
        let stored = match end {
            RunEnd::Lost => return tracing::warn!(job = %job.id, "another process has taken over the {}", K::NAME),
            RunEnd::Interrupted => return self.give_back(job, local).await,
            RunEnd::Cancelled => JobEnd::Cancelled,
            RunEnd::Overdue => failed::<K>(job, &JobFailure::overdue()),
            RunEnd::Done(done) => match *done {
                Ok(output) => {
                    tokens = Some(output.tokens);
                    JobEnd::Succeeded(output)
                }
                Err(failure) if failure.ends_process && self.store().is_durable() => {
                    let failure = failure.message;
                    return tracing::error!(job = %job.id, failure, "{} interrupted: another process takes it over", K::NAME);
                }
                Err(failure) => failed::<K>(job, &failure),
            },
        };
        let status = self.finish(job, local, stored).await;
        let subject = subject::<K>(job);
        let JobSummary { model, samples, .. } = subject.summary();
        let (texts, seconds) = (samples.samples, started.elapsed().as_secs_f64());
        tracing::info!(job = %job.id, model, texts, tokens, seconds, status, "{} ended", K::NAME);
        Self::count(status);
    }

    /// Stores the end, however long the store does not answer; the status that came of it.
    async fn finish(&self, job: &ClaimedJob, local: &LocalRun, mut end: JobEnd) -> &'static str {
        let mut pauses = Pauses::default();
        loop {
            let (done, note) = (local.done(), local.note());
            match self.store().finish(job.id, job.claim, done, note.as_deref(), &end).await {
                Ok(Ok(())) => return end.status().name(),
                Ok(Err(lost)) => {
                    tracing::warn!(job = %job.id, "{lost}");
                    return "lost";
                }
                Err(error) => {
                    tracing::error!(job = %job.id, %error, "the end of a job cannot be stored");
                    if !error.is_retryable() || self.is_closing() {
                        return "lost";
                    }
                    if matches!(error, StoreError::Full) {
                        // This takes next to nothing.
                        end = JobEnd::Failed(JobFailure::from(error).json());
                    }
                }
            }
            // The results are kept for as long as the claim is.
            let _ = self.store().renew(job.id, job.claim, self.settings().lease, done, note.as_deref()).await;
            tokio::time::sleep(pauses.next_pause()).await;
        }
    }

    /// Back into the queue, for the next process.
    async fn give_back(&self, job: &ClaimedJob, local: &LocalRun) {
        let (subject, done) = (subject::<K>(job), local.done());
        let JobSummary { model, total, .. } = subject.summary();
        let goes_on = "it goes on when a process takes it again";
        tracing::warn!(job = %job.id, model, done, total, "{} interrupted: {goes_on}", K::NAME);
        if let Err(error) = self.store().release(job.id, job.claim).await {
            tracing::warn!(job = %job.id, %error, "the {} goes on only when its lease has ended", K::NAME);
        }
    }

    pub(super) fn count(status: &'static str) {
        if status != "lost" {
            metrics::counter!(K::COUNTER, "status" => status).increment(1);
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

fn failed<K: JobKind>(job: &ClaimedJob, failure: &JobFailure) -> JobEnd {
    tracing::error!(job = %job.id, error = failure.message, "{} failed", K::NAME);
    JobEnd::Failed(failure.json())
}

/// Summary of the job, for the log.
fn subject<K: JobKind>(job: &ClaimedJob) -> Subject<K> {
    serde_json::from_str(&job.summary).unwrap_or_default()
}
