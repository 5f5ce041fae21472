//! Jobs are submitted: once, whoever asks twice.

use super::error::JobError;
use super::kind::{JobKind, JobRequest, JobSubject, MAX_UNFINISHED, OWNER_SHARE, Subject, Submission};
use super::runner::{JobSnapshot, Jobs};
use crate::access::{Quota, StoredUsage};
use crate::datasets::SubmittedSamples;
use crate::store::{AdapterName, IdempotencyKey, NewJob, StoreError, Submitted};
use mia::texts::TextDigest;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

impl<K: JobKind> Jobs<K> {
    /// Queues a job, or returns the one that was submitted under the same key. The name of its adapter is taken from then on, and its
    /// tokens count for the client's `quota`, however it ends.
    ///
    /// # Errors
    /// [`JobError`]; [`JobError::NameTaken`] where the model has an adapter of the name, or is to get one.
    pub async fn submit(
        &self,
        job: Submission<K::Request>,
        quota: &Arc<Quota>,
    ) -> Result<JobSnapshot<Subject<K>>, JobError> {
        let store = self.store();
        let storing = quota.begin_storing().await.map_err(StoreError::from)?;
        let totals = job.samples.totals()?;
        let weight = job.request.weight(&totals)?;
        let subject = K::Request::subject(&job, &totals);
        let key = idempotency_key(&job, &subject)?;
        if let Some(key) = &key
            && let Some(known) = store.submitted_under(self.client().name(), &key.key).await?
        {
            return self.repeated(key, &known).await;
        }
        self.check_room().await?;
        let more = if matches!(job.samples, SubmittedSamples::Inline(_)) { totals.text_bytes } else { 0 };
        store.check_room(weight, more).await?;
        if quota.limits_stored() {
            let StoredUsage { bytes, datasets, jobs } = store.usage(self.client().name()).await?;
            quota.check_stored(StoredUsage { bytes: bytes.saturating_add(more), datasets, jobs: jobs + 1 })?;
        }
        let tokens = quota.reserve(job.request.tokens(&totals), Instant::now())?;
        let queued = self.queue(job, subject, weight, key).await;
        if !matches!(queued, Ok((_, true))) {
            tokens.give_back();
        }
        drop(storing);
        queued.map(|(snapshot, _)| snapshot)
    }

    /// Queues a job; returns it, and true unless it was submitted under the same key at the same moment.
    async fn queue(
        &self,
        job: Submission<K::Request>,
        subject: Subject<K>,
        weight: usize,
        key: Option<IdempotencyKey>,
    ) -> Result<(JobSnapshot<Subject<K>>, bool), JobError> {
        let store = self.store();
        let id = Uuid::now_v7();
        let (dataset, texts) = job.samples.stored(store, self.client().name()).await?;
        let new = NewJob {
            id,
            owner: self.client().name().to_owned(),
            kind: K::NAME,
            model: subject.summary().model.to_owned(),
            summary: json(&subject)?,
            request: json(&job.request)?,
            dataset,
            texts,
            weight,
            key,
            timeout: job.timeout,
            adapter: job.request.adapter(),
        };
        let submitted = store.submit(&new).await;
        if matches!(job.samples, SubmittedSamples::Inline(_)) && !matches!(submitted, Ok(Submitted::Queued)) {
            // Nobody uses them; what cannot be dropped now is dropped as abandoned.
            let _ = store.drop_dataset(dataset).await;
        }
        match (submitted?, new.key, new.adapter) {
            (known @ Submitted::Known { .. }, Some(key), _) => Ok((self.repeated(&key, &known).await?, false)),
            (Submitted::NameTaken, _, Some(AdapterName { model, name })) => Err(JobError::NameTaken { model, name }),
            _ => {
                self.changed();
                Ok((self.get(id).await?, true))
            }
        }
    }

    /// The job that was submitted under a client's key.
    pub async fn submitted_under(&self, client_key: &str) -> Result<Option<JobSnapshot<Subject<K>>>, JobError> {
        match self.store().submitted_under(self.client().name(), &stored_key(client_key)?).await? {
            Some(Submitted::Known { job, .. }) => Ok(Some(self.get(job).await.map_err(|error| match error {
                // The key is that of a job of another kind.
                JobError::NotFound(_) => JobError::KeyReused,
                error => error,
            })?)),
            _ => Ok(None),
        }
    }

    async fn check_room(&self) -> Result<(), JobError> {
        if self.is_closing() {
            return Err(JobError::Draining);
        }
        let limit = MAX_UNFINISHED[usize::from(self.store().is_durable())];
        let owner = self.client().name();
        let (unfinished, owned) = self.store().unfinished(K::NAME, owner).await?;
        let share = limit / OWNER_SHARE;
        if unfinished >= limit {
            Err(JobError::Full(K::NAME, limit))
        } else if !owner.is_empty() && owned >= share {
            // Without names all are those of one client, which may have all.
            Err(JobError::OwnerFull(K::NAME, share))
        } else {
            Ok(())
        }
    }

    /// The job that was submitted under the key before.
    async fn repeated(&self, key: &IdempotencyKey, known: &Submitted) -> Result<JobSnapshot<Subject<K>>, JobError> {
        match known {
            Submitted::Known { job, digest } if *digest == key.digest => self.get(*job).await,
            _ => Err(JobError::KeyReused),
        }
    }
}

/// The client's key, with a digest of all that is submitted.
fn idempotency_key<R: Serialize>(
    job: &Submission<R>,
    subject: &impl JobSubject,
) -> Result<Option<IdempotencyKey>, JobError> {
    let Some(key) = &job.idempotency_key else { return Ok(None) };
    let samples = job.samples.fingerprint()?;
    let name = subject.summary().name.unwrap_or_default();
    let timeout = job.timeout.map(|timeout| timeout.as_secs().to_string());
    let request = json(&job.request)?;
    let digest = TextDigest::of_parts([&*request, name, &*samples].into_iter().chain(timeout.as_deref()));
    Ok(Some(IdempotencyKey { key: stored_key(key)?, digest: json(&digest)? }))
}

/// The client's key as it is stored.
fn stored_key(key: &str) -> Result<String, JobError> {
    json(&TextDigest::new(key))
}

fn json(value: &impl Serialize) -> Result<String, JobError> {
    serde_json::to_string(value).map_err(|error| JobError::Internal(error.to_string()))
}
