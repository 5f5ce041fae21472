//! Parts that submissions of jobs have in common: samples, timeout, and the headers `Prefer` and `Idempotency-Key`.

use crate::api::check::{self, RequestFaults};
use crate::api::conversations::SampleOrChat;
use crate::api::problem::{Kind, Problem};
use crate::api::state::{ApiState, ClientSlot};
use crate::audits::MAX_SAMPLES;
use crate::datasets::{DatasetError, Sample, SampleTotals, SubmittedSamples};
use crate::jobs::{JobError, JobKind, JobSnapshot, JobSubject, JobSummary, Jobs, Subject};
use crate::samples::{CutSampleError, cut_sample};
use crate::store::DatasetRow;
use crate::wire::Shaped;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use documents::Cut;
use mia::json::{List, Object, TooMany, counted};
use mia::methods::{LabelledMethod, faults_of_texts};
use serde::{Deserialize, Deserializer};
use std::time::Duration;

/// The header of the draft "The Idempotency-Key HTTP Header Field" of the IETF.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Maximum length of its value.
const MAX_KEY: usize = 255;
/// Maximum timeout of a job in seconds: a year.
const MAX_TIMEOUT: u64 = 31_536_000;
/// The longest wait of `Prefer: wait=N`, in seconds.
const MAX_WAIT: u64 = 600;

/// Maximum number of bytes of the passages of a request, with their columns.
pub const MAX_CUT_BYTES: usize = 256 << 20;

pub type SampleList = List<SampleOrChat>;

/// Returns the samples of a body; an empty slice if the body has none or too many.
pub fn conversations(samples: &mut Option<SampleList>) -> &mut [SampleOrChat] {
    match samples {
        Some(Ok(samples)) => samples,
        _ => &mut [],
    }
}

/// Reads an optional list of samples or texts.
pub fn listed<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<List<T>>, D::Error> {
    counted::<_, _, MAX_SAMPLES>(deserializer).map(Some)
}

/// The elements of a list, unless there are more than `taker` takes.
pub fn within_limit<T>(list: Option<List<T>>, elements: &str, taker: &str) -> Result<Option<Vec<T>>, Problem> {
    list.transpose().map_err(|TooMany { count, limit }| {
        Problem::new(Kind::TooLarge, format!("there are {count} {elements}; the limit of {taker} is {limit}"))
    })
}

/// The dataset that a request names.
pub fn named(dataset: Option<&Shaped<String>>) -> Option<&str> {
    dataset.and_then(|Shaped(dataset)| dataset.as_deref().ok())
}

/// The samples of a job with their totals.
pub struct JobSamples {
    /// Pointer to them in the body; `None` where the body has none.
    pub pointer: Option<String>,
    pub samples: SubmittedSamples,
    pub totals: SampleTotals,
    /// The index of the sample in the body that each passage is of; empty where samples are not cut.
    origins: Vec<usize>,
}

impl JobSamples {
    /// The samples of `samples` in the body, cut into passages if the body says so, or those of the dataset.
    pub fn new(
        samples: Option<SampleList>,
        cut: Option<Shaped<Object<Cut>>>,
        named: Option<Shaped<String>>,
        dataset: Option<DatasetRow>,
        faults: &mut RequestFaults,
    ) -> Result<Self, Problem> {
        let samples = within_limit(samples, "samples", "a job")?;
        let samples: Option<Vec<Sample>> = samples.map(|list| {
            let numbered = list.into_iter().enumerate();
            numbered.map(|(index, sample)| sample.checked(&format!("/samples/{index}"), faults)).collect()
        });
        let cut = check::shaped("/cut", cut, faults).map(|Object(cut)| cut);
        let (samples, origins) = match (samples, cut) {
            (Some(samples), Some(cut)) => {
                cut_samples(samples, cut, faults).map(|(samples, origins)| (Some(samples), origins))?
            }
            (None, Some(_)) => {
                faults.push("/cut", "a dataset is cut when it is uploaded");
                (None, Vec::new())
            }
            (samples, None) => (samples, Vec::new()),
        };
        Ok(Self { origins, ..Self::from_field("samples", samples, named, dataset, faults)? })
    }

    /// Returns the pointer to the sample that a text is or is cut from, by the index of the text.
    pub fn place(&self, index: usize) -> String {
        format!("/samples/{}", self.origins.get(index).unwrap_or(&index))
    }

