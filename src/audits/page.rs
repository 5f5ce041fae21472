//! A part of the list of audits, newest first.

use super::status::AuditSnapshot;
use crate::store::JobStatus;
use uuid::Uuid;

/// Which audits to list.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    /// Only those that stand so.
    pub status: Option<JobStatus>,
    /// Only those of the model of this id.
    pub model: Option<String>,
    /// Only those older than this one, which may be gone.
    pub after: Option<Uuid>,
    /// The most audits of a page.
    pub limit: usize,
}

/// Audits, newest first.
#[derive(Clone, Debug)]
pub struct AuditPage {
    pub audits: Vec<AuditSnapshot>,
    /// The last audit of this page, where there are more after it.
    pub next: Option<Uuid>,
}
