//! How clients see a test.

use super::problem::{Problem, ProblemBody};
use crate::audits::{AuditSubject, TrialKind, TrialReport, TrialSubject};
use crate::jobs::{JobPage, JobSnapshot};
use crate::store::JobStatus;
use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// A test as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Test)]
pub struct TrialView {
    #[serde(flatten)]
    summary: TrialSummary,
    /// What it found; null until it has succeeded.
    #[schema(value_type = Option<TrialReport>)]
    results: Option<Box<RawValue>>,
}

/// A test without its results.
#[derive(Serialize, ToSchema)]
#[schema(as = TestSummary)]
pub struct TrialSummary {
    #[schema(examples("01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87"))]
    id: String,
    kind: TrialKind,
    /// What the client called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Id of the model.
    #[schema(examples("demo"))]
    model: String,
    /// The labels of the methods.
    methods: Vec<String>,
    /// How many texts there are to score: of `order`, the orders of all shards.
    texts: usize,
    /// The name of the key that owns it; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Id of the dataset; absent where the texts came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    status: JobStatus,
    progress: TrialProgress,
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

/// How far a test is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = TestProgress)]
pub struct TrialProgress {
    /// Texts done.
    done: usize,
    /// All texts.
    total: usize,
}

/// Tests, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = TestList)]
pub struct TrialList {
    tests: Vec<TrialSummary>,
    /// Where there are more: the value of `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl TrialView {
    /// The test, with its report as it is stored, for the request of this id.
    ///
    /// # Errors
    /// Where the report is not JSON.
    pub fn new(
        snapshot: &JobSnapshot<TrialSubject>,
        report: Option<String>,
        request_id: &str,
    ) -> Result<Self, Problem> {
        let results = report.map(RawValue::from_string).transpose().map_err(Problem::internal)?;
        Ok(Self { results, summary: TrialSummary::new(snapshot, request_id) })
    }
}

impl TrialSummary {
    fn new(snapshot: &JobSnapshot<TrialSubject>, request_id: &str) -> Self {
        let error = |cause| Problem::from(cause).body(&location(snapshot.id), request_id);
        let TrialSubject { kind, scored } = snapshot.subject.clone();
        let AuditSubject { name, model, methods, dataset, total, .. } = scored;
        Self {
            id: snapshot.id.to_string(),
            kind,
            name,
            model,
            methods,
            texts: total,
            dataset,
            owner: snapshot.owner.clone(),
            status: snapshot.status,
            progress: TrialProgress { done: snapshot.done, total },
            created_at: snapshot.created_at,
            started_at: snapshot.started_at,
            finished_at: snapshot.finished_at,
            deadline: snapshot.deadline,
            error: snapshot.failure.as_ref().map(error),
        }
    }
}

impl TrialList {
    /// A page of tests for the request of this id.
    pub fn new(page: &JobPage<TrialSubject>, request_id: &str) -> Self {
        let tests = page.jobs.iter().map(|snapshot| TrialSummary::new(snapshot, request_id)).collect();
        Self { tests, next: page.next.map(|id| id.to_string()) }
    }
}

/// The path of a test.
pub fn location(id: Uuid) -> String {
    format!("/v1/tests/{id}")
}
