//! How clients see an audit.

use super::problem::{Problem, ProblemBody};
use crate::audits::{AuditReport, AuditSnapshot, AuditSubject};
use crate::jobs::JobPage;
use crate::store::JobStatus;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// An audit as it stands.
#[derive(Serialize, ToSchema)]
pub struct Audit {
    #[serde(flatten)]
    summary: AuditSummary,
    /// What it found; null until it has succeeded.
    #[schema(value_type = Option<AuditReport>)]
    results: Option<Box<RawValue>>,
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
    /// The name of the key that owns it; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Id of the dataset; absent where the samples came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    status: JobStatus,
    progress: AuditProgress,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    started_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
    /// When it must have ended, where the request has `timeout_seconds`.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    deadline: Option<OffsetDateTime>,
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
    /// Samples read before any is scored, to see which are alike; most are read twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<usize>,
    /// True once all samples are scored and the permutations and the report are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    testing: Option<bool>,
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
    /// The audit, with its report as it is stored, for the request of this id.
    ///
    /// # Errors
    /// Where the report is not JSON.
    pub fn new(snapshot: &AuditSnapshot, report: Option<String>, request_id: &str) -> Result<Self, Problem> {
        let results = report.map(RawValue::from_string).transpose().map_err(Problem::internal)?;
        Ok(Self { results, summary: AuditSummary::new(snapshot, request_id) })
    }
}

impl AuditSummary {
    fn new(snapshot: &AuditSnapshot, request_id: &str) -> Self {
        /// What an audit that runs says of itself.
        #[derive(Default, Deserialize)]
        struct Note {
            read: Option<usize>,
            testing: Option<bool>,
        }

        let error = |cause| Problem::from(cause).body(&location(snapshot.id), request_id);
        let note = snapshot.note.as_deref().filter(|_| !snapshot.status.is_final());
        let Note { read, testing } = note.and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default();
        let AuditSubject { name, model, methods, dataset, total, members, non_members } = snapshot.subject.clone();
        Self {
            id: snapshot.id.to_string(),
            name,
            model,
            methods,
            samples: SampleTally { total, members, non_members },
            dataset,
            owner: snapshot.owner.clone(),
            status: snapshot.status,
            progress: AuditProgress { done: snapshot.done, total, read, testing },
            created_at: snapshot.created_at,
            started_at: snapshot.started_at,
            finished_at: snapshot.finished_at,
            deadline: snapshot.deadline,
            error: snapshot.failure.as_ref().map(error),
        }
    }
}

impl AuditList {
    /// A page of audits for the request of this id.
    pub fn new(page: &JobPage<AuditSubject>, request_id: &str) -> Self {
        let audits = page.jobs.iter().map(|snapshot| AuditSummary::new(snapshot, request_id)).collect();
        Self { audits, next: page.next.map(|id| id.to_string()) }
    }
}

/// The path of an audit.
pub fn location(id: Uuid) -> String {
    format!("/v1/audits/{id}")
}
