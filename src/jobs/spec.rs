//! What an audit is asked to do.

use crate::scorer::Plan;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One labelled (or unlabelled) text.
#[derive(Clone, Debug)]
pub struct Sample {
    pub id: Option<String>,
    pub text: String,
    /// Whether the text is known to be a member of the training data. Present in all samples of an audit or in none.
    pub member: Option<bool>,
}

/// Which statistics to report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// False-positive rates at which to report the true-positive rate, each in [0, 1].
    pub fpr_targets: Vec<f64>,
    /// Whether to list the points of the ROC curve.
    pub roc: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { fpr_targets: vec![0.005, 0.01, 0.05], roc: false }
    }
}

/// A whole audit.
#[derive(Clone)]
pub struct AuditSpec {
    pub plan: Plan,
    pub samples: Vec<Sample>,
    pub metrics: Metrics,
}
