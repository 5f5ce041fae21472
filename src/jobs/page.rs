//! A part of the list of jobs, newest first.

use super::snapshot::JobSnapshot;
use crate::store::JobStatus;
use uuid::Uuid;

/// Which jobs to list.
#[derive(Clone, Debug)]
pub struct JobQuery {
    /// Only jobs with this status.
    pub status: Option<JobStatus>,
    /// Only those of the model of this id.
    pub model: Option<String>,
    /// Only those older than this one, which may be gone.
    pub after: Option<Uuid>,
    /// Maximum number of jobs in a page.
    pub limit: usize,
}

/// Jobs, newest first.
#[derive(Clone, Debug)]
pub struct JobPage<S> {
    pub jobs: Vec<JobSnapshot<S>>,
    /// The last job of this page, where there are more after it.
    pub next: Option<Uuid>,
}
