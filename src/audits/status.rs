//! Where an audit stands.

use super::error::AuditError;
use super::failure_record::FailureRecord;
use super::request::AuditRequest;
use super::totals::SampleTotals;
use crate::store::{JobRow, JobStatus};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// What an audit is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSubject {
    /// What the client calls it; the report does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the model.
    pub model: String,
    /// The labels of the methods.
    pub methods: Vec<String>,
    /// Id of the dataset; none for samples that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// How many samples there are.
    pub total: usize,
    /// How many of them are members, and how many are not; none of either without labels.
    pub members: usize,
    pub non_members: usize,
}

impl AuditSubject {
    /// That of a request.
    pub fn new(request: &AuditRequest, name: Option<String>, dataset: Option<String>, totals: &SampleTotals) -> Self {
        Self {
            name,
            model: request.model.clone(),
            methods: request.methods.iter().map(|method| method.label.to_string()).collect(),
            dataset,
            total: totals.samples,
            members: totals.members,
            non_members: totals.non_members,
        }
    }
}

/// What is known of an audit at one moment.
#[derive(Clone, Debug)]
pub struct AuditSnapshot {
    pub id: Uuid,
    pub subject: AuditSubject,
    pub status: JobStatus,
    /// Samples done.
    pub done: usize,
    /// Grows with each change.
    pub revision: i64,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// Why it failed.
    pub failure: Option<FailureRecord>,
    /// When it must have ended.
    pub deadline: Option<OffsetDateTime>,
}

impl TryFrom<JobRow> for AuditSnapshot {
    type Error = AuditError;

    fn try_from(row: JobRow) -> Result<Self, AuditError> {
        let JobRow { id, status, summary, done, revision, created_at, started_at, finished_at, failure, deadline } =
            row;
        let unreadable =
            |error: serde_json::Error| AuditError::Internal(format!("audit {id} as it is stored: {error}"));
        let failure = failure.map(|failure| serde_json::from_str(&failure)).transpose().map_err(unreadable)?;
        let subject = serde_json::from_str(&summary).map_err(unreadable)?;
        Ok(Self { id, subject, status, done, revision, created_at, started_at, finished_at, failure, deadline })
    }
}
