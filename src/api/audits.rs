//! `/v1/audits`: how well scores tell members from non-members.

use super::audit_request::AuditBody;
use super::datasets::DatasetFile;
use super::jobs::{self, JobContext, JobDocument, JobId, JobResource, checked};
use super::problem::responses::StateProblems;
use super::problem::{Kind, Problem};
use super::sample_line::SampleLine;
use super::state::{ApiState, ClientState};
use super::{audit_scores, plans, score_calibration, shown_texts};
use crate::audits::{
    AuditKind, AuditReport, AuditRequest, AuditSnapshot, AuditSubject, Calibration, CalibrationSource, Forecast,
};
use crate::datasets::{SampleBlocks, SubmittedSamples};
use crate::jobs::Submission;
use crate::scorer::{Plan, ScorerError};
use crate::store::DatasetRow;
use attestation::SampleTrees;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::TryStreamExt;
use mia::methods::{AuxiliaryPass, LabelledMethod, faults_of_texts};
use pages::{DrawnScores, TextStrip};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::pin::pin;
use std::time::Duration;
use utoipa::ToSchema;
use uuid::Uuid;

/// Time that a submission waits to find out whether its methods fit the models.
const FIT_TIME: Duration = Duration::from_secs(2);

/// An audit beside what all jobs have.
#[derive(Serialize, ToSchema)]
pub struct AuditDetails {
    /// Name that the client gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The labels of the methods.
    methods: Vec<String>,
    samples: SampleTally,
}

/// Number of samples of an audit.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SampleTally {
    /// All samples.
    total: usize,
    /// Those that are known to be in the training data; 0 without labels.
    members: usize,
    /// Those that are known not to be; 0 without labels.
    non_members: usize,
}

/// Progress of an audit.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
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
    /// The amount of work, and the p-values that the known works allow; known once the samples were first read.
    #[serde(skip_serializing_if = "Option::is_none")]
    forecast: Option<Forecast>,
}

impl JobResource for AuditKind {
    const DOCUMENT: JobDocument = JobDocument {
        segment: "audits",
        about: "Labelled samples in, a report out",
        operation: "audit",
        list: "audits",
        schema: "Audit",
        has_results: true,
        serves_requests: false,
        description: "Scores all samples behind interactive work and reports how well each method tells members from non-members. \
                      Without labels it is a scoring job. Four audits run at once; the others are queued in the order of their \
                      submission.",
        example: r#"{
            "samples": [
                { "id": "m", "text": "It was the best of times, it was the worst of times.", "label": 1 },
                { "id": "n", "text": "The committee met again on a rainy Tuesday.", "label": 0 }
            ],
            "methods": ["loss", { "name": "min_k", "k": 0.2, "pdr": { "decay": "linear", "alpha": 1.0 } }],
            "metrics": { "fpr_targets": [0.05] }
        }"#,
        progress: "`done` and `total` samples, `read` while samples are read before any is scored, `testing` once all are scored, and `forecast` from when they are first read",
        cancellation: None,
        deletion: None,
    };
    type Body = AuditBody;
    type Details = AuditDetails;
    type Progress = AuditProgress;
    type Report = AuditReport;

    fn with(context: &JobContext) -> Self {
        Self(context.scorer.clone())
    }

    async fn prepare(
        state: &ApiState,
        body: AuditBody,
        dataset: Option<DatasetRow>,
        _: Option<&str>,
    ) -> Result<Submission<AuditRequest>, Problem> {
        let plan = body.plan().map(str::to_owned);
        let audit = checked(state, body, dataset).await?;
        if let SubmittedSamples::Dataset(dataset) = &audit.samples {
            methods_fit(state, dataset, &audit.request.methods).await?;
        }
        let calibration = match &audit.request.evidence.calibration {
            Some(CalibrationSource::Stored(id)) => Some(score_calibration::named(state, id).await?),
            _ => None,
        };
        check_fit(state, &audit.request, calibration.as_deref()).await?;
        match plan {
            Some(plan) => plans::cite(state, audit, &plan).await,
            None => Ok(audit),
        }
    }

    /// Once a run has ended, the forecast alone of its notes says something.
    fn progress(job: &AuditSnapshot) -> Value {
        let mut progress = jobs::progress(job, job.note.as_deref());
        if let Some(fields) = progress.as_object_mut().filter(|_| job.status.is_final()) {
            fields.retain(|name, _| ["done", "total", "forecast"].contains(&&**name));
        }
        progress
    }

    async fn drawn_scores(state: &ApiState, id: Uuid, report: &Value) -> Result<DrawnScores, Problem> {
        match state.jobs.kind::<Self>()?.scores(id).await? {
            Some(scores) => audit_scores::drawn(state, scores, report).await,
            None => Ok(DrawnScores::default()),
        }
    }

    const SHOWS_TEXTS: bool = true;

    async fn text_strips(state: &ApiState, id: Uuid, report: &Value, count: usize) -> Result<Vec<TextStrip>, Problem> {
        shown_texts::read(state, id, report, count).await
    }

    async fn sample_trees(state: &ApiState, id: Uuid) -> Result<Option<(SampleTrees, String)>, Problem> {
        match state.jobs.kind::<Self>()?.scores(id).await? {
            Some(scores) => audit_scores::trees(state, scores).await.map(Some),
            None => Ok(None),
        }
    }

    fn details(subject: AuditSubject, _: Option<&str>) -> Result<AuditDetails, Problem> {
        let AuditSubject { name, methods, total, members, non_members, .. } = subject;
        Ok(AuditDetails { name, methods, samples: SampleTally { total, members, non_members } })
    }
}

