//! Parts common to all job submissions: samples, timeout, and the names that clients give them.

use super::check::{self, RequestFaults};
use super::prefer;
use super::problem::{Kind, Problem};
use super::state::ApiState;
use crate::audits::MAX_SAMPLES;
use crate::datasets::{DatasetError, Sample, SubmittedSamples};
use crate::jobs::{JobError, JobKind, JobSnapshot, JobSubject, Jobs};
use crate::store::DatasetRow;
use crate::wire::Shaped;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mia::json::{List, Object, TooMany, counted};
use serde::Deserializer;
use std::time::Duration;

/// The header of the draft "The Idempotency-Key HTTP Header Field" of the IETF.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Maximum length of its value.
const MAX_KEY: usize = 255;
/// Maximum timeout of a job in seconds: a year.
const MAX_TIMEOUT: u64 = 31_536_000;

/// Samples that come along.
pub type SampleList = List<Object<Sample>>;

/// A list of samples that need not be there.
///
/// # Errors
/// Where it is no list.
pub fn samples<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SampleList>, D::Error> {
    counted::<_, _, MAX_SAMPLES>(deserializer).map(Some)
}

/// The dataset that a request names.
pub fn named(dataset: Option<&Shaped<String>>) -> Option<&str> {
    dataset.and_then(|Shaped(dataset)| dataset.as_deref().ok())
}

/// The samples of a job, those that come along or those of the dataset, and where the request has them.
///
/// # Errors
/// Too many samples; all else is a fault.
pub fn submitted(
    samples: Option<SampleList>,
    named: Option<Shaped<String>>,
    dataset: Option<DatasetRow>,
    faults: &mut RequestFaults,
) -> Result<(&'static str, SubmittedSamples), Problem> {
    match (samples.is_some(), named.is_some()) {
        (true, true) => faults.push("/dataset", "there are `samples` as well; a job takes either"),
        (false, false) => faults.push("", "there are neither `samples` nor `dataset`; a job takes either"),
        (true, false) | (false, true) => {}
    }
    let _ = check::shaped("/dataset", named, faults);
    let samples = samples.unwrap_or_else(|| Ok(Vec::new())).map_err(|TooMany { count, limit }| {
        Problem::new(Kind::TooLarge, format!("there are {count} samples; the limit of a job is {limit}"))
    })?;
    let samples: Vec<Sample> = samples.into_iter().map(|Object(sample)| sample).collect();
    for (index, sample) in samples.iter().enumerate() {
        if let Some(error) = sample.label_error() {
            faults.push(format!("/samples/{index}/label"), error);
        }
        if let Some(error) = sample.columns.fault() {
            faults.push(format!("/samples/{index}/columns"), error);
        }
    }
    Ok(match dataset {
        Some(dataset) => ("/dataset", SubmittedSamples::Dataset(dataset)),
        None => ("/samples", SubmittedSamples::Inline(samples)),
    })
}

/// The dataset that a submission names, if it names one. Where it is gone, and the submission was made before under the same key,
/// what is known of it since then.
///
/// # Errors
/// Where there is no such dataset, or the key is that of another submission.
pub async fn named_dataset<K: JobKind>(
    jobs: &Jobs<K>,
    id: Option<&str>,
    key: Option<&str>,
) -> Result<Option<DatasetRow>, Problem> {
    let Some(id) = id else { return Ok(None) };
    if let Some(dataset) = jobs.store().dataset(jobs.client(), id).await? {
        return Ok(Some(dataset));
    }
    let earlier = match key {
        Some(key) => jobs.submitted_under(key).await?,
        None => None,
    };
    let earlier = earlier.ok_or(DatasetError::Unknown)?;
    if earlier.subject.dataset() != Some(id) {
        return Err(JobError::KeyReused.into());
    }
    let gone = DatasetRow::gone(id, &earlier.subject.samples(), earlier.created_at);
    gone.map(Some).map_err(Problem::internal)
}

/// Returns the time within which a job must end, counted from its submission.
pub fn timeout(seconds: Option<Shaped<u64>>, faults: &mut RequestFaults) -> Option<Duration> {
    let seconds = check::shaped("/timeout_seconds", seconds, faults);
    if let Some(seconds) = seconds.filter(|seconds| !(1..=MAX_TIMEOUT).contains(seconds)) {
        faults.push("/timeout_seconds", format!("the job has {seconds} seconds, outside 1 to {MAX_TIMEOUT}"));
    }
    seconds.map(Duration::from_secs)
}

/// Returns the idempotency key of the submission.
///
/// # Errors
/// Where the header has no value that is one.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let fault = || Problem::new(Kind::Invalid, format!("`{IDEMPOTENCY_KEY}` takes 1 to {MAX_KEY} ASCII characters"));
    key.map(|key| Some(key.to_owned())).ok_or_else(fault)
}

/// Refuses a job that would be cancelled in a moment, since the service ends and so does its store.
///
/// # Errors
/// [`JobError::Draining`]
pub fn refuse_lost_work(state: &ApiState) -> Result<(), Problem> {
    if state.draining.is_cancelled() && !state.jobs.store().is_durable() {
        return Err(JobError::Draining.into());
    }
    Ok(())
}

/// Notes the job that was submitted; gives it once it has ended, or as it stands when the time of `Prefer: wait=N` is over.
pub async fn awaited<K: JobKind>(
    state: &ApiState,
    jobs: &Jobs<K>,
    job: JobSnapshot<K::Subject>,
    headers: &HeaderMap,
) -> JobSnapshot<K::Subject> {
    state.note.update(|work| {
        work.model = Some(job.subject.model().to_owned());
        work.dataset = job.subject.dataset().map(str::to_owned);
        work.job = Some(job.id.to_string());
        work.texts = Some(job.subject.samples().samples);
    });
    let Some(seconds) = prefer::wait(headers) else { return job };
    let waited = tokio::select! {
        waited = jobs.wait(job.id, Duration::from_secs(seconds)) => waited.ok(),
        () = state.draining.cancelled() => None,
    };
    // Gone only if it finished and was deleted meanwhile; then the job as submitted is the best answer.
    waited.unwrap_or(job)
}

/// The answer to a submission: the job as `body`, with where it is unless it is final.
pub fn accepted<S: JobSubject>(
    job: &JobSnapshot<S>,
    location: String,
    headers: &HeaderMap,
    body: Response,
) -> Response {
    let applied = prefer::wait(headers).map(|seconds| [("preference-applied", format!("wait={seconds}"))]);
    match job.status.is_final() {
        true => (applied, body).into_response(),
        false => (StatusCode::ACCEPTED, applied, [(header::LOCATION, location)], body).into_response(),
    }
}
