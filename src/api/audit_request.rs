//! What a client asks of an audit, and what is wrong with it.

use super::ApiState;
use super::check::{self, Faults};
use super::problem::Problem;
use crate::jobs::{AuditSpec, Metrics, Sample};
use crate::methods::{LabelledMethod, MethodRequest};
use crate::scorer::{Overflow, Plan};
use crate::statistics::Bootstrap;
use crate::wire::{Object, object_or_null};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;

/// The most false-positive rates in a request.
const MAX_FPR_TARGETS: usize = 32;

/// Samples to audit, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `samples`")]
pub struct AuditRequest {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The texts, all with a label or all without.
    #[schema(min_items = 1)]
    #[schema(value_type = Vec<SampleRequest>)]
    samples: Vec<Object<SampleRequest>>,
    /// What to compute; loss, zlib, min_k and min_k_plus_plus, plain and with linear decay, if left out.
    #[schema(max_items = 256)]
    methods: Option<Vec<MethodRequest>>,
    /// What to do with a text that is longer than the model's context: `error` if left out.
    overflow: Option<Overflow>,
    /// Which statistics to report.
    #[serde(default, deserialize_with = "object_or_null")]
    metrics: Option<Metrics>,
}

/// One text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `text`, and perhaps `id`, `label`, `group` and `neighbors`")]
pub struct SampleRequest {
    /// Comes back with its scores; need not be unique.
    id: Option<String>,
    /// The text; `input` is accepted as another name of this field.
    #[serde(alias = "input")]
    text: String,
    /// 1 for a text that is known to be in the training data, 0 for one that is known not to be.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 1)]
    label: Option<Label>,
    /// What it is counted with, beside being counted with all.
    group: Option<String>,
    /// Texts that differ little from it, for the method `neighbor`.
    #[schema(min_items = 1)]
    neighbors: Option<Vec<String>>,
}

/// A number where 0 or 1 belongs; which of the two is looked at with all other faults.
#[derive(Clone, Copy, Debug)]
struct Label(f64);

impl Label {
    fn member(self) -> Option<bool> {
        if self.0 == 1.0 {
            Some(true)
        } else if self.0 == 0.0 {
            Some(false)
        } else {
            None
        }
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LabelVisitor;

        impl Visitor<'_> for LabelVisitor {
            type Value = Label;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number 0 or 1")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Label, E> {
                Ok(Label(number as f64))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Label, E> {
                Ok(Label(number as f64))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Label, E> {
                Ok(Label(number))
            }
        }

        deserializer.deserialize_any(LabelVisitor)
    }
}

impl AuditRequest {
    /// The audit, or everything that is wrong with the request.
    ///
    /// # Errors
    /// An unknown model, or all other faults.
    pub fn check(self, state: &ApiState) -> Result<AuditSpec, Problem> {
        let mut faults = Faults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        for (index, label) in
            self.samples.iter().enumerate().filter_map(|(index, sample)| Some((index, sample.0.label?)))
        {
            if label.member().is_none() {
                faults.push(format!("/samples/{index}/label"), format!("the label is {}; it must be 0 or 1", label.0));
            }
        }
        let samples: Vec<Sample> = self.samples.into_iter().map(|Object(sample)| sample.into()).collect();
        if faults.is_empty()
            && let Some(fault) = AuditSpec::fault_of(&samples)
        {
            faults.push("/samples", fault);
        }
        let neighbors = samples.iter().all(|sample| sample.neighbors.is_some());
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), true, neighbors);
        let methods: Arc<[LabelledMethod]> = check::methods(self.methods.as_deref(), &scope, &mut faults);
        let texts = samples.iter().map(|sample| (sample.text.as_str(), sample.neighbors.as_deref()));
        check::texts("/samples", texts, &methods, &mut faults);
        let metrics = self.metrics.unwrap_or_default();
        check_metrics(&metrics, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        let plan =
            Plan { model: model.id.clone(), methods, overflow: self.overflow.unwrap_or_default(), tokens: false };
        Ok(AuditSpec { plan, samples, metrics })
    }
}

impl From<SampleRequest> for Sample {
    fn from(sample: SampleRequest) -> Self {
        let SampleRequest { id, text, label, group, neighbors } = sample;
        Self { id, text, member: label.and_then(Label::member), group, neighbors }
    }
}

fn check_metrics(metrics: &Metrics, faults: &mut Faults) {
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