    /// The samples of a field of the body, or those of the dataset.
    pub fn from_field(
        field: &str,
        samples: Option<Vec<Sample>>,
        named: Option<Shaped<String>>,
        dataset: Option<DatasetRow>,
        faults: &mut RequestFaults,
    ) -> Result<Self, Problem> {
        let pointer = match (&samples, &named) {
            (Some(_), _) => Some(format!("/{field}")),
            (None, _) => dataset.is_some().then(|| "/dataset".to_owned()),
        };
        match (&samples, &named) {
            (Some(_), Some(_)) => {
                faults.push("/dataset", format!("there are `{field}` as well; a job takes either"));
            }
            (None, None) => faults.push("", format!("there are neither `{field}` nor `dataset`; a job takes either")),
            _ => {}
        }
        let _ = check::shaped("/dataset", named, faults);
        let samples = samples.unwrap_or_default();
        for (index, sample) in samples.iter().enumerate() {
            if let Some(error) = sample.label_error() {
                faults.push(format!("/{field}/{index}/label"), error);
            }
            if let Some(error) = sample.spans_error() {
                faults.push(format!("/{field}/{index}/spans"), error);
            }
            if let Some(error) = sample.columns.fault() {
                faults.push(format!("/{field}/{index}/columns"), error);
            }
        }
        let samples = match dataset {
            Some(dataset) => SubmittedSamples::Dataset(dataset),
            None => SubmittedSamples::Inline(samples),
        };
        Ok(Self { pointer, totals: samples.totals().map_err(JobError::from)?, samples, origins: Vec::new() })
    }

    /// Notes why a job cannot take the samples.
    pub fn refuse(&self, fault: Option<String>, faults: &mut RequestFaults) {
        if let (Some(pointer), Some(fault)) = (&self.pointer, fault) {
            faults.push(pointer, fault);
        }
    }

    /// Notes the faults of texts that came along, for these methods.
    pub fn check_texts(&self, methods: &[LabelledMethod], faults: &mut RequestFaults) {
        if let SubmittedSamples::Inline(samples) = &self.samples {
            let texts = samples.iter().map(|sample| (sample.text.as_str(), sample.neighbors.as_deref()));
            faults.extend_below("", faults_of_texts(texts, |index| self.place(index), methods, "/methods"));
        }
    }
}

/// The passages of samples, each with the index of its sample. Samples with faults of their own, which are named later, stay whole.
fn cut_samples(
    samples: Vec<Sample>,
    cut: Cut,
    faults: &mut RequestFaults,
) -> Result<(Vec<Sample>, Vec<usize>), Problem> {
    if let Err(fault) = cut.check() {
        faults.push("/cut", fault.to_string());
        return Ok((samples, Vec::new()));
    }
    if samples.iter().any(|sample| sample.label_error().is_some() || sample.columns.fault().is_some()) {
        return Ok((samples, Vec::new()));
    }
    let (mut passages, mut origins, mut budget) = (Vec::new(), Vec::new(), MAX_CUT_BYTES);
    for (index, sample) in samples.iter().enumerate() {
        match cut_sample(sample, index.to_string(), cut, &mut budget) {
            Ok(cut) => {
                origins.resize(origins.len() + cut.len(), index);
                passages.extend(cut);
            }
            Err(fault @ CutSampleError::TooLarge) => return Err(Problem::new(Kind::TooLarge, fault.to_string())),
            Err(fault) => {
                let field = if let CutSampleError::WholeText(field) = fault { field } else { "text" };
                faults.push(format!("/samples/{index}/{field}"), fault.to_string());
            }
        }
    }
    let list = if passages.len() > MAX_SAMPLES {
        Err(TooMany { count: passages.len(), limit: MAX_SAMPLES })
    } else {
        Ok(passages)
    };
    let passages = within_limit(Some(list), "passages of the samples", "a job")?.unwrap_or_default();
    Ok((passages, origins))
}

/// The dataset that a submission names, if it names one. Where it is gone, and the submission was made before under the same key,
/// what is known of it since then.
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
    if earlier.subject.summary().dataset != Some(id) {
        return Err(JobError::KeyReused.into());
    }
    let gone = DatasetRow::gone(id, &earlier.subject.summary().samples, earlier.created_at);
    gone.map(Some).map_err(Problem::internal)
}

/// The time within which a job must end, counted from its submission.
pub fn timeout(seconds: Option<Shaped<u64>>, faults: &mut RequestFaults) -> Option<Duration> {
    let seconds = check::shaped("/timeout_seconds", seconds, faults);
    if let Some(seconds) = seconds.filter(|seconds| !(1..=MAX_TIMEOUT).contains(seconds)) {
        faults.push("/timeout_seconds", format!("the job has {seconds} seconds, outside 1 to {MAX_TIMEOUT}"));
    }
    seconds.map(Duration::from_secs)
}

pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let fault = || Problem::new(Kind::Invalid, format!("`{IDEMPOTENCY_KEY}` takes 1 to {MAX_KEY} ASCII characters"));
    key.map(|key| Some(key.to_owned())).ok_or_else(fault)
}

/// Refuses a job that would be cancelled in a moment, since the service ends and so does its store.
pub fn refuse_lost_work(state: &ApiState) -> Result<(), Problem> {
    if state.draining.is_cancelled() && !state.jobs.store().is_durable() {
        return Err(JobError::Draining.into());
    }
    Ok(())
}

/// The wait of a submission, with its slot.
pub struct Wait {
    seconds: u64,
    _slot: ClientSlot,
}

/// Takes a slot for the wait of `Prefer: wait=N`, if there is one. Called before the submission, so that one that is refused has
/// queued nothing.
pub fn wait(state: &ApiState, headers: &HeaderMap) -> Result<Option<Wait>, Problem> {
    let Some(seconds) = preferred_wait(headers) else { return Ok(None) };
    Ok(Some(Wait { seconds, _slot: state.slot(&state.slots.waits, "waiting submission")? }))
}

/// Records the job in the request's note, and waits for its end as long as the wait allows. Returns its latest state.
pub async fn awaited<K: JobKind>(
    state: &ApiState,
    jobs: &Jobs<K>,
    job: JobSnapshot<Subject<K>>,
    wait: Option<Wait>,
) -> JobSnapshot<Subject<K>> {
    state.note.update(|work| {
        let JobSummary { model, dataset, samples, .. } = job.subject.summary();
        work.model = Some(model.to_owned());
        work.dataset = dataset.map(str::to_owned);
        work.job = Some(job.id.to_string());
        work.texts = Some(samples.samples);
    });
    let Some(wait) = wait else { return job };
    let waited = tokio::select! {
        waited = jobs.wait(job.id, Duration::from_secs(wait.seconds)) => waited.ok(),
        () = state.draining.cancelled() => None,
    };
    // Gone only if it finished and was deleted meanwhile; then the job as submitted is the best answer.
    waited.unwrap_or(job)
}

/// The answer to a submission: the job as `body`, with its path unless it is final.
pub fn accepted<S: JobSubject>(
    job: &JobSnapshot<S>,
    location: String,
    headers: &HeaderMap,
    body: Response,
) -> Response {
    let applied = preferred_wait(headers).map(|seconds| [("preference-applied", format!("wait={seconds}"))]);
    match job.status.is_final() {
        true => (applied, body).into_response(),
        false => (StatusCode::ACCEPTED, applied, [(header::LOCATION, location)], body).into_response(),
    }
}

/// The seconds of `Prefer: wait=N` (RFC 7240), at most [`MAX_WAIT`]. A value that cannot be understood is ignored, as the RFC says.
fn preferred_wait(headers: &HeaderMap) -> Option<u64> {
    let lines = headers.get_all("prefer").into_iter().filter_map(|line| line.to_str().ok());
    // The first of a preference given twice counts; its parameters are left out.
    let value = lines.flat_map(|line| line.split(',')).find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim())
    })?;
    let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A number that is too large for the type is a long wait all the same.
    is_number.then(|| value.parse().unwrap_or(MAX_WAIT).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::preferred_wait;
    use axum::http::{HeaderMap, HeaderValue};

    #[test]
    fn every_spelling_of_the_rfc_is_understood() {
        let cases: [(&[&'static str], Option<u64>); 12] = [
            (&["wait=60"], Some(60)),
            (&["respond-async, WAIT = \"7\" ; x=y"], Some(7)),
            (&["return=minimal", "wait=5"], Some(5)),
            (&["wait=1, wait=2"], Some(1)),
            (&["wait=0"], Some(0)),
            (&["wait=601"], Some(600)),
            (&["wait=99999999999999999999999"], Some(600)),
            (&["wait=-1"], None),
            (&["wait=1.5"], None),
            (&["wait"], None),
            (&["wait="], None),
            (&[], None),
        ];
        for (lines, seconds) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("prefer", HeaderValue::from_static(line));
            }
            assert_eq!(preferred_wait(&headers), seconds, "{lines:?}");
        }
    }
}
