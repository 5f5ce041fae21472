//! Audits are submitted.

use super::Audits;
use crate::audits::error::AuditError;
use crate::audits::jobs::AuditSnapshot;
use crate::audits::limits::check_cost;
use crate::audits::request::AuditRequest;
use crate::audits::subject::AuditSubject;
use crate::datasets::SubmittedSamples;
use crate::jobs::{JobError, NewSubmission};
use std::time::Duration;

/// An audit as it is submitted.
#[derive(Clone, Debug)]
pub struct NewAudit {
    pub request: AuditRequest,
    /// What the client calls it.
    pub name: Option<String>,
    pub samples: SubmittedSamples,
    /// What the client calls this submission, so that it can send it again.
    pub idempotency_key: Option<String>,
    /// How long after its submission it must have ended.
    pub timeout: Option<Duration>,
}

impl Audits {
    /// Accepts an audit, which runs as soon as it is its turn; or finds the one that was submitted under the same key.
    ///
    /// # Errors
    /// Those of `check_cost`, or [`AuditError::Job`].
    pub async fn submit(&self, audit: NewAudit) -> Result<AuditSnapshot, AuditError> {
        let totals = audit.samples.totals().map_err(JobError::from)?;
        let weight = check_cost(&audit.request, &totals)?;
        let NewAudit { request, name, samples, idempotency_key, timeout } = audit;
        let subject = AuditSubject::new(&request, name, samples.dataset_id(), &totals);
        let job = NewSubmission { subject, request, samples, weight, adapter: None, idempotency_key, timeout };
        Ok(self.enqueue(job).await?)
    }
}
