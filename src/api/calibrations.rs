//! `/v1/calibrations`: scores of known non-members, which give other texts p-values.

use super::check::{self, MethodRequests, RequestFaults};
use super::conversations::SampleOrChat;
use super::jobs::request::{self, JobSamples, SampleList};
use super::jobs::{JobBody, JobContext, JobDocument, JobResource};
use super::problem::Problem;
use super::state::ApiState;
use crate::audits::{
    AuditMetrics, AuditRequest, AuditSubject, CalibratedMethod, CalibrationKind, CalibrationReport, EvidenceRequest,
};
use crate::datasets::SampleTotals;
use crate::jobs::Submission;
use crate::scorer::Overflow;
use crate::store::DatasetRow;
use crate::wire::Shaped;
use documents::Cut;
use mia::json::Object;
use mia::methods::{MethodRequest, Weighting};
use mia::statistics::CalibrationScores;
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
        Self(context.scorer.clone())
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

/// Known non-members, and what to compute of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `samples` or `dataset`")]
#[schema(as = CalibrationRequest)]
pub struct CalibrationBody {
    /// Name of the calibration in lists.
    #[schema(max_length = 200, value_type = Option<String>)]
    name: Option<Shaped<String>>,
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The texts, at least 19, none of them labelled a member; either they or `dataset`.
    #[schema(min_items = 19, value_type = Option<Vec<SampleOrChat>>)]
    #[serde(default, deserialize_with = "request::listed")]
    samples: Option<SampleList>,
    /// The way texts are cut into passages, each a sample of its `document`; they stay whole if left out.
    #[schema(value_type = Option<Cut>)]
    cut: Option<Shaped<Object<Cut>>>,
    /// Id of a dataset that was uploaded, in place of `samples`.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), value_type = Option<String>)]
    dataset: Option<Shaped<String>>,
    /// Methods to compute; loss, zlib, min_k and min_k_plus_plus, plain and with linear decay, if left out.
    #[schema(max_items = 256, value_type = Option<Vec<MethodRequest>>)]
    methods: Option<MethodRequests>,
    /// Treatment of a text that is longer than the model's context: `error` if left out.
    #[schema(value_type = Option<Overflow>)]
    overflow: Option<Shaped<Overflow>>,
    /// Maximum time from submission to the end, in seconds; the job fails after it. No limit if left out.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    timeout_seconds: Option<Shaped<u64>>,
}

impl JobBody for CalibrationBody {
    type Request = AuditRequest;

    fn dataset(&self) -> Option<&str> {
        request::named(self.dataset.as_ref())
    }

    fn conversations(&mut self) -> Option<(Option<&str>, &mut [SampleOrChat])> {
        let is_whole = self.cut.is_none();
        is_whole.then(|| (self.model.as_deref(), request::conversations(&mut self.samples)))
    }

    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<AuditRequest>, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let name = check::job_name(self.name, &mut faults);
        let submitted = JobSamples::new(self.samples, self.cut, self.dataset, dataset, &mut faults)?;
        if faults.is_empty() {
            submitted.refuse(samples_fault(&submitted.totals), &mut faults);
        }
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), false, submitted.totals.all_have_neighbors());
        let methods = check::methods(self.methods, &scope, &mut faults);
        for method in methods.iter().filter(|method| method.method.split().is_some()) {
            let detail = "the model is tuned on a share of the samples of an audit; name an adapter instead";
            faults.push(format!("/methods{}", method.pointer("split")), detail);
        }
        let is_of_audit = |weighting| weighting == Weighting::EntropyDataset;
        for method in methods.iter().filter(|method| method.method.pdr.is_some_and(|pdr| is_of_audit(pdr.weighting))) {
            let detail =
                "`entropy_dataset` depends on all texts of an audit, so that scores of others are not comparable";
            faults.push(format!("/methods{}", method.pointer("pdr/decay")), detail);
        }
        submitted.check_texts(&methods, &mut faults);
        let overflow = check::shaped("/overflow", self.overflow, &mut faults).unwrap_or_default();
        let timeout = request::timeout(self.timeout_seconds, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        let request = AuditRequest {
            model: model.id.clone(),
            methods: methods.to_vec(),
            overflow,
            metrics: AuditMetrics { bootstrap: None, ..AuditMetrics::default() },
            evidence: EvidenceRequest::default(),
        };
        Ok(Submission { request, name, samples: submitted.samples, idempotency_key: None, timeout })
    }
}

/// Why samples cannot calibrate, as far as their number tells.
fn samples_fault(totals: &SampleTotals) -> Option<String> {
    let SampleTotals { samples, members, .. } = *totals;
    let fewest = CalibrationScores::FEWEST;
    if members > 0 {
        return Some(format!("{members} of {samples} texts are members; a calibration takes known non-members"));
    }
    (samples < fewest).then(|| format!("there are {samples} texts; a calibration takes at least {fewest}"))
}
