//! `/v1/memorization`: how likely a model is to complete windows of texts.

use super::jobs::{JobContext, JobDocument, JobResource, check};
use super::memorization_request::MemorizationBody;
use super::problem::Problem;
use super::state::ApiState;
use crate::jobs::Submission;
use crate::memorization::{
    MemorizationError, MemorizationKind, MemorizationReport, MemorizationRequest, MemorizationSubject, WindowScorer,
};
use crate::scorer::ScorerError;
use crate::store::DatasetRow;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// Time that a submission waits to find out whether its windows fit the model.
const FIT_TIME: Duration = Duration::from_secs(2);

/// A memorization job beside what all jobs have.
#[derive(Serialize, ToSchema)]
pub struct MemorizationDetails {
    /// Number of texts, without those of the control.
    texts: usize,
    /// Number of texts of the control.
    control: usize,
}

/// Progress of a memorization job.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct MemorizationJobProgress {
    /// Texts done, including those of the control.
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

impl JobResource for MemorizationKind {
    const DOCUMENT: JobDocument = JobDocument {
        segment: "memorization",
        about: "Shares of texts that a model completes word by word",
        operation: "memorization",
        list: "memorizations",
        schema: "Memorization",
        has_results: true,
        serves_requests: false,
        description: "Cuts every text into windows of a prefix and a suffix, and reports how likely the model is to continue the prefix \
                      with the suffix, word by word; and the same for texts that the model cannot have seen, the control. Interactive \
                      requests go first.",
        example: r#"{
            "texts": [{
                "id": "dickens",
                "text": "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness."
            }],
            "control": ["The committee met again on a rainy Tuesday, and nobody had read the minutes of the meeting before."],
            "prefix": 8,
            "suffix": 8,
            "stride": 4
        }"#,
        progress: "`done` and `total` texts and, once they are counted, `windows` and `total_windows`",
        cancellation: None,
        deletion: None,
    };
    type Body = MemorizationBody;
    type Details = MemorizationDetails;
    type Progress = MemorizationJobProgress;
    type Report = MemorizationReport;

    fn with(context: &JobContext) -> Self {
        Self::new(context.scorer.clone())
    }

    async fn prepare(
        state: &ApiState,
        body: MemorizationBody,
        dataset: Option<DatasetRow>,
        _: Option<&str>,
    ) -> Result<Submission<MemorizationRequest>, Problem> {
        let job = check(state, body, dataset).await?;
        check_fit(state, &job.request).await?;
        Ok(job)
    }

    fn details(
        MemorizationSubject { texts, control, .. }: MemorizationSubject,
        _: Option<&str>,
    ) -> Result<Self::Details, Problem> {
        Ok(MemorizationDetails { texts, control })
    }
}

/// Refuses windows that do not fit the model, where it is open by now; otherwise the job finds out.
async fn check_fit(state: &ApiState, request: &MemorizationRequest) -> Result<(), Problem> {
    let fit = async { WindowScorer::open(&state.scorer, &request.model).await?.check(request.windows).await };
    match tokio::time::timeout(FIT_TIME, fit).await {
        Ok(Err(MemorizationError::Scorer(error @ ScorerError::Masked(_)))) => Err(error.into()),
        Ok(Err(error @ MemorizationError::WindowTooLong { .. })) => Err(Problem::fault("/prefix", error.to_string())),
        _ => Ok(()),
    }
}
