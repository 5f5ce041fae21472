//! Audits, calibrations and tests as jobs.

use super::calibrations::{Calibration, calibration_report, score_known};
use super::error::{AuditError, AuditFailure, CalibrationMismatch};
use super::evidence::CalibrationSource;
use super::forecast::Forecast;
use super::limits::{MAX_SCORES, check_cost};
use super::membership_tests::{TestKind, TestRequest, run_test};
use super::request::AuditRequest;
use super::run::{AuditOutcome, run};
use super::run_event::RunEvent;
use super::stored_scores::{StoredScores, output};
use crate::datasets::{SampleTotals, estimated_tokens};
use crate::jobs::{
    FailureKind, JobError, JobFailure, JobKind, JobRequest, JobRun, JobSnapshot, JobSubject, JobSummary, Jobs,
    LocalRun, Submission, encoded,
};
use crate::retry::until_final;
use crate::scorer::Scorer;
use crate::store::{JobOutput, Store, StoreError};
use crate::telemetry::names;
use mia::statistics::{Warning, WarningCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// Audits as a kind of job, of the models of a scorer.
pub struct AuditKind(pub Scorer);

/// All audits; cheap to clone.
pub type Audits = Jobs<AuditKind>;

/// An audit as it stands.
pub type AuditSnapshot = JobSnapshot<AuditSubject>;

impl JobKind for AuditKind {
    const NAME: &'static str = "audit";
    // Enough that a short one seldom waits for a long one, few enough that the first ones finish first. They share the
    // engine's window of batch work, so more of them would not be faster.
    const MOST_RUNNING: usize = 4;
    const MOST_KEPT: usize = 4 * MAX_SCORES;
    const COUNTER: &'static str = names::AUDITS;
    type Request = AuditRequest;

    async fn run(&self, job: JobRun<'_, AuditRequest>) -> Result<JobOutput, JobFailure> {
        let calibration = named_calibration(job.store, &job.request).await?;
        // Statistics stay on disk until the audit has ended, so that rerunning it costs no forward pass.
        let _hold = self.0.engine().hold_statistics(job.is_resumed());
        let (request, progress) = (Arc::clone(&job.request), tell_progress(job.local));
        let scorer = job.scorer(&self.0);
        let AuditOutcome { results, mut report } = run(request, &job.samples, calibration, &scorer, progress).await?;
        job.local.set_note(job.local.note().as_deref().and_then(lasting_note));
        let earlier = until_final(StoreError::is_retryable, || job.store.earlier_jobs(job.id())).await;
        report.plan.earlier_audits = Some(earlier?);
        report.warnings.extend(started_over(&job, Self::NAME));
        encoded(move || output(&report, &results)).await
    }
}

impl Audits {
    /// Returns the scores of an audit, or `None` until it has succeeded.
    pub async fn scores(&self, id: Uuid) -> Result<Option<StoredScores>, AuditError> {
        StoredScores::open(self.store(), id).await
    }
}

/// Loads the calibration that an audit names; `None` if it names none.
async fn named_calibration(store: &Store, request: &AuditRequest) -> Result<Option<Calibration>, JobFailure> {
    let Some(CalibrationSource::Stored(id)) = &request.evidence.calibration else { return Ok(None) };
    let gone = || AuditFailure::from(CalibrationMismatch::Gone(id.clone()));
    let uuid = id.parse().map_err(|_| gone())?;
    let loaded = until_final(AuditError::is_retryable, || Calibration::load(store, uuid)).await;
    let calibration = loaded.map_err(|error| JobFailure::kept_back(FailureKind::StoreFailed, "store", &error))?;
    Ok(Some(calibration.ok_or_else(gone)?))
}

/// Calibrations as a kind of job, of the models of a scorer.
pub struct CalibrationKind(pub Scorer);

/// All calibrations; cheap to clone.
pub type Calibrations = Jobs<CalibrationKind>;

impl JobKind for CalibrationKind {
    const NAME: &'static str = "calibration";
    const MOST_RUNNING: usize = 2;
    const MOST_KEPT: usize = MAX_SCORES;
    const COUNTER: &'static str = names::CALIBRATIONS;
    type Request = AuditRequest;

    async fn run(&self, job: JobRun<'_, AuditRequest>) -> Result<JobOutput, JobFailure> {
        let _hold = self.0.engine().hold_statistics(job.is_resumed());
        let (scorer, progress) = (job.scorer(&self.0), tell_progress(job.local));
        let results = score_known(&job.request, &job.samples, &scorer, &progress).await?;
        encoded(move || output(&calibration_report(&results), &results)).await
    }
}

impl Calibrations {
    /// Returns the scores of a calibration, or `None` until it has succeeded.
    pub async fn scores(&self, id: Uuid) -> Result<Option<Calibration>, AuditError> {
        Calibration::load(self.store(), id).await
    }
}

/// Tests as a kind of job, of the models of a scorer.
pub struct TestJob(pub Scorer);

impl JobKind for TestJob {
    const NAME: &'static str = "test";
    const MOST_RUNNING: usize = 2;
    const MOST_KEPT: usize = MAX_SCORES;
    const COUNTER: &'static str = names::TESTS;
    type Request = TestRequest;

    async fn run(&self, job: JobRun<'_, TestRequest>) -> Result<JobOutput, JobFailure> {
        // Statistics stay on disk until the test has ended, so that rerunning it costs no forward pass.
        let _hold = self.0.engine().hold_statistics(job.is_resumed());
        let (request, progress) = (Arc::clone(&job.request), tell_progress(job.local));
        let mut report = run_test(request, &job.samples, &job.scorer(&self.0), progress).await?;
        job.local.set_note(None);
        report.warnings.extend(started_over(&job, Self::NAME));
        let tokens = report.usage.tokens;
        encoded(move || Ok(JobOutput { report: serde_json::to_string(&report)?, tokens, ..JobOutput::default() })).await
    }
}

/// Summary of an audit in lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSubject {
    /// Name given by the client; the report does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the model.
    pub model: String,
    /// The labels of the methods.
    pub methods: Vec<String>,
    /// Id of the dataset; `None` for samples that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of samples.
    pub total: usize,
    /// Numbers of members and of non-members; both 0 without labels.
    pub members: usize,
    pub non_members: usize,
}

