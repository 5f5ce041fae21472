//! How clients see a job.

use super::JobResource;
use crate::api::problem::{Problem, ProblemBody};
use crate::jobs::{JobPage, JobSnapshot, JobSubject, Subject};
use crate::store::JobStatus;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;

/// A job.
#[derive(Serialize)]
#[serde(bound = "")]
pub struct JobView<K: JobResource> {
    #[serde(flatten)]
    state: JobState,
    #[serde(flatten)]
    details: K::Details,
    progress: K::Progress,
    /// The report as it is stored, which is null until the job has succeeded; absent in lists, and where it is part of the details.
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Option<Box<RawValue>>>,
}

/// Fields of every job.
#[derive(Serialize, ToSchema)]
pub struct JobState {
    #[schema(examples("01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87"))]
    id: String,
    /// Id of the model.
    #[schema(examples("demo"))]
    model: String,
    /// Id of the dataset; absent where the texts came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    /// Name of the key that owns the job; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    status: JobStatus,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    started_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339::option")]
    finished_at: Option<OffsetDateTime>,
    /// The time by which it must have ended, where the request has `timeout_seconds`.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    deadline: Option<OffsetDateTime>,
    /// Why it failed.
    error: Option<ProblemBody>,
}

impl<K: JobResource> JobView<K> {
    /// A job with its report, for the request of this id.
    pub fn with_report(
        job: JobSnapshot<Subject<K>>,
        report: Option<String>,
        request_id: &str,
    ) -> Result<Self, Problem> {
        let view = Self::new(job, report.as_deref(), request_id)?;
        let results = K::DOCUMENT.has_results.then(|| report.map(RawValue::from_string).transpose());
        Ok(Self { results: results.transpose().map_err(Problem::internal)?, ..view })
    }

    fn new(job: JobSnapshot<Subject<K>>, report: Option<&str>, request_id: &str) -> Result<Self, Problem> {
        let location = K::DOCUMENT.location(job.id);
        let progress = serde_json::from_value(K::progress(&job)).map_err(Problem::internal)?;
        let summary = job.subject.summary();
        let error = job.failure.as_ref().map(|failure| Problem::from(failure).body(&location, request_id));
        let state = JobState {
            id: job.id.to_string(),
            model: summary.model.to_owned(),
            dataset: summary.dataset.map(str::to_owned),
            owner: job.owner.clone(),
            status: job.status,
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            deadline: job.deadline,
            error,
        };
        Ok(Self { state, details: K::details(job.subject, report)?, progress, results: None })
    }
}

/// A page of jobs without their reports, and the value of `after` for the next page, where there is one.
pub fn list_view<K: JobResource>(page: JobPage<Subject<K>>, request_id: &str) -> Result<Value, Problem> {
    let view = |job| serde_json::to_value(JobView::<K>::new(job, None, request_id)?).map_err(Problem::internal);
    let jobs = page.jobs.into_iter().map(view).collect::<Result<_, _>>()?;
    let next = page.next.map(|id| ("next".to_owned(), id.to_string().into()));
    Ok(Map::from_iter([(K::DOCUMENT.list.to_owned(), Value::Array(jobs))].into_iter().chain(next)).into())
}
