//! Snapshots of jobs.

use super::error::JobError;
use super::failure::FailureRecord;
use crate::store::{JobRow, JobStatus, Principal};
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use uuid::Uuid;

/// State of a job at one moment.
#[derive(Clone, Debug)]
pub struct JobSnapshot<S> {
    pub id: Uuid,
    /// The name of its owner, where the client that asks may know it.
    pub owner: Option<String>,
    pub subject: S,
    pub status: JobStatus,
    /// Parts of the work that are done.
    pub done: usize,
    /// Note of its run besides that, as JSON.
    pub note: Option<String>,
    /// Grows with each change.
    pub revision: i64,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    pub failure: Option<FailureRecord>,
    /// When it must have ended.
    pub deadline: Option<OffsetDateTime>,
}

impl<S: DeserializeOwned> JobSnapshot<S> {
    /// Snapshot of a stored job as a client sees it.
    ///
    /// # Errors
    /// [`JobError::Internal`] where it cannot be read.
    pub(super) fn new(row: JobRow, client: &Principal) -> Result<Self, JobError> {
        let JobRow {
            id,
            status,
            summary,
            done,
            note,
            revision,
            created_at,
            started_at,
            finished_at,
            failure,
            deadline,
            owner,
        } = row;
        let unreadable = |error: serde_json::Error| JobError::Internal(format!("job {id} as it is stored: {error}"));
        let failure = failure.map(|failure| serde_json::from_str(&failure)).transpose().map_err(unreadable)?;
        let subject = serde_json::from_str(&summary).map_err(unreadable)?;
        Ok(Self {
            id,
            owner: client.visible_name(owner),
            subject,
            status,
            done,
            note,
            revision,
            created_at,
            started_at,
            finished_at,
            failure,
            deadline,
        })
    }
}
