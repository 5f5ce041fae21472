//! Where an audit stands.

use super::error::AuditFailure;
use super::run::AuditOutcome;
use serde::Serialize;
use std::sync::Arc;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// Where an audit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Status)]
pub enum AuditStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl AuditStatus {
    /// Whether nothing will change any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }

    /// The name that clients and metrics see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is known of an audit at one moment.
#[derive(Clone, Debug)]
pub struct AuditSnapshot {
    pub id: Uuid,
    pub status: AuditStatus,
    /// Samples done, and all of them.
    pub done: usize,
    pub total: usize,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// Why it failed.
    pub error: Option<Arc<AuditFailure>>,
    /// What came of it.
    pub outcome: Option<Arc<AuditOutcome>>,
}

impl AuditSnapshot {
    /// A new audit of `total` samples, queued now.
    pub fn new(total: usize) -> Self {
        Self {
            id: Uuid::now_v7(),
            status: AuditStatus::Queued,
            done: 0,
            total,
            created_at: OffsetDateTime::now_utc(),
            started_at: None,
            finished_at: None,
            error: None,
            outcome: None,
        }
    }
}