/// Refuses methods that the models or the calibration do not fit, where the models are open by now; otherwise the audit finds out.
async fn check_fit(state: &ApiState, request: &AuditRequest, calibration: Option<&Calibration>) -> Result<(), Problem> {
    match tokio::time::timeout(FIT_TIME, state.scorer.bind(&Plan::from(request))).await {
        Ok(Ok(bound)) => {
            calibration.map_or(Ok(()), |calibration| score_calibration::places(calibration, &bound).map(|_| ()))
        }
        Ok(Err(error @ (ScorerError::Unfit(_) | ScorerError::Masked(_)))) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The scores of an audit's samples.
///
/// One line a sample, in order. CSV has the columns index, id, label, group, scored_tokens, truncated and windows, one for each
/// method under its label, then alpha_used, which is empty or a JSON object, errors, which is empty or a JSON array, and what came
/// along with the samples. In CSV a text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return, which a spreadsheet would
/// take for a formula, has an apostrophe before it. Parquet has the same columns as CSV.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}/scores",
    operation_id = "get_audit_scores",
    tag = "audits",
    params(
        ("id" = String, Path, description = "Id of the audit"),
        ("Accept" = Option<String>, Header, description = "`application/x-ndjson`, `text/csv` or `application/vnd.apache.parquet`", example = "text/csv")
    ),
    responses(
        (status = 200, description = "The scores", content(
            (SampleLine = "application/x-ndjson"),
            (String = "text/csv"),
            (DatasetFile = "application/vnd.apache.parquet")
        )),
        StateProblems
    )
)]
pub async fn scores(
    ClientState(state): ClientState,
    JobId(id, _): JobId<AuditKind>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let audits = state.jobs.kind::<AuditKind>()?;
    let audit = audits.get(id).await?;
    match audits.scores(id).await? {
        Some(scores) => audit_scores::respond(&state, scores, &headers).await,
        None => {
            let detail = format!("the audit is {}; there are scores once it has succeeded", audit.status.name());
            Err(Problem::new(Kind::Conflict, detail))
        }
    }
}

/// Refuses methods that ask for neighbours that a text does not have, and prefixes that are texts of the dataset. Only then the
/// dataset is read, if its texts are there still.
async fn methods_fit(state: &ApiState, dataset: &DatasetRow, methods: &[LabelledMethod]) -> Result<(), Problem> {
    let asks = |method: &LabelledMethod| {
        let mut passes = method.method.base.passes().into_iter();
        passes.any(|(_, pass)| matches!(pass, AuxiliaryPass::Neighbors(None) | AuxiliaryPass::Prefixed(_)))
    };
    if !methods.iter().any(asks) {
        return Ok(());
    }
    let Some(samples) = SampleBlocks::stored(state.jobs.store(), dataset) else { return Ok(()) };
    let checked = tokio::time::timeout(state.request_timeout, check_samples(&samples, methods));
    checked.await.map_err(|_| Problem::deadline())?
}

async fn check_samples(samples: &SampleBlocks, methods: &[LabelledMethod]) -> Result<(), Problem> {
    let mut samples = pin!(samples.samples());
    while let Some((index, sample)) = samples.try_next().await.map_err(Problem::internal)? {
        let text = std::iter::once((sample.text.as_str(), sample.neighbors.as_deref()));
        let fault = faults_of_texts(text, |_| String::new(), methods, "/methods").into_iter().next();
        if let Some(fault) = fault {
            let is_prefix = fault.pointer.starts_with("/methods");
            let pointer = if is_prefix { fault.pointer } else { "/dataset".to_owned() };
            let detail =
                if is_prefix { "the text is also scored, so the prefix would contain it" } else { &fault.detail };
            return Err(Problem::fault(pointer, format!("sample {index} (from 0) of the dataset: {detail}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::JobStatus;
    use serde_json::json;

    #[test]
    fn an_audit_that_has_ended_has_no_notes() {
        let snapshot = |status| {
            let mut snapshot = AuditSnapshot::example(AuditSubject { total: 9, ..AuditSubject::default() }, status);
            (snapshot.row.done, snapshot.row.note) = (9, Some(r#"{"testing":true}"#.to_owned()));
            snapshot
        };
        let running = AuditKind::progress(&snapshot(JobStatus::Running));
        assert_eq!(running, json!({ "done": 9, "total": 9, "testing": true }));
        assert_eq!(AuditKind::progress(&snapshot(JobStatus::Cancelled)), json!({ "done": 9, "total": 9 }));
    }
}
