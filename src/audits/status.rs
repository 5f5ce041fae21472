//! Where an audit stands.

use super::error::AuditFailure;
use super::request::AuditRequest;
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
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

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

/// What an audit is about.
#[derive(Clone, Debug, Default)]
pub struct AuditSubject {
    /// What the client calls it; the report does not depend on it.
    pub name: Option<String>,
    /// Id of the model.
    pub model: String,
    /// The labels of the methods.
    pub methods: Vec<String>,
    /// How many samples there are.
    pub total: usize,
    /// How many of them are members, and how many are not; none of either without labels.
    pub members: usize,
    pub non_members: usize,
}

impl AuditSubject {
    /// That of a request.
    pub fn new(request: &AuditRequest, name: Option<String>) -> Self {
        let count = |member| request.samples.iter().filter(|sample| sample.is_member() == Some(member)).count();
        Self {
            name,
            model: request.model.clone(),
            methods: request.methods.iter().map(|method| method.label.to_string()).collect(),
            total: request.samples.len(),
            members: count(true),
            non_members: count(false),
        }
    }
}

/// What is known of an audit at one moment.
#[derive(Clone, Debug)]
pub struct AuditSnapshot {
    pub id: Uuid,
    pub subject: Arc<AuditSubject>,
    pub status: AuditStatus,
    /// Samples done.
    pub done: usize,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// Why it failed.
    pub error: Option<Arc<AuditFailure>>,
    /// What came of it.
    pub outcome: Option<Arc<AuditOutcome>>,
}

impl AuditSnapshot {
    /// A new audit, queued now.
    pub fn new(subject: Arc<AuditSubject>) -> Self {
        Self {
            id: Uuid::now_v7(),
            subject,
            status: AuditStatus::Queued,
            done: 0,
            created_at: OffsetDateTime::now_utc(),
            started_at: None,
            finished_at: None,
            error: None,
            outcome: None,
        }
    }
}
