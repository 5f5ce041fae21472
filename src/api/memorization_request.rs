//! The body of a memorization submission and its validation.

use super::check::{self, RequestFaults};
use super::job_request;
use super::job_resource::JobBody;
use super::problem::{Kind, Problem};
use super::state::ApiState;
use crate::audits::MAX_SAMPLES;
use crate::datasets::{Sample, SampleId, SubmittedSamples};
use crate::jobs::{JobError, Submission};
use crate::memorization::{MemorizationRequest, WindowShape, WorkText};
use crate::store::DatasetRow;
use crate::wire::Shaped;
use mia::json::{List, TooMany, counted};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use utoipa::ToSchema;

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
    #[serde(default, deserialize_with = "works")]
    texts: Option<List<WorkInput>>,
    /// Id of a dataset that was uploaded, in place of `texts`; its labels play no part.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), value_type = Option<String>)]
    dataset: Option<Shaped<String>>,
    /// Texts like them that the model cannot have seen; none if left out.
    #[schema(min_items = 1, value_type = Option<Vec<WorkInput>>)]
    #[serde(default, deserialize_with = "works")]
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
    Named(NamedWork),
}

/// A text with its id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedWork {
    /// Comes back with the result; need not be unique.
    #[serde(default)]
    id: Option<SampleId>,
    text: String,
}

impl From<WorkInput> for WorkText {
    fn from(work: WorkInput) -> Self {
        match work {
            WorkInput::Text(text) => Self { id: None, text },
            WorkInput::Named(NamedWork { id, text }) => Self { id, text },
        }
    }
}

impl<'de> Deserialize<'de> for WorkInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WorkVisitor;

        impl<'de> Visitor<'de> for WorkVisitor {
            type Value = WorkInput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or an object with `text` and perhaps `id`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<WorkInput, E> {
                Ok(WorkInput::Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<WorkInput, E> {
                Ok(WorkInput::Text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WorkInput, A::Error> {
                NamedWork::deserialize(MapAccessDeserializer::new(map)).map(WorkInput::Named)
            }
        }

        deserializer.deserialize_any(WorkVisitor)
    }
}

/// A list of texts that need not be there.
fn works<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<List<WorkInput>>, D::Error> {
    counted::<_, _, MAX_SAMPLES>(deserializer).map(Some)
}

impl JobBody for MemorizationBody {
    type Request = MemorizationRequest;

    fn dataset(&self) -> Option<&str> {
        job_request::named(self.dataset.as_ref())
    }

    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<MemorizationRequest>, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?.map(|model| model.id.clone());
        let control = listed(self.control, "texts of the control")?;
        if control.as_ref().is_some_and(Vec::is_empty) {
            faults.push("/control", "the list is empty; without a control, leave it out");
        }
        let windows = shape(self.prefix, self.suffix, self.stride, &mut faults);
        let timeout = job_request::timeout(self.timeout_seconds, &mut faults);
        let (model, control) = (model.unwrap_or_default(), control.unwrap_or_default());
        let request = MemorizationRequest { model, windows, control };
        let samples = submitted(self.texts, self.dataset, dataset, &request, &mut faults)?;
        faults.finish()?;
        Ok(Submission { request, name: None, samples, idempotency_key: None, timeout })
    }
}

/// The windows, with the defaults where nothing else is asked for.
fn shape(
    prefix: Option<Shaped<usize>>,
    suffix: Option<Shaped<usize>>,
    stride: Option<Shaped<usize>>,
    faults: &mut RequestFaults,
) -> WindowShape {
    let default = WindowShape::default();
    let mut number = |pointer, value, default| check::shaped(pointer, value, faults).unwrap_or(default);
    let shape = WindowShape {
        prefix: number("/prefix", prefix, default.prefix),
        suffix: number("/suffix", suffix, default.suffix),
        stride: number("/stride", stride, default.stride),
    };
    for fault in shape.faults() {
        faults.push(fault.pointer, fault.detail);
    }
    shape
}

/// The texts of the job, those that come along or those of the dataset.
fn submitted(
    texts: Option<List<WorkInput>>,
    named: Option<Shaped<String>>,
    dataset: Option<DatasetRow>,
    request: &MemorizationRequest,
    faults: &mut RequestFaults,
) -> Result<SubmittedSamples, Problem> {
    let (pointer, is_given) = match (texts.is_some(), named.is_some()) {
        (true, true) => {
            faults.push("/dataset", "there are `texts` as well; a job takes either");
            ("/texts", true)
        }
        (false, false) => {
            faults.push("", "there are neither `texts` nor `dataset`; a job takes either");
            ("", false)
        }
        (true, false) => ("/texts", true),
        (false, true) => ("/dataset", dataset.is_some()),
    };
    let _ = check::shaped("/dataset", named, faults);
    let texts = listed(texts, "texts")?.unwrap_or_default();
    let sample = |WorkText { id, text }| Sample { id, text, ..Sample::default() };
    let samples = match dataset {
        Some(dataset) => SubmittedSamples::Dataset(dataset),
        None => SubmittedSamples::Inline(texts.into_iter().map(sample).collect()),
    };
    let totals = samples.totals().map_err(JobError::from)?;
    if let (true, Some(fault)) = (is_given, request.texts_fault(totals.samples)) {
        faults.push(pointer, fault);
    }
    Ok(samples)
}

/// The texts of a list, where it is there.
fn listed(list: Option<List<WorkInput>>, what: &str) -> Result<Option<Vec<WorkText>>, Problem> {
    let works = list.transpose().map_err(|TooMany { count, limit }| {
        Problem::new(Kind::TooLarge, format!("there are {count} {what}; the limit of a request is {limit}"))
    })?;
    Ok(works.map(|works| works.into_iter().map(WorkText::from).collect()))
}
