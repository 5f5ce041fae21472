//! `/v1/memorization`: how likely a model is to complete windows of texts.

use super::check::{self, RequestFaults};
use super::extract::TextOrObject;
use super::jobs::request::{self, JobSamples};
use super::jobs::{JobBody, JobContext, JobDocument, JobResource, checked};
use super::problem::Problem;
use super::state::ApiState;
use crate::datasets::Sample;
use crate::jobs::Submission;
use crate::memorization::{
    ContinuationSettings, MemorizationError, MemorizationKind, MemorizationReport, MemorizationRequest,
    MemorizationSubject, WindowPasses, WindowScorer, WindowShape, WorkText,
};
use crate::scorer::ScorerError;
use crate::store::DatasetRow;
use crate::wire::Shaped;
use mia::json::{List, Object};
use serde::{Deserialize, Deserializer, Serialize};
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
    /// Tokens of all passes that score windows; absent before they are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_tokens: Option<usize>,
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
        progress: "`done` and `total` texts and, once they are counted, `windows`, `total_windows` and `total_tokens`",
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
        let job = checked(state, body, dataset).await?;
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
    let fit = async { WindowScorer::open(&state.scorer, &request.model).await?.layout(request).await };
    match tokio::time::timeout(FIT_TIME, fit).await {
        Ok(Err(MemorizationError::Scorer(error @ ScorerError::Masked(_)))) => Err(error.into()),
        Ok(Err(MemorizationError::Scorer(error @ ScorerError::CannotContinue { .. }))) => {
            Err(Problem::fault("/continuation", error.to_string()))
        }
        Ok(Err(error @ MemorizationError::ContinuationTooLong { .. })) => {
            Err(Problem::fault("/continuation/tokens", error.to_string()))
        }
        Ok(Err(error @ MemorizationError::WindowTooLong { .. })) => Err(Problem::fault("/prefix", error.to_string())),
        _ => Ok(()),
    }
}

/// Texts, and how to cut them into windows.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `texts` or `dataset`")]
#[schema(as = MemorizationRequest)]
pub struct MemorizationBody {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The texts; either they or `dataset`.
    #[schema(min_items = 1, value_type = Option<Vec<WorkInput>>)]
    #[serde(default, deserialize_with = "request::listed")]
    texts: Option<List<WorkInput>>,
    /// Id of a dataset that was uploaded, in place of `texts`; its labels play no part.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), value_type = Option<String>)]
    dataset: Option<Shaped<String>>,
    /// Texts like them that the model cannot have seen; none if left out.
    #[schema(min_items = 1, value_type = Option<Vec<WorkInput>>)]
    #[serde(default, deserialize_with = "request::listed")]
    control: Option<List<WorkInput>>,
    /// Tokens of a window that the model is given; 50 if left out.
    #[schema(value_type = Option<usize>, minimum = 1)]
    prefix: Option<Shaped<usize>>,
    /// Tokens of the continuation; 50 if left out.
    #[schema(value_type = Option<usize>, minimum = 1)]
    suffix: Option<Shaped<usize>>,
    /// Tokens from the start of a window to that of the next; 10 if left out.
    #[schema(value_type = Option<usize>, minimum = 1)]
    stride: Option<Shaped<usize>>,
    /// Forward passes of overlapping windows; `shared` if left out.
    #[schema(value_type = Option<WindowPasses>)]
    passes: Option<Shaped<WindowPasses>>,
    /// True to have the text of each longest run in the report; false if left out.
    #[schema(value_type = Option<bool>)]
    run_text: Option<Shaped<bool>>,
    /// Greedy continuation of the texts, and of those of the control; none if left out.
    #[schema(value_type = Option<ContinuationSettings>)]
    continuation: Option<Shaped<Object<ContinuationSettings>>>,
    /// Maximum time from submission to the end, in seconds; the job fails after it. No limit if left out.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    timeout_seconds: Option<Shaped<u64>>,
}

/// A text: itself, or with an id that the result repeats.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum WorkInput {
    /// The text alone.
    Text(String),
    /// The text with its id.
    Named(WorkText),
}

impl From<WorkInput> for WorkText {
    fn from(work: WorkInput) -> Self {
        match work {
            WorkInput::Text(text) => Self { id: None, text },
            WorkInput::Named(work) => work,
        }
    }
}

impl<'de> Deserialize<'de> for WorkInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a text, or an object with `text` and perhaps `id`";
        deserializer.deserialize_any(TextOrObject { expected, text: Self::Text, object: Self::Named })
    }
}

impl JobBody for MemorizationBody {
    type Request = MemorizationRequest;

    fn dataset(&self) -> Option<&str> {
        request::named(self.dataset.as_ref())
    }

    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<MemorizationRequest>, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?.map(|model| model.id.clone());
        let control = works(self.control, "texts of the control")?;
        if control.as_ref().is_some_and(Vec::is_empty) {
            faults.push("/control", "the list is empty; without a control, leave it out");
        }
        let default = WindowShape::default();
        let mut number = |pointer, value, default| check::shaped(pointer, value, &mut faults).unwrap_or(default);
        let windows = WindowShape {
            prefix: number("/prefix", self.prefix, default.prefix),
            suffix: number("/suffix", self.suffix, default.suffix),
            stride: number("/stride", self.stride, default.stride),
            passes: check::shaped("/passes", self.passes, &mut faults).unwrap_or_default(),
        };
        faults.extend_below("", windows.faults());
        let run_text = check::shaped("/run_text", self.run_text, &mut faults).unwrap_or_default();
        let continuation = check::shaped("/continuation", self.continuation, &mut faults).map(|Object(given)| given);
        faults.extend_below("/continuation", continuation.iter().flat_map(ContinuationSettings::faults).collect());
        let timeout = request::timeout(self.timeout_seconds, &mut faults);
        let (model, control) = (model.unwrap_or_default(), control.unwrap_or_default());
        let request = MemorizationRequest { model, windows, run_text, continuation, control };
        let sample = |WorkText { id, text }| Sample { id, text, ..Sample::default() };
        let texts = works(self.texts, "texts")?.map(|texts| texts.into_iter().map(sample).collect());
        let submitted = JobSamples::from_field("texts", texts, self.dataset, dataset, &mut faults)?;
        submitted.refuse(request.texts_fault(&submitted.totals), &mut faults);
        faults.finish()?;
        Ok(Submission { request, name: None, samples: submitted.samples, idempotency_key: None, timeout })
    }
}

fn works(list: Option<List<WorkInput>>, elements: &str) -> Result<Option<Vec<WorkText>>, Problem> {
    let works = request::within_limit(list, elements, "a request")?;
    Ok(works.map(|works| works.into_iter().map(WorkText::from).collect()))
}
