//! What an audit reports.

mod build;
mod methods;

pub(super) use build::{Findings, build};

use super::sample::SampleId;
use super::spec::Metrics;
use crate::methods::LabelledMethod;
use crate::models::precision::Rounding;
use crate::scorer::Usage;
use crate::statistics::{BootstrapSummary, PositionRow, RocPoint, TprAtFpr, Warning};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// What an audit found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AuditReport {
    pub samples: SampleCounts,
    /// One entry per method, in the order of the request.
    pub methods: Vec<MethodReport>,
    /// The same for each group of samples, in the order in which groups appear; absent where no sample names a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub groups: Vec<GroupReport>,
    /// Mean log-probability and entropy by position: whether the signal that positional decay amplifies is there.
    pub position_profile: Vec<PositionRow>,
    /// Positions beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub positions_left_out: usize,
    pub warnings: Vec<Warning>,
    pub usage: Usage,
    pub provenance: Provenance,
}

/// How many samples there were, and which were left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SampleCounts {
    pub total: usize,
    pub members: usize,
    pub non_members: usize,
    pub excluded: Vec<Excluded>,
}

/// A sample that a method (or, without a label, every method) could not score.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Excluded {
    /// Place among the samples, from 0.
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<SampleId>,
    /// Label of the method; absent where no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Arc<str>>,
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
}

/// The samples of one group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GroupReport {
    pub group: String,
    pub total: usize,
    pub members: usize,
    pub non_members: usize,
    /// One entry per method, in the order of the request.
    pub methods: Vec<GroupMethod>,
    pub warnings: Vec<Warning>,
}

/// What one method found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MethodReport {
    #[serde(flatten)]
    pub method: LabelledMethod,
    #[serde(flatten)]
    pub findings: MethodFindings,
}

/// What one method found in a group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GroupMethod {
    /// That of the method among those of the whole audit.
    #[schema(value_type = String)]
    pub label: Arc<str>,
    #[serde(flatten)]
    pub findings: MethodFindings,
}

/// What the scores of one method say.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MethodFindings {
    /// Samples that have a score.
    pub scored: usize,
    /// Absent without labels.
    #[serde(flatten)]
    pub separation: Option<Separation>,
    /// How the numbers vary over samples drawn anew; absent without labels, or where it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapSummary>,
    /// For a method with weights: against the same method without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus_baseline: Option<VersusBaseline>,
    /// Points of the ROC curve, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roc: Option<Vec<RocPoint>>,
}

/// How far apart the two classes are.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Separation {
    /// Area under the ROC curve; null where a class has no scored sample.
    #[schema(required = false)]
    pub auroc: Option<f64>,
    /// By DeLong; null where a class has fewer than two samples.
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
    /// Of the difference over the replicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// What is needed to do the same again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Provenance {
    pub model: String,
    pub model_digest: String,
    pub tokenizer_digest: String,
    pub dtype: String,
    /// How far its numbers may be from those in f32, by checkpoints that were tested on the CPU; absent in f32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,
    pub device: String,
    /// The commit of a model from the Hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The other models that took part: reference models and those that made neighbours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub other_models: Vec<OtherModel>,
    pub program_version: String,
    /// SHA-256 over the samples in order: of each its label (`1`, `0` or `-`), the bytes of its text as 64 bits
    /// (little-endian), and the text.
    pub dataset_digest: String,
    /// The request with its defaults filled in.
    pub request: ExpandedRequest,
}

/// A model that took part beside the one asked about.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OtherModel {
    pub model: String,
    pub model_digest: String,
    pub tokenizer_digest: String,
    pub dtype: String,
    /// How far its numbers may be from those in f32, by checkpoints that were tested on the CPU; absent in f32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,
}

/// The request of an audit with its defaults filled in, without the samples.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExpandedRequest {
    pub methods: Vec<LabelledMethod>,
    pub overflow: crate::scorer::Overflow,
    pub metrics: Metrics,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
