//! What a client asks of an audit, and what is wrong with it.

use super::ApiState;
use super::check::{self, Faults};
use super::problem::Problem;
use crate::jobs::{AuditSpec, Metrics, Sample};
use crate::methods::{LabelledMethod, MethodRequest};
use crate::scorer::{Overflow, Plan};
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
    samples: Vec<SampleRequest>,
    /// What to compute; loss, zlib, min_k and min_k_plus_plus, plain and with linear decay, if left out.
    #[schema(max_items = 256)]
    methods: Option<Vec<MethodRequest>>,
    /// What to do with a text that is longer than the model's context: `error` if left out.
    overflow: Option<Overflow>,
    /// Which statistics to report.
    metrics: Option<Metrics>,
}

/// One text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `text`, and perhaps `id` and `label`")]
pub struct SampleRequest {
    /// Comes back with its scores; need not be unique.
    id: Option<String>,
    /// The text; `input` is accepted as another name of this field.
    #[serde(alias = "input")]
    text: String,
    /// 1 for a text that is known to be in the training data, 0 for one that is known not to be.
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 1)]
    label: Option<Label>,
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
        check_labels(&self.samples, &mut faults);
        let methods: Arc<[LabelledMethod]> = check::methods(self.methods.as_deref(), &mut faults);
        let metrics = self.metrics.unwrap_or_default();
        check_targets(&metrics.fpr_targets, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        let plan = Plan { model, methods, overflow: self.overflow.unwrap_or_default(), tokens: false };
        Ok(AuditSpec { plan, samples: self.samples.into_iter().map(Sample::from).collect(), metrics })
    }
}

impl From<SampleRequest> for Sample {
    fn from(sample: SampleRequest) -> Self {
        Self { id: sample.id, text: sample.text, member: sample.label.and_then(Label::member) }
    }
}

fn check_labels(samples: &[SampleRequest], faults: &mut Faults) {
    if samples.is_empty() {
        return faults.push("/samples", "the list of samples is empty: it takes at least one");
    }
    let labels = || samples.iter().enumerate().filter_map(|(index, sample)| Some((index, sample.label?)));
    for (index, label) in labels().filter(|(_, label)| label.member().is_none()) {
        faults.push(format!("/samples/{index}/label"), format!("the label is {}; it must be 0 or 1", label.0));
    }
    let count = |member| labels().filter(|(_, label)| label.member() == Some(member)).count();
    let (labelled, members, non_members) = (labels().count(), count(true), count(false));
    if (1..samples.len()).contains(&labelled) {
        let first = samples.iter().position(|sample| sample.label.is_none()).unwrap_or_default();
        let detail = format!(
            "{labelled} of {} samples have a label, /samples/{first} has none: all must have one, or none",
            samples.len()
        );
        faults.push("/samples", detail);
    } else if members == samples.len() || non_members == samples.len() {
        let detail =
            format!("there are {members} members and {non_members} non-members; an audit takes both, or no labels");
        faults.push("/samples", detail);
    }
}

fn check_targets(targets: &[f64], faults: &mut Faults) {
    let count = targets.len();
    if !(1..=MAX_FPR_TARGETS).contains(&count) {
        let detail = format!("there are {count} false-positive rates; there must be 1 to {MAX_FPR_TARGETS}");
        return faults.push("/metrics/fpr_targets", detail);
    }
    for (index, target) in targets.iter().enumerate().filter(|(_, target)| !(0.0..=1.0).contains(*target)) {
        faults.push(format!("/metrics/fpr_targets/{index}"), format!("the rate is {target:?}, outside [0, 1]"));
    }
}
