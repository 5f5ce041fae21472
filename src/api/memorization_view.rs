//! How clients see a memorization job.

use super::problem::{Problem, ProblemBody};
use crate::jobs::JobPage;
use crate::memorization::{MemorizationReport, MemorizationSnapshot, MemorizationSubject};
use crate::store::JobStatus;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// A memorization job as it stands.
#[derive(Serialize, ToSchema)]
pub struct Memorization {
    #[serde(flatten)]
    summary: MemorizationSummary,
    /// What was found; null until it has succeeded.
    #[schema(value_type = Option<MemorizationReport>)]
    results: Option<Box<RawValue>>,
}

/// A memorization job without its results.
#[derive(Serialize, ToSchema)]
pub struct MemorizationSummary {
    #[schema(examples("01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87"))]
    id: String,
    /// Id of the model.
    #[schema(examples("demo"))]
    model: String,
    /// How many texts there are, without those of the control.
    texts: usize,
    /// How many texts the control has.
    control: usize,
    /// The name of the key that owns it; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Id of the dataset; absent where the texts came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    status: JobStatus,
    progress: MemorizationJobProgress,
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

/// How far a memorization job is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct MemorizationJobProgress {
    /// Texts done, those of the control too.
    done: usize,
    /// All texts.
    total: usize,
    /// Windows done; absent before they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<usize>,
    /// All windows; absent before they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_windows: Option<usize>,
}

/// Memorization jobs, newest first.
#[derive(Serialize, ToSchema)]
pub struct MemorizationList {
    memorizations: Vec<MemorizationSummary>,
    /// Where there are more: the value of `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Memorization {
    /// The job, with its report as it is stored, for the request of this id.
    ///
    /// # Errors
    /// Where the report is not JSON.
    pub fn new(snapshot: &MemorizationSnapshot, report: Option<String>, request_id: &str) -> Result<Self, Problem> {
        let results = report.map(RawValue::from_string).transpose().map_err(Problem::internal)?;
        Ok(Self { results, summary: MemorizationSummary::new(snapshot, request_id) })
    }
}

impl MemorizationSummary {
    fn new(snapshot: &MemorizationSnapshot, request_id: &str) -> Self {
        let error = |cause| Problem::from(cause).body(&location(snapshot.id), request_id);
        let MemorizationSubject { model, dataset, texts, control } = snapshot.subject.clone();
        Self {
            id: snapshot.id.to_string(),
            model,
            texts,
            control,
            dataset,
            owner: snapshot.owner.clone(),
            status: snapshot.status,
            progress: MemorizationJobProgress::new(snapshot),
            created_at: snapshot.created_at,
            started_at: snapshot.started_at,
            finished_at: snapshot.finished_at,
            deadline: snapshot.deadline,
            error: snapshot.failure.as_ref().map(error),
        }
    }
}

impl MemorizationJobProgress {
    fn new(snapshot: &MemorizationSnapshot) -> Self {
        /// What the run says of itself.
        #[derive(Deserialize)]
        struct Note {
            windows: usize,
            total_windows: usize,
        }
        let note = snapshot.note.as_deref().and_then(|note| serde_json::from_str::<Note>(note).ok());
        let MemorizationSubject { texts, control, .. } = snapshot.subject;
        Self {
            done: snapshot.done,
            total: texts + control,
            windows: note.as_ref().map(|note| note.windows),
            total_windows: note.map(|note| note.total_windows),
        }
    }
}

impl MemorizationList {
    /// A page of jobs for the request of this id.
    pub fn new(page: &JobPage<MemorizationSubject>, request_id: &str) -> Self {
        let memorizations = page.jobs.iter().map(|snapshot| MemorizationSummary::new(snapshot, request_id)).collect();
        Self { memorizations, next: page.next.map(|id| id.to_string()) }
    }
}

/// The path of a memorization job.
pub fn location(id: Uuid) -> String {
    format!("/v1/memorization/{id}")
}
