//! How clients see a job.

use super::job_resource::JobResource;
use super::problem::{Problem, ProblemBody};
use crate::jobs::{JobPage, JobSnapshot, JobSubject};
use crate::store::JobStatus;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use utoipa::ToSchema;

/// A job with its report.
#[derive(Serialize)]
#[serde(bound = "")]
pub struct JobView<K: JobResource> {
    #[serde(flatten)]
    summary: JobSummary<K>,
    #[serde(flatten)]
    report: Option<JobReport>,
}

/// The report of a job, as it is stored; null until the job has succeeded.
#[derive(Serialize)]
struct JobReport {
    results: Option<Box<RawValue>>,
}

/// A job without its report.
#[derive(Serialize)]
#[serde(bound = "")]
pub struct JobSummary<K: JobResource> {
    #[serde(flatten)]
    state: JobState,
    #[serde(flatten)]
    details: K::Details,
    progress: K::Progress,
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

/// A page of jobs, newest first.
pub struct JobList<K: JobResource> {
    jobs: Vec<JobSummary<K>>,
    /// The value of `after` for the next page, where there is one.
    next: Option<String>,
}

impl<K: JobResource> JobView<K> {
    /// The job, with its report as it is stored, for the request of this id.
    ///
    /// # Errors
    /// Where the report is not JSON.
    pub fn new(job: JobSnapshot<K::Subject>, report: Option<String>, request_id: &str) -> Result<Self, Problem> {
        let summary = JobSummary::new(job, report.as_deref(), request_id)?;
        let report = match K::DOCUMENT.has_results {
            true => {
                Some(JobReport { results: report.map(RawValue::from_string).transpose().map_err(Problem::internal)? })
            }
            false => None,
        };
        Ok(Self { summary, report })
    }
}

impl<K: JobResource> JobSummary<K> {
    fn new(job: JobSnapshot<K::Subject>, report: Option<&str>, request_id: &str) -> Result<Self, Problem> {
        let location = K::DOCUMENT.location(job.id);
        let progress = serde_json::from_value(K::progress(&job)).map_err(Problem::internal)?;
        let error = job.failure.as_ref().map(|failure| Problem::from(failure).body(&location, request_id));
        let state = JobState {
            id: job.id.to_string(),
            model: job.subject.model().to_owned(),
            dataset: job.subject.dataset().map(str::to_owned),
            owner: job.owner,
            status: job.status,
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            deadline: job.deadline,
            error,
        };
        Ok(Self { state, details: K::details(job.subject, report)?, progress })
    }
}

impl<K: JobResource> JobList<K> {
    /// A page of jobs for the request of this id.
    ///
    /// # Errors
    /// Where a job cannot be read.
    pub fn new(page: JobPage<K::Subject>, request_id: &str) -> Result<Self, Problem> {
        let next = page.next.map(|id| id.to_string());
        let jobs = page.jobs.into_iter().map(|job| JobSummary::new(job, None, request_id));
        Ok(Self { jobs: jobs.collect::<Result<_, _>>()?, next })
    }
}

impl<K: JobResource> Serialize for JobList<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(K::DOCUMENT.list, &self.jobs)?;
        if let Some(next) = &self.next {
            map.serialize_entry("next", next)?;
        }
        map.end()
    }
}
