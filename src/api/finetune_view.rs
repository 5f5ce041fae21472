//! How clients see a fine-tune.

use super::problem::{Problem, ProblemBody};
use crate::finetunes::{FinetuneReport, FinetuneSnapshot, FinetuneSubject};
use crate::jobs::JobPage;
use crate::store::JobStatus;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// A fine-tune as it stands.
#[derive(Serialize, ToSchema)]
pub struct Finetune {
    #[serde(flatten)]
    summary: FinetuneSummary,
    /// What it found; null until it has succeeded.
    #[schema(value_type = Option<FinetuneReport>)]
    results: Option<Box<RawValue>>,
}

/// A fine-tune without its results.
#[derive(Serialize, ToSchema)]
pub struct FinetuneSummary {
    #[schema(examples("01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87"))]
    id: String,
    /// Id of the model that is tuned.
    #[schema(examples("demo"))]
    model: String,
    /// The name of the adapter among those of the model.
    #[schema(examples("unseen"))]
    name: String,
    /// How many texts the model is tuned on.
    texts: usize,
    /// The name of the key that owns it; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Id of the dataset; absent where the samples came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    status: JobStatus,
    progress: FinetuneProgress,
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

/// How far a fine-tune is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct FinetuneProgress {
    /// Steps done.
    done: usize,
    /// All steps.
    total: usize,
    /// The loss of the last step; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
}

/// Fine-tunes, newest first.
#[derive(Serialize, ToSchema)]
pub struct FinetuneList {
    finetunes: Vec<FinetuneSummary>,
    /// Where there are more: the value of `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Finetune {
    /// The fine-tune, with its report as it is stored, for the request of this id.
    ///
    /// # Errors
    /// Where the report is not JSON.
    pub fn new(snapshot: &FinetuneSnapshot, report: Option<String>, request_id: &str) -> Result<Self, Problem> {
        let results = report.map(RawValue::from_string).transpose().map_err(Problem::internal)?;
        Ok(Self { results, summary: FinetuneSummary::new(snapshot, request_id) })
    }
}

impl FinetuneSummary {
    fn new(snapshot: &FinetuneSnapshot, request_id: &str) -> Self {
        /// What the run says of itself.
        #[derive(Deserialize)]
        struct Note {
            loss: f64,
        }
        let error = |cause| Problem::from(cause).body(&location(snapshot.id), request_id);
        let FinetuneSubject { model, name, dataset, texts, steps } = snapshot.subject.clone();
        let note = snapshot.note.as_deref().and_then(|note| serde_json::from_str::<Note>(note).ok());
        Self {
            id: snapshot.id.to_string(),
            model,
            name,
            texts,
            dataset,
            owner: snapshot.owner.clone(),
            status: snapshot.status,
            progress: FinetuneProgress { done: snapshot.done, total: steps, loss: note.map(|note| note.loss) },
            created_at: snapshot.created_at,
            started_at: snapshot.started_at,
            finished_at: snapshot.finished_at,
            deadline: snapshot.deadline,
            error: snapshot.failure.as_ref().map(error),
        }
    }
}

impl FinetuneList {
    /// A page of fine-tunes for the request of this id.
    pub fn new(page: &JobPage<FinetuneSubject>, request_id: &str) -> Self {
        let finetunes = page.jobs.iter().map(|snapshot| FinetuneSummary::new(snapshot, request_id)).collect();
        Self { finetunes, next: page.next.map(|id| id.to_string()) }
    }
}

/// The path of a fine-tune.
pub fn location(id: Uuid) -> String {
    format!("/v1/finetunes/{id}")
}
