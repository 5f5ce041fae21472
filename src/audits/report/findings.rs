//! Findings from the scores of one method.

use mia::statistics::{BootstrapSummary, RocPoint, TprAtFpr};
use serde::Serialize;
use utoipa::ToSchema;

/// Statistics of the scores of one method.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MethodFindings {
    /// Samples that have a score.
    pub scored: usize,
    /// Absent without labels.
    #[serde(flatten)]
    pub separation: Option<Separation>,
    /// Variation over resampled samples; absent without labels, or if it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapSummary>,
    /// For a method with weights: against the same method without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus_baseline: Option<VersusBaseline>,
    /// Points of the ROC curve, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roc: Option<Vec<RocPoint>>,
}

/// Separation of the two classes.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Separation {
    /// Area under the ROC curve; null where a class has no scored sample.
    #[schema(required = false)]
    pub auroc: Option<f64>,
    /// By DeLong, or by Obuchowski where texts form clusters; null where a class has fewer than two clusters.
    #[schema(required = false)]
    pub auroc_standard_error: Option<f64>,
    /// In the order of the targets; empty where there is no ROC curve.
    #[schema(required = false)]
    pub tpr_at_fpr: Vec<TprAtFpr>,
    /// The smallest false-positive rate at which 95 % of the members are recognised.
    #[schema(required = false)]
    pub fpr_at_95_tpr: Option<f64>,
}

/// A method with weights against its baseline, on the samples that both score.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VersusBaseline {
    /// Label of the baseline, whether or not the request lists it.
    pub baseline: String,
    /// AUROC with weights minus AUROC without.
    pub delta: f64,
    /// `(1 + r) / (1 + N)`: N replicates of the bootstrap, r of them in which the weights did not help. Absent without a
    /// bootstrap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// `r / N`, as the PDR paper has it; it can be 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_raw: Option<f64>,
    /// `p_value` by Holm over all methods of the audit that are compared with a baseline; absent in groups and where there is no
    /// `p_value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// Of the difference over the replicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}
