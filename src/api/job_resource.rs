//! A kind of job as clients submit and see it.

use super::job_document::JobDocument;
use super::job_events;
use super::problem::Problem;
use super::state::ApiState;
use crate::finetunes::AdapterShelf;
use crate::jobs::{JobKind, JobSnapshot, Submission};
use crate::scorer::Scorer;
use crate::store::DatasetRow;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

/// The parts of a service that run jobs.
pub struct JobContext {
    pub scorer: Scorer,
    /// The adapters that fine-tunes made.
    pub shelf: AdapterShelf,
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
    ///
    /// # Errors
    /// Everything that is wrong with the request.
    fn prepare(
        state: &ApiState,
        body: Self::Body,
        dataset: Option<DatasetRow>,
        _idempotency_key: Option<&str>,
    ) -> impl Future<Output = Result<Submission<Self::Request>, Problem>> + Send {
        check(state, body, dataset)
    }

    /// The progress of a job as JSON.
    fn progress(job: &JobSnapshot<Self::Subject>) -> Value {
        job_events::progress(job)
    }

    /// The details of a job; `report` is absent in lists and until the job has succeeded.
    ///
    /// # Errors
    /// Where the report cannot be read.
    fn details(subject: Self::Subject, report: Option<&str>) -> Result<Self::Details, Problem>;
}

/// The body of a submission.
pub trait JobBody: DeserializeOwned + ToSchema + Send + 'static {
    /// The part of it that is stored.
    type Request: Send + 'static;

    /// Id of the dataset that it names.
    fn dataset(&self) -> Option<&str>;

    /// The job, with the dataset that it names. Blocks, since it may read all texts.
    ///
    /// # Errors
    /// Everything that is wrong with the request, as far as the service knows without models and store.
    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<Self::Request>, Problem>;
}

/// Checks a body on a thread where it may block.
///
/// # Errors
/// Those of [`JobBody::check`].
pub async fn check<B: JobBody>(
    state: &ApiState,
    body: B,
    dataset: Option<DatasetRow>,
) -> Result<Submission<B::Request>, Problem> {
    let checking = state.clone();
    state.scorer.workers().run(move || body.check(&checking, dataset)).await?
}