impl JobRequest for AuditRequest {
    type Subject = AuditSubject;

    fn subject(job: &Submission<Self>, totals: &SampleTotals) -> AuditSubject {
        AuditSubject::new(&job.request, job.name.clone(), job.samples.dataset_id(), totals)
    }

    fn weight(&self, totals: &SampleTotals) -> Result<usize, JobError> {
        check_cost(self, totals)
    }

    fn tokens(&self, totals: &SampleTotals) -> u64 {
        estimated_tokens(totals.text_bytes).saturating_mul(self.passes())
    }
}

impl AuditSubject {
    fn new(request: &AuditRequest, name: Option<String>, dataset: Option<String>, totals: &SampleTotals) -> Self {
        Self {
            name,
            model: request.model.clone(),
            methods: request.methods.iter().map(|method| method.label.to_string()).collect(),
            dataset,
            total: totals.samples,
            members: totals.members,
            non_members: totals.non_members,
        }
    }
}

impl JobSubject for AuditSubject {
    fn summary(&self) -> JobSummary<'_> {
        let samples = SampleTotals {
            samples: self.total,
            members: self.members,
            non_members: self.non_members,
            groups: 1,
            grouped: self.total,
            with_neighbors: self.total,
            ..SampleTotals::default()
        };
        let (name, dataset) = (self.name.as_deref(), self.dataset.as_deref());
        JobSummary { name, model: &self.model, dataset, samples, total: self.total }
    }
}

impl JobRequest for TestRequest {
    type Subject = TestSubject;

    fn subject(job: &Submission<Self>, totals: &SampleTotals) -> TestSubject {
        let scored = AuditSubject::new(&job.request.scoring, job.name.clone(), job.samples.dataset_id(), totals);
        TestSubject { kind: job.request.layout.kind(), scored }
    }

    fn weight(&self, totals: &SampleTotals) -> Result<usize, JobError> {
        check_cost(&self.scoring, totals)
    }

    fn tokens(&self, totals: &SampleTotals) -> u64 {
        self.scoring.tokens(totals)
    }
}

/// Summary of a test in lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestSubject {
    pub kind: TestKind,
    /// The samples that are scored, and how; of a test of kind `dataset` the suspects count as members.
    pub scored: AuditSubject,
}

impl JobSubject for TestSubject {
    fn summary(&self) -> JobSummary<'_> {
        self.scored.summary()
    }
}

/// Notes how far a job is where clients see it. The forecast stays in the note, once there is one.
fn tell_progress(local: &Arc<LocalRun>) -> impl Fn(RunEvent) + use<> {
    let (noted, forecast) = (Arc::clone(local), OnceLock::<Forecast>::new());
    let note = |forecast: &OnceLock<Forecast>, moment: Value| {
        let lasting = forecast.get().map(|forecast| ("forecast".to_owned(), json!(forecast)));
        let moment = moment.as_object().cloned().unwrap_or_default();
        let all: Map<String, Value> = lasting.into_iter().chain(moment).collect();
        (!all.is_empty()).then(|| Value::Object(all).to_string())
    };
    move |event| match event {
        RunEvent::Read { samples } => noted.set_note(note(&forecast, json!({ "read": samples }))),
        RunEvent::Tuned(step) => noted.set_note(note(&forecast, json!({ "tuning": step }))),
        RunEvent::Forecast(known) => {
            let _ = forecast.set(known);
            noted.set_note(note(&forecast, Value::Null));
        }
        RunEvent::Bound { numerics } => {
            noted.set_note(note(&forecast, Value::Null));
            noted.set_numerics(numerics);
        }
        RunEvent::Scored { done } => noted.set_done(done),
        RunEvent::Shared(_) => {}
        RunEvent::Testing => noted.set_note(note(&forecast, json!({ "testing": true }))),
    }
}

/// The part of a note that stays once the run has ended: the forecast.
fn lasting_note(note: &str) -> Option<String> {
    let mut fields: Map<String, Value> = serde_json::from_str(note).ok()?;
    let forecast = fields.remove("forecast")?;
    Some(json!({ "forecast": forecast }).to_string())
}

/// The warning of a job of a kind that was begun anew.
fn started_over<R>(job: &JobRun<R>, kind: &str) -> Option<Warning> {
    let detail = format!(
        "the {kind} was interrupted, and begun anew, since the program, the processor, the device or the files of a model were others \
         than before; all scores come from what provenance names"
    );
    job.is_started_over().then_some(Warning { code: WarningCode::StartedOver, detail })
}
