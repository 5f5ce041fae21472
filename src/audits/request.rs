//! An audit as it is asked for, stored and run.

use super::evidence::EvidenceRequest;
use super::metric_options::{AverageOver, ProfileOptions, profile_options};
use crate::scorer::{Overflow, Plan};
use mia::json::object_or_null;
use mia::methods::{LabelledMethod, Method};
use mia::statistics::Bootstrap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Request of an audit, as plain data: methods are resolved, and models are named by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRequest {
    /// Id of the model whose training data is asked about.
    pub model: String,
    /// Methods to compute, with every parameter.
    pub methods: Vec<LabelledMethod>,
    /// Treatment of a text that is longer than the model's context.
    pub overflow: Overflow,
    /// Statistics to report.
    pub metrics: AuditMetrics,
    /// Basis of the verdict.
    #[serde(default)]
    pub evidence: EvidenceRequest,
}

impl AuditRequest {
    /// The method that the verdict is about.
    #[must_use]
    pub fn primary(&self) -> Option<&Method> {
        let label = self.evidence.primary.as_ref()?;
        self.methods.iter().find(|method| method.label == *label).map(|method| &method.method)
    }
}

/// Statistics to report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Metrics)]
pub struct AuditMetrics {
    /// False-positive rates at which to report the true-positive rate, each in [0, 1].
    pub fpr_targets: Vec<f64>,
    /// If true, the points of the ROC curve are listed.
    pub roc: bool,
    /// Bootstrap of the samples; null for none.
    #[serde(deserialize_with = "object_or_null")]
    pub bootstrap: Option<Bootstrap>,
    /// Over what each method's numbers are averaged: `["group"]` gives the unweighted means over the groups.
    #[schema(max_items = 1)]
    pub average: Vec<AverageOver>,
    /// Texts and positions of the position profile.
    #[serde(deserialize_with = "profile_options")]
    #[schema(value_type = Option<ProfileOptions>)]
    pub position_profile: ProfileOptions,
    /// Number of tokens to list, by class, of those that `min_k` and `min_k_plus_plus` select most often; null for none.
    #[schema(minimum = 1, maximum = 1000)]
    pub selected_tokens: Option<usize>,
}

impl From<&AuditRequest> for Plan {
    fn from(request: &AuditRequest) -> Self {
        Self {
            model: request.model.clone(),
            methods: request.methods.as_slice().into(),
            overflow: request.overflow,
            tokens: false,
            splits: Arc::new([]),
        }
    }
}

impl Default for AuditMetrics {
    fn default() -> Self {
        Self {
            fpr_targets: vec![0.005, 0.01, 0.05],
            roc: false,
            bootstrap: Some(Bootstrap::default()),
            average: Vec::new(),
            position_profile: ProfileOptions::default(),
            selected_tokens: None,
        }
    }
}
