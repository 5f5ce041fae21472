//! The body of an audit submission and its validation.

use super::check::{self, MethodRequests, RequestFaults};
use super::conversations::SampleOrChat;
use super::jobs::JobBody;
use super::jobs::request::{self, JobSamples, SampleList};
use super::problem::Problem;
use super::state::ApiState;
use crate::audits::{
    AuditMetrics, AuditOptions, AuditRequest, CalibrationSource, DecisionOptions, EvidenceOptions, ServedForecast,
    StratifyBy, with_default_primary,
};
use crate::jobs::Submission;
use crate::scorer::Overflow;
use crate::store::DatasetRow;
use crate::wire::Shaped;
use documents::Cut;
use mia::json::Object;
use mia::methods::{MethodRequest, possible_default_methods};
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

/// Samples to audit, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `samples` or `dataset`")]
#[schema(as = AuditRequest)]
pub struct AuditBody {
    /// Name of the audit in lists; the report does not depend on it.
    #[schema(examples("books of 2019"), max_length = 200)]
    #[schema(value_type = Option<String>)]
    name: Option<Shaped<String>>,
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The texts, all with a label or all without; either they or `dataset`.
    #[schema(min_items = 1, value_type = Option<Vec<SampleOrChat>>)]
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
    /// Statistics to report.
    #[schema(value_type = Option<AuditMetrics>)]
    metrics: Option<Shaped<Object<AuditMetrics>>>,
    /// Label of the method that the verdict is about, or its name where that is enough; if left out `ref`, else
    /// `min_k_plus_plus(k=0.2)`, else the first method.
    #[schema(value_type = Option<String>, examples("min_k_plus_plus(k=0.2)"))]
    primary: Option<Shaped<String>>,
    /// Id of a model that has not seen the members, which computes the same methods; if left out the model that the one asked about
    /// was tuned from (`base`, or the base of an adapter), else the configured reference model, and none with null.
    #[schema(value_type = Option<String>)]
    #[serde(default, deserialize_with = "given")]
    control: Option<Shaped<Option<String>>>,
    /// `group` compares the classes within the groups of the samples as well.
    #[schema(value_type = Option<StratifyBy>)]
    stratify: Option<Shaped<StratifyBy>>,
    /// The share of members among texts like these. With it each text's score of the primary method becomes a probability,
    /// which is no better than this share.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0.0, exclusive_maximum = 1.0)]
    prior: Option<Shaped<f64>>,
    /// Known non-members: the id of a calibration, or a share of the audit's own non-members, as in `{"share": 0.5}`. With them texts
    /// get p-values.
    #[schema(value_type = Option<CalibrationSource>)]
    calibration: Option<Shaped<CalibrationSource>>,
    /// The list of texts at a false discovery rate that the calibration makes; with the defaults if left out.
    #[schema(value_type = Option<DecisionOptions>)]
    decisions: Option<Shaped<Object<DecisionOptions>>>,
    /// Id of the plan that the audit keeps to.
    #[schema(value_type = Option<String>, examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"))]
    plan: Option<Shaped<String>>,
    /// Maximum time from submission to the end, in seconds; the audit fails after it. No limit if left out.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    timeout_seconds: Option<Shaped<u64>>,
    /// Maximum cost of what servers of models are asked for, by the forecast, in the currency of the settings; an audit that would cost
    /// more is refused. No limit if left out.
    #[schema(value_type = Option<f64>, minimum = 0.0)]
    max_cost: Option<Shaped<f64>>,
}

/// Reads a field that is null on purpose otherwise than one that is left out.
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl AuditBody {
    /// The plan that it names.
    pub fn plan(&self) -> Option<&str> {
        request::named(self.plan.as_ref())
    }
}

impl JobBody for AuditBody {
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
        let totals = &submitted.totals;
        if faults.is_empty() {
            submitted.refuse(totals.audit_fault(|number| submitted.place(number)), &mut faults);
        }
        let neighbors = totals.all_have_neighbors();
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), true, neighbors);
        let evidence = EvidenceOptions {
            primary: check::shaped("/primary", self.primary, &mut faults),
            control: check::shaped("/control", self.control, &mut faults),
            stratify: check::shaped("/stratify", self.stratify, &mut faults),
            prior: check::shaped("/prior", self.prior, &mut faults),
            calibration: check::shaped("/calibration", self.calibration, &mut faults),
            decisions: check::shaped("/decisions", self.decisions, &mut faults).map(|Object(decisions)| decisions),
        };
        let methods = match self.methods {
            None => with_default_primary(
                possible_default_methods(&scope),
                evidence.control_model(&scope, totals).as_deref(),
            )
            .into(),
            methods => check::methods(methods, &scope, &mut faults),
        };
        submitted.check_texts(&methods, &mut faults);
        let overflow = check::shaped("/overflow", self.overflow, &mut faults).unwrap_or_default();
        let metrics =
            check::shaped("/metrics", self.metrics, &mut faults).map(|Object(metrics)| metrics).unwrap_or_default();
        let _ = check::shaped("/plan", self.plan, &mut faults);
        let timeout = request::timeout(self.timeout_seconds, &mut faults);
        let model = model.as_ref().map(|model| model.id.clone()).unwrap_or_default();
        let options = AuditOptions { model, methods: methods.to_vec(), overflow, metrics, evidence };
        let request = options.settle(&scope, totals).map_err(|found| faults.extend_below("", found));
        let most = check::shaped("/max_cost", self.max_cost, &mut faults);
        if let (Some(most), Ok(request)) = (most, &request) {
            let served = ServedForecast::new(request, totals.samples as u64, totals.text_bytes, state.scorer.pool());
            if let Some(fault) = ServedForecast::cost_fault(served.as_ref(), most) {
                faults.push("/max_cost", fault);
            }
        }
        faults.finish()?;
        let request = request.map_err(|()| Problem::internal("a refused request has no faults"))?;
        Ok(Submission { request, name, samples: submitted.samples, idempotency_key: None, timeout })
    }
}
