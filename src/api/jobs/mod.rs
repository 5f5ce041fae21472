//! The interface that every kind of job has: routes under `/v1` and operations in the OpenAPI document.

pub mod events;
mod operations;
mod report;
pub mod request;
mod routes;
mod view;

pub use routes::{JobId, JobKinds, RegisteredKind};

use super::conversations::{self, SampleOrChat, problem_of_model};
use super::problem::Problem;
use super::state::ApiState;
use crate::finetunes::AdapterShelf;
use crate::jobs::{JobKind, JobSnapshot, JobSubject, Subject, Submission};
use crate::scorer::Scorer;
use crate::store::DatasetRow;
use attestation::SampleTrees;
use pages::{DrawnScores, TextStrip};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

/// The parts of a service that run jobs.
pub struct JobContext {
    pub scorer: Scorer,
    /// The adapters that fine-tunes made.
    pub shelf: AdapterShelf,
}

/// Names and texts of a kind of job in the OpenAPI document and on the command line.
#[derive(Clone, Copy)]
pub struct JobDocument {
    /// Segment of its paths below `/v1`, its tag, and the end of its list's operation id.
    pub segment: &'static str,
    /// Description of the tag.
    pub about: &'static str,
    /// End of the other operation ids, such as that of `submit_audit`, and name of its command.
    pub operation: &'static str,
    /// Property of a list that has the jobs.
    pub list: &'static str,
    /// Name of the schema of a job, which begins the names of the schemas of a summary and a list.
    pub schema: &'static str,
    /// True if a job has its report as `results`. Otherwise the report is part of the details, and lists and single jobs share a schema.
    pub has_results: bool,
    /// True if later requests need its jobs, which must then be in a store that lasts.
    pub serves_requests: bool,
    /// Description of the submission.
    pub description: &'static str,
    /// Body of a submission, as JSON.
    pub example: &'static str,
    /// Fields of a `progress` event, as in "`done` and `total` texts".
    pub progress: &'static str,
    /// Description of the cancellation, if it needs one.
    pub cancellation: Option<&'static str>,
    /// Description of the deletion, if it needs one.
    pub deletion: Option<&'static str>,
}

impl JobDocument {
    /// Path of the jobs.
    pub fn path(&self) -> String {
        format!("/v1/{}", self.segment)
    }

    fn location(&self, id: Uuid) -> String {
        format!("/v1/{}/{id}", self.segment)
    }

    fn list_schema(&self) -> String {
        format!("{}List", self.schema)
    }

    /// Name of the schema of a job in a list.
    fn summary_schema(&self) -> String {
        if self.has_results { format!("{}Summary", self.schema) } else { self.schema.to_owned() }
    }
}

/// A kind of job with routes under `/v1`.
pub trait JobResource: JobKind + Sized {
    /// Its part of the OpenAPI document, which has its paths.
    const DOCUMENT: JobDocument;
    /// The body of a submission.
    type Body: JobBody<Request = Self::Request>;
    /// Fields of a job beside those of all jobs.
    type Details: Serialize + ToSchema + Send + 'static;
    /// Schema of the progress of a job: `done`, `total`, and the notes of its run.
    type Progress: DeserializeOwned + Serialize + ToSchema + Send + 'static;
    /// The report of a job that has succeeded, as it is stored.
    type Report: ToSchema;

    /// Creates the kind for a service with these parts.
    fn with(context: &JobContext) -> Self;

    /// Checks a submission, with the dataset and the `Idempotency-Key` that it names.
    fn prepare(
        state: &ApiState,
        body: Self::Body,
        dataset: Option<DatasetRow>,
        _idempotency_key: Option<&str>,
    ) -> impl Future<Output = Result<Submission<Self::Request>, Problem>> + Send {
        checked(state, body, dataset)
    }

    /// The progress of a job as JSON.
    fn progress(job: &JobSnapshot<Subject<Self>>) -> Value {
        progress(job, job.note.as_deref())
    }

    /// The scores that the page of a report draws; none of most kinds.
    fn drawn_scores(
        _state: &ApiState,
        _id: Uuid,
        _report: &Value,
    ) -> impl Future<Output = Result<DrawnScores, Problem>> + Send {
        async { Ok(DrawnScores::default()) }
    }

    /// True if the page of a report shows texts on request.
    const SHOWS_TEXTS: bool = false;

    /// The first texts of a job, token by token; none of most kinds.
    fn text_strips(
        _state: &ApiState,
        _id: Uuid,
        _report: &Value,
        _count: usize,
    ) -> impl Future<Output = Result<Vec<TextStrip>, Problem>> + Send {
        async { Ok(Vec::new()) }
    }

    /// The trees that a signed report commits to, over the samples and over their lines of scores, and the SHA-256 of all lines; none
    /// of most kinds.
    fn sample_trees(
        _state: &ApiState,
        _id: Uuid,
    ) -> impl Future<Output = Result<Option<(SampleTrees, String)>, Problem>> + Send {
        async { Ok(None) }
    }

    /// The details of a job; `report` is absent in lists and until the job has succeeded.
    fn details(subject: Subject<Self>, report: Option<&str>) -> Result<Self::Details, Problem>;
}

/// The body of a submission.
pub trait JobBody: DeserializeOwned + ToSchema + Send + 'static {
    /// The part of it that is stored.
    type Request: Send + 'static;

    /// Id of the dataset that it names.
    fn dataset(&self) -> Option<&str>;

    /// The samples that may be conversations, with the id of the model whose template renders them; `None` where none are taken, as
    /// where texts are cut.
    fn conversations(&mut self) -> Option<(Option<&str>, &mut [SampleOrChat])> {
        None
    }

    /// The job, or everything that is wrong with the request as far as the service knows without models and store. Blocks,
    /// since it may read all texts.
    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<Self::Request>, Problem>;
}

/// The body with its conversations rendered, which waits until the model is open.
pub async fn rendered<B: JobBody>(state: &ApiState, mut body: B) -> Result<B, Problem> {
    let Some((model, samples)) = body.conversations() else { return Ok(body) };
    if samples.iter().all(|sample| sample.messages.is_none()) {
        return Ok(body);
    }
    let template = conversations::template(state, model, problem_of_model).await?;
    let (limit, deadline) = (state.limits.text.as_u64(), Instant::now().checked_add(state.request_timeout));
    let render = move || {
        if let Some((_, samples)) = body.conversations() {
            conversations::render(samples, &template, limit, deadline)?;
        }
        Ok(body)
    };
    state.scorer.workers().run(render).await?
}

/// Checks a body on a thread where it may block.
pub async fn checked<B: JobBody>(
    state: &ApiState,
    body: B,
    dataset: Option<DatasetRow>,
) -> Result<Submission<B::Request>, Problem> {
    let body = rendered(state, body).await?;
    let checking = state.clone();
    state.scorer.workers().run(move || body.check(&checking, dataset)).await?
}

/// The progress of a job, with a note of its run.
pub fn progress<S: JobSubject>(job: &JobSnapshot<S>, note: Option<&str>) -> Value {
    let note = note.and_then(|note| serde_json::from_str::<Map<String, Value>>(note).ok());
    let counts = [("done".to_owned(), json!(job.done)), ("total".to_owned(), json!(job.subject.summary().total))];
    Value::Object(counts.into_iter().chain(note.unwrap_or_default()).collect())
}
