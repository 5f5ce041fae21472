//! How an audit comes into the store.

use super::{Audits, KIND};
use crate::audits::dataset_writer::{DatasetEncoder, DatasetWriter};
use crate::audits::error::AuditError;
use crate::audits::limits::check_cost;
use crate::audits::request::AuditRequest;
use crate::audits::sample::Sample;
use crate::audits::status::{AuditSnapshot, AuditSubject};
use crate::audits::text_digest::TextDigest;
use crate::audits::totals::SampleTotals;
use crate::store::{DatasetKey, DatasetRow, IdempotencyKey, NewJob, Submitted};
use std::time::Duration;
use uuid::Uuid;

/// Audits that may be unfinished at once in memory, where each holds its samples, and in a store that lasts.
pub const MAX_UNFINISHED: [usize; 2] = [64, 1_000];

/// An audit as it is submitted.
#[derive(Clone, Debug)]
pub struct NewAudit {
    pub request: AuditRequest,
    /// What the client calls it.
    pub name: Option<String>,
    pub samples: AuditSamples,
    /// What the client calls this submission, so that it can send it again.
    pub idempotency_key: Option<String>,
    /// How long after its submission it must have ended.
    pub timeout: Option<Duration>,
}

/// The samples of an audit.
#[derive(Clone, Debug)]
pub enum AuditSamples {
    /// They come along, and are deleted with the audit.
    Inline(Vec<Sample>),
    /// Those of the dataset.
    Dataset(DatasetRow),
}

impl AuditSamples {
    /// What there is to say of them as a whole.
    ///
    /// # Errors
    /// [`AuditError::Internal`] where a dataset has another description.
    pub fn totals(&self) -> Result<SampleTotals, AuditError> {
        match self {
            Self::Inline(samples) => Ok(SampleTotals::count(samples)),
            Self::Dataset(dataset) => serde_json::from_str(&dataset.description)
                .map_err(|error| AuditError::Internal(format!("a dataset as it is stored: {error}"))),
        }
    }

    fn dataset_id(&self) -> Option<String> {
        match self {
            Self::Inline(_) => None,
            Self::Dataset(dataset) => dataset.id.clone(),
        }
    }
}

impl Audits {
    /// Accepts an audit, which runs as soon as it is its turn; or finds the one that was submitted under the same key.
    ///
    /// # Errors
    /// Those of `check_cost`, [`AuditError::Full`], [`AuditError::Draining`], [`AuditError::KeyReused`],
    /// [`AuditError::TextsGone`] or [`AuditError::Store`].
    pub async fn submit(&self, audit: NewAudit) -> Result<AuditSnapshot, AuditError> {
        let store = self.store();
        let totals = audit.samples.totals()?;
        let weight = check_cost(&audit.request, &totals)?;
        let key = idempotency_key(&audit)?;
        if let Some(key) = &key
            && let Some(known) = store.submitted_under(&key.key).await?
        {
            return self.repeated(key, &known).await;
        }
        self.check_room().await?;
        let NewAudit { request, name, samples, timeout, .. } = audit;
        let id = Uuid::now_v7();
        let subject = AuditSubject::new(&request, name, samples.dataset_id(), &totals);
        let new_samples = matches!(samples, AuditSamples::Inline(_));
        let dataset = self.stored(samples).await?;
        let job = NewJob {
            id,
            kind: KIND,
            model: request.model.clone(),
            summary: json(&subject)?,
            request: json(&request)?,
            dataset,
            weight,
            key,
            timeout,
        };
        let submitted = store.submit(&job).await;
        if new_samples && !matches!(submitted, Ok(Submitted::Queued)) {
            // Nobody uses them; what cannot be dropped now is dropped as abandoned.
            let _ = store.drop_dataset(dataset).await;
        }
        match (submitted?, &job.key) {
            (known @ Submitted::Known { .. }, Some(key)) => self.repeated(key, &known).await,
            _ => {
                self.changed();
                self.get(id).await
            }
        }
    }

