//! What a client asks of an audit, and what is wrong with it.

use super::ApiState;
use super::check::{self, RequestFaults};
use super::problem::{Kind, Problem};
use crate::audits::{AuditMetrics, AuditRequest, MAX_SAMPLES, Sample, samples_error};
use crate::methods::{MAX_METHODS, MethodRequest};
use crate::scorer::Overflow;
use crate::statistics::Bootstrap;
use crate::wire::{List, Object, TooMany, at_most, counted, object_or_null};
use serde::Deserialize;
use utoipa::ToSchema;

/// The most false-positive rates in a request.
const MAX_FPR_TARGETS: usize = 32;

/// Samples to audit, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `samples`")]
#[schema(as = AuditRequest)]
pub struct AuditBody {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The texts, all with a label or all without.
    #[schema(min_items = 1, value_type = Vec<Sample>)]
    #[serde(deserialize_with = "counted::<_, _, MAX_SAMPLES>")]
    samples: List<Object<Sample>>,
    /// What to compute; loss, zlib, min_k and min_k_plus_plus, plain and with linear decay, if left out.
    #[schema(max_items = 256)]
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_METHODS>")]
    methods: Option<Vec<MethodRequest>>,
    /// What to do with a text that is longer than the model's context: `error` if left out.
    overflow: Option<Overflow>,
    /// Which statistics to report.
    #[serde(default, deserialize_with = "object_or_null")]
    metrics: Option<AuditMetrics>,
}

impl AuditBody {
    /// The audit, or everything that is wrong with the request.
    ///
    /// # Errors
    /// An unknown model, or all other faults.
    pub fn check(self, state: &ApiState) -> Result<AuditRequest, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let samples = self.samples.map_err(|TooMany { count, limit }| {
            Problem::new(Kind::TooLarge, format!("there are {count} samples; the limit of an audit is {limit}"))
        })?;
        let samples: Vec<Sample> = samples.into_iter().map(|Object(sample)| sample).collect();
        for (index, sample) in samples.iter().enumerate() {
            if let Some(error) = sample.label_error() {
                faults.push(format!("/samples/{index}/label"), error);
            }
        }
        if faults.is_empty()
            && let Some(fault) = samples_error(samples.iter())
        {
            faults.push("/samples", fault);
        }
        let neighbors = samples.iter().all(|sample| sample.neighbors.is_some());
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), true, neighbors);
        let methods = check::methods(self.methods.as_deref(), &scope, &mut faults);
        let texts = samples.iter().map(|sample| (sample.text.as_str(), sample.neighbors.as_deref()));
        check::texts("/samples", texts, &methods, &mut faults);
        let metrics = self.metrics.unwrap_or_default();
        check_metrics(&metrics, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        Ok(AuditRequest {
            model: model.id.clone(),
            methods: methods.to_vec(),
            overflow: self.overflow.unwrap_or_default(),
            metrics,
            samples,
        })
    }
}

fn check_metrics(metrics: &AuditMetrics, faults: &mut RequestFaults) {
    for (field, detail) in metrics.bootstrap.iter().flat_map(Bootstrap::faults) {
        faults.push(format!("/metrics/bootstrap/{field}"), detail);
    }
    let targets = &metrics.fpr_targets;
    let count = targets.len();
    if !(1..=MAX_FPR_TARGETS).contains(&count) {
        let detail = format!("there are {count} false-positive rates; there must be 1 to {MAX_FPR_TARGETS}");
        return faults.push("/metrics/fpr_targets", detail);
    }
    for (index, target) in targets.iter().enumerate().filter(|(_, target)| !(0.0..=1.0).contains(*target)) {
        faults.push(format!("/metrics/fpr_targets/{index}"), format!("the rate is {target:?}, outside [0, 1]"));
    }
}
