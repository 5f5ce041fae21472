//! `/v1/calibrations`: scores of known non-members, which give other texts p-values.

use super::calibration_request::CalibrationBody;
use super::jobs::{JobContext, JobDocument, JobResource};
use super::problem::Problem;
use crate::audits::{AuditSubject, CalibratedMethod, CalibrationKind, CalibrationReport};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A calibration beside what all jobs have.
#[derive(Serialize, ToSchema)]
pub struct CalibrationDetails {
    /// Name that the client gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// One entry per method; with its label alone until it has succeeded, and in lists.
    methods: Vec<CalibratedMethod>,
    /// Number of texts.
    texts: usize,
    /// Number of clusters of them; null until it has succeeded, and in lists.
    clusters: Option<usize>,
}

/// Progress of a calibration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CalibrationProgress {
    /// Texts done.
    done: usize,
    /// All texts.
    total: usize,
}

impl JobResource for CalibrationKind {
    const DOCUMENT: JobDocument = JobDocument {
        segment: "calibrations",
        about: "Known non-members in, p-values of other texts out",
        operation: "calibration",
        list: "calibrations",
        schema: "Calibration",
        has_results: false,
        serves_requests: true,
        description: "Scores known non-members behind interactive work and keeps the scores, so that those of other texts get p-values: \
                      the id goes into `calibration` of `/v1/score` and `/v1/audits`. P-values hold for texts that would be like the \
                      known non-members had the model not been trained on them: of the same kind, date, length and cut.",
        example: r#"{
            "dataset": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "methods": ["min_k_plus_plus"]
        }"#,
        progress: "`done` and `total` texts",
        cancellation: None,
        deletion: Some(
            "Finished audits keep the p-values that they have of it; audits that have not used it yet will fail.",
        ),
    };
    type Body = CalibrationBody;
    type Details = CalibrationDetails;
    type Progress = CalibrationProgress;
    type Report = CalibrationReport;

    fn with(context: &JobContext) -> Self {
        Self::new(context.scorer.clone())
    }

    fn details(subject: AuditSubject, report: Option<&str>) -> Result<CalibrationDetails, Problem> {
        let report: Option<CalibrationReport> =
            report.map(serde_json::from_str).transpose().map_err(Problem::internal)?;
        let AuditSubject { name, methods, total, .. } = subject;
        Ok(CalibrationDetails {
            name,
            texts: total,
            clusters: report.as_ref().map(|report| report.clusters),
            methods: match report {
                Some(report) => report.methods,
                None => methods.into_iter().map(CalibratedMethod::unknown).collect(),
            },
        })
    }
}
