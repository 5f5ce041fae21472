//! What an audit is asked to do.

use super::sample::Sample;
use crate::scorer::Plan;
use crate::statistics::Bootstrap;
use crate::wire::object_or_null;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which statistics to report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// False-positive rates at which to report the true-positive rate, each in [0, 1].
    pub fpr_targets: Vec<f64>,
    /// Whether to list the points of the ROC curve.
    pub roc: bool,
    /// How to draw the samples anew, so that it shows how the numbers vary; null for not at all.
    #[serde(deserialize_with = "object_or_null")]
    pub bootstrap: Option<Bootstrap>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { fpr_targets: vec![0.005, 0.01, 0.05], roc: false, bootstrap: Some(Bootstrap::default()) }
    }
}

/// A whole audit.
#[derive(Clone)]
pub struct AuditSpec {
    pub plan: Plan,
    pub samples: Vec<Sample>,
    pub metrics: Metrics,
}