    /// What stands in for a dataset that is gone, where this key is that of an audit of it: enough to see whether the same is
    /// submitted again, which gives that audit.
    ///
    /// # Errors
    /// [`AuditError::KeyReused`] where the key is that of another audit, or [`AuditError::Store`].
    pub async fn dataset_of_earlier(&self, client_key: &str, dataset: &str) -> Result<Option<DatasetRow>, AuditError> {
        let known = self.store().submitted_under(&stored_key(client_key)?).await?;
        let Some(Submitted::Known { job, .. }) = known else { return Ok(None) };
        let audit = self.get(job).await?;
        let AuditSubject { dataset: earlier, total, members, non_members, .. } = audit.subject;
        if earlier.as_deref() != Some(dataset) {
            return Err(AuditError::KeyReused);
        }
        // What is not known any more was good enough then.
        let totals = SampleTotals {
            samples: total,
            members,
            non_members,
            groups: 1,
            grouped: total,
            with_neighbors: total,
            ..SampleTotals::default()
        };
        Ok(Some(DatasetRow {
            key: DatasetKey::nil(),
            id: earlier,
            description: json(&totals)?,
            blocks: 0,
            retain: false,
            has_texts: false,
            created_at: audit.created_at,
        }))
    }

    async fn check_room(&self) -> Result<(), AuditError> {
        if self.shared.closing.is_cancelled() {
            return Err(AuditError::Draining);
        }
        let limit = MAX_UNFINISHED[usize::from(self.store().is_durable())];
        let unfinished = self.store().unfinished().await?;
        if unfinished >= limit { Err(AuditError::Full(limit)) } else { Ok(()) }
    }

    /// The audit that was submitted under the key before.
    async fn repeated(&self, key: &IdempotencyKey, known: &Submitted) -> Result<AuditSnapshot, AuditError> {
        match known {
            Submitted::Known { job, digest } if *digest == key.digest => self.get(*job).await,
            _ => Err(AuditError::KeyReused),
        }
    }

    /// The key under which the samples are in the store.
    async fn stored(&self, samples: AuditSamples) -> Result<DatasetKey, AuditError> {
        let samples = match samples {
            AuditSamples::Inline(samples) => samples,
            AuditSamples::Dataset(dataset) if dataset.has_texts => return Ok(dataset.key),
            AuditSamples::Dataset(_) => return Err(AuditError::TextsGone),
        };
        let mut writer = DatasetWriter::begin(self.store(), true).await?;
        let mut encoder = DatasetEncoder::default();
        for sample in &samples {
            if let Some(block) = encoder.add(sample)? {
                writer.write(&block).await?;
            }
        }
        let encoded = encoder.finish();
        if let Some(block) = &encoded.rest {
            writer.write(block).await?;
        }
        writer.complete(None, &encoded.totals).await
    }
}

/// The client's key, with a digest of all that is submitted.
fn idempotency_key(audit: &NewAudit) -> Result<Option<IdempotencyKey>, AuditError> {
    let Some(key) = &audit.idempotency_key else { return Ok(None) };
    let samples = match &audit.samples {
        AuditSamples::Inline(samples) => json(samples)?,
        AuditSamples::Dataset(dataset) => dataset.id.clone().unwrap_or_default(),
    };
    let name = audit.name.clone().unwrap_or_default();
    let timeout = audit.timeout.map(|timeout| timeout.as_secs().to_string());
    let request = json(&audit.request)?;
    let digest = TextDigest::of_parts([&*request, &*name, &*samples].into_iter().chain(timeout.as_deref()));
    Ok(Some(IdempotencyKey { key: stored_key(key)?, digest: json(&digest)? }))
}

/// The client's key as it is stored.
fn stored_key(key: &str) -> Result<String, AuditError> {
    json(&TextDigest::new(key))
}

fn json(value: &impl serde::Serialize) -> Result<String, AuditError> {
    serde_json::to_string(value).map_err(|error| AuditError::Internal(error.to_string()))
}
