//! The basis of the verdict of an audit.

use super::decision_request::{CalibrationSource, DecisionRequest};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

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
