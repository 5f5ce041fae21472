//! How clients see a calibration.

use super::problem::{Problem, ProblemBody};
use crate::audits::{AuditSnapshot, AuditSubject, CalibratedMethod, CalibrationReport};
use crate::jobs::JobPage;
use crate::store::JobStatus;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// A calibration as it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = Calibration)]
pub struct CalibrationView {
    #[schema(examples("01994b5e-6f0a-7d1c-9d0b-3f2d1c0b9a87"))]
    id: String,
    /// What the client called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Id of the model.
    #[schema(examples("demo"))]
    model: String,
    /// One entry per method; with its label alone until it has succeeded, and in lists.
    methods: Vec<CalibratedMethod>,
    /// How many texts there are.
    texts: usize,
    /// Clusters of them; null until it has succeeded.
    clusters: Option<usize>,
    /// The name of the key that owns it; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Id of the dataset; absent where the samples came with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset: Option<String>,
    status: JobStatus,
    progress: CalibrationProgress,
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

/// How far a calibration is.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CalibrationProgress {
    /// Texts done.
    done: usize,
    /// All texts.
    total: usize,
}

/// Calibrations, newest first.
#[derive(Serialize, ToSchema)]
pub struct CalibrationList {
    calibrations: Vec<CalibrationView>,
    /// Where there are more: the value of `after` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl CalibrationView {
    /// The calibration, with its report as it is stored, for the request of this id.
    ///
    /// # Errors
    /// Where the report cannot be read.
    pub fn new(snapshot: &AuditSnapshot, report: Option<&str>, request_id: &str) -> Result<Self, Problem> {
        let report: Option<CalibrationReport> =
            report.map(serde_json::from_str).transpose().map_err(Problem::internal)?;
        let error = |cause| Problem::from(cause).body(&location(snapshot.id), request_id);
        let AuditSubject { name, model, methods, dataset, total, .. } = snapshot.subject.clone();
        Ok(Self {
            id: snapshot.id.to_string(),
            name,
            model,
            clusters: report.as_ref().map(|report| report.clusters),
            methods: match report {
                Some(report) => report.methods,
                None => methods.into_iter().map(CalibratedMethod::unknown).collect(),
            },
            texts: total,
            dataset,
            owner: snapshot.owner.clone(),
            status: snapshot.status,
            progress: CalibrationProgress { done: snapshot.done, total },
            created_at: snapshot.created_at,
            started_at: snapshot.started_at,
            finished_at: snapshot.finished_at,
            deadline: snapshot.deadline,
            error: snapshot.failure.as_ref().map(error),
        })
    }
}

impl CalibrationList {
    /// A page of calibrations for the request of this id.
    ///
    /// # Errors
    /// None: there are no reports to read.
    pub fn new(page: &JobPage<AuditSubject>, request_id: &str) -> Result<Self, Problem> {
        let views = page.jobs.iter().map(|snapshot| CalibrationView::new(snapshot, None, request_id));
        Ok(Self { calibrations: views.collect::<Result<_, _>>()?, next: page.next.map(|id| id.to_string()) })
    }
}

/// The path of a calibration.
pub fn location(id: Uuid) -> String {
    format!("/v1/calibrations/{id}")
}
