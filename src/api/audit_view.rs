//! How clients see an audit.

use super::problem::{Problem, ProblemBody};
use crate::audits::{AuditOutcome, AuditPage, AuditReport, AuditSnapshot, AuditStatus, AuditSubject};
use serde::{Serialize, Serializer};
use std::sync::Arc;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// An audit as it stands.
#[derive(Serialize, ToSchema)]
pub struct Audit {
    #[serde(flatten)]
    summary: AuditSummary,
    /// What it found; null until it has succeeded.
    #[serde(serialize_with = "report")]
    #[schema(value_type = Option<AuditReport>)]
    results: Option<Arc<AuditOutcome>>,
}

/// An audit without its results.
#[derive(Serialize, ToSchema)]
pub struct AuditSummary {
    #[schema(examples("01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87"))]
    id: String,
    /// What the client called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Id of the model.
    #[schema(examples("demo"))]
    model: String,
    /// The labels of the methods.
    methods: Vec<String>,
    samples: SampleTally,
    status: AuditStatus,
    progress: AuditProgress,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    started_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
    /// Why it failed.
    error: Option<ProblemBody>,
}

/// How many samples an audit has.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SampleTally {
    /// All samples.
    total: usize,
    /// Those that are known to be in the training data; 0 without labels.
    members: usize,
    /// Those that are known not to be; 0 without labels.
    non_members: usize,
}

/// How far an audit is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Progress)]
pub struct AuditProgress {
    /// Samples done.
    done: usize,
    /// All samples.
    total: usize,
}

/// Audits, newest first.
#[derive(Serialize, ToSchema)]
pub struct AuditList {
    audits: Vec<AuditSummary>,
    /// Where there are more: the value of `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Audit {
    /// The audit for the request of this id.
    pub fn new(snapshot: AuditSnapshot, request_id: &str) -> Self {
        Self { results: snapshot.outcome.clone(), summary: AuditSummary::new(&snapshot, request_id) }
    }
}

impl AuditSummary {
    fn new(snapshot: &AuditSnapshot, request_id: &str) -> Self {
        let error = |cause| Problem::from(cause).body(&location(snapshot.id), request_id);
        let AuditSubject { name, model, methods, total, members, non_members } = (*snapshot.subject).clone();
        Self {
            id: snapshot.id.to_string(),
            name,
            model,
            methods,
            samples: SampleTally { total, members, non_members },
            status: snapshot.status,
            progress: AuditProgress { done: snapshot.done, total },
            created_at: snapshot.created_at,
            started_at: snapshot.started_at,
            finished_at: snapshot.finished_at,
            error: snapshot.error.as_deref().map(error),
        }
    }
}

impl AuditList {
    /// A page of audits for the request of this id.
    pub fn new(page: &AuditPage, request_id: &str) -> Self {
        let audits = page.audits.iter().map(|snapshot| AuditSummary::new(snapshot, request_id)).collect();
        Self { audits, next: page.next.map(|id| id.to_string()) }
    }
}

/// The path of an audit.
pub fn location(id: Uuid) -> String {
    format!("/v1/audits/{id}")
}

fn report<S: Serializer>(outcome: &Option<Arc<AuditOutcome>>, serializer: S) -> Result<S::Ok, S::Error> {
    outcome.as_ref().map(|outcome| &outcome.report).serialize(serializer)
}
