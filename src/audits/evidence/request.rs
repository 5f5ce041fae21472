//! The basis of the verdict of an audit.

use mia::methods::Fault;
use mia::statistics::Procedure;
use serde::{Deserialize, Deserializer, Serialize};
use serde_untagged::UntaggedEnumVisitor;
use std::sync::Arc;
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

/// Maximum false discovery rate of a list. Above it, most of the listed texts may be non-members.
const MAX_FDR: f64 = 0.5;

/// Basis of the verdict of an audit, settled before anything is scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRequest {
    /// Label of the method that the verdict is about. Audits of earlier versions have none, and no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Arc<str>>,
    /// Id of a model that has not seen the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The reason for the control where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_default: Option<ControlDefault>,
    /// Within what the classes are compared as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stratify: Option<StratifyBy>,
    /// The share of members among texts like these, as the client states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<f64>,
    /// Source of the scores of known non-members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationSource>,
    /// A list of texts at a false discovery rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionRequest>,
    /// The plan that the audit keeps to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<CitedPlan>,
}

impl EvidenceRequest {
    /// The numbers that are out of their ranges, with pointers into the request.
    pub fn faults(&self) -> Vec<Fault> {
        let share = match &self.calibration {
            Some(CalibrationSource::Share(share)) => share_fault(share.share),
            _ => None,
        };
        let fdr = self.decisions.as_ref().and_then(|decisions| fdr_fault(decisions.fdr));
        [self.prior.and_then(prior_fault), share, fdr].into_iter().flatten().collect()
    }
}

/// The fault of a prior, which lies between 0 and 1.
pub fn prior_fault(prior: f64) -> Option<Fault> {
    let is_within = prior > 0.0 && prior < 1.0;
    (!is_within).then(|| Fault::new("/prior", format!("the prior is {prior:?}, outside (0, 1)")))
}

/// The fault of the share of non-members that are taken for known ones, which lies between 0 and 1.
pub fn share_fault(share: f64) -> Option<Fault> {
    let is_within = share > 0.0 && share < 1.0;
    (!is_within).then(|| Fault::new("/calibration/share", format!("the share is {share:?}, outside (0, 1)")))
}

/// The fault of a false discovery rate.
pub fn fdr_fault(fdr: f64) -> Option<Fault> {
    let is_within = fdr > 0.0 && fdr <= MAX_FDR;
    (!is_within).then(|| Fault::new("/decisions/fdr", format!("the false discovery rate is {fdr:?}, outside (0, 0.5]")))
}

/// The reason for a control that was not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlDefault {
    /// The model that is asked about was tuned from it, or is an adapter of it.
    Base,
    /// It is the configured reference model.
    Reference,
}

/// Within what the classes are compared as well as over all samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StratifyBy {
    /// The groups that the samples name.
    Group,
}

/// A plan that an audit keeps to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CitedPlan {
    /// `sha256:` and the SHA-256 of the plan as JSON.
    pub id: String,
    /// When it was made, in RFC 3339.
    pub created: String,
}

/// Source of the scores of known non-members.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum CalibrationSource {
    /// Id of a calibration; on the command line the file that it was made of.
    Stored(String),
    /// A share of the audit's own non-members, which then get no p-values.
    Share(CalibrationShare),
}

/// A share of an audit's non-members.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationShare {
    /// The share of the clusters of non-members.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0)]
    pub share: f64,
    /// Seed of the choice; 0 if left out.
    #[serde(default)]
    #[schema(required = false)]
    pub seed: u64,
}

/// A list of texts at a false discovery rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// Label of the method that decides.
    #[schema(value_type = String)]
    pub method: Arc<str>,
    /// The false discovery rate: the expected share of non-members among the texts listed.
    pub fdr: f64,
    pub procedure: Procedure,
}

impl<'de> Deserialize<'de> for CalibrationSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("the id of a calibration, or an object with `share`")
            .string(|id| Ok(Self::Stored(id.to_owned())))
            .map(|share| share.deserialize().map(Self::Share))
            .deserialize(deserializer)
    }
}
