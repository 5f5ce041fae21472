//! The report of an audit, as clients read it.

use super::provenance::Provenance;
use crate::audits::evidence::{CitedPlan, ControlFindings, Verdict};
use crate::audits::findings::{
    BlindFindings, Decisions, MethodCalibration, SharedTextFindings, SplitOutcome, WorkFindings,
};
use crate::audits::results::ExclusionCount;
use crate::audits::selected_tokens::SelectedTokens;
use crate::datasets::SampleId;
use crate::scorer::Usage;
use mia::methods::LabelledMethod;
use mia::statistics::{BootstrapSummary, MannWhitney, PositionRow, PriorTest, RocPoint, TprAtFpr, Warning};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// Report of an audit.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AuditReport {
    pub samples: SampleCounts,
    /// One entry per method, in the order of the request.
    pub methods: Vec<MethodReport>,
    /// Mean and deviation of methods with several seeds; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub seeds: Vec<SeedSummary>,
    /// Results of the tunings for `fsd` with `split`; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub splits: Vec<SplitOutcome>,
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
    /// The tokens that `min_k` and `min_k_plus_plus` select most often, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub selected_tokens: Vec<SelectedTokens>,
    /// Separation of the classes by the texts alone; absent without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind: Option<BlindFindings>,
    /// Test of whether early positions separate the classes better than late ones, as positional decay assumes; absent without
    /// labels and if a text has a single scored token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior_test: Option<PriorTest>,
    /// The list of texts at a false discovery rate; absent without a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// The works that are tested: documents that texts name, each among the known works of the calibration, in the order in which
    /// they appear. Absent without a calibration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub works: Vec<WorkFindings>,
    /// Text that known works share with the works tested, and what is left out for it; absent where no text of the calibration names
    /// a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_text: Option<SharedTextFindings>,
    /// Test of whether the texts tested score higher than those of the calibration, by the primary method; absent without a
    /// calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_test: Option<MannWhitney>,
    /// Verdict of the audit; absent without labels and without a calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    pub warnings: Vec<Warning>,
    pub usage: Usage,
    /// Plan of the audit, and number of earlier audits of these texts.
    pub plan: PlanFindings,
    pub provenance: Provenance,
}

/// States whether everything that decides the report was fixed before anything was scored.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PlanFindings {
    /// False where the audit names no plan: methods, primary, control and grouping may have been chosen by their results.
    pub planned: bool,
    #[serde(flatten)]
    pub cited: Option<CitedPlan>,
    /// Audits of the same texts against the model of this id that had succeeded before this one was submitted, as far as the store
    /// holds them and they belong to the same client; absent without a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_audits: Option<usize>,
}

/// Number of samples, and those left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SampleCounts {
    pub total: usize,
    pub members: usize,
    pub non_members: usize,
    /// Clusters of texts: equal or nearly equal texts, and texts of one document, count once wherever chance is reckoned with.
    pub clusters: usize,
    /// Texts in the largest cluster.
    pub largest_cluster: usize,
    /// The first 1,000 scores that are missing.
    pub excluded: Vec<Excluded>,
    /// All scores that are missing, counted by method and reason.
    pub exclusions: Vec<ExclusionCount>,
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
    /// As that of the whole audit, where it was asked for by group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_profile: Option<Vec<PositionRow>>,
    /// Positions beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub positions_left_out: usize,
    pub warnings: Vec<Warning>,
}

/// Results of one method.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MethodReport {
    #[serde(flatten)]
    pub method: LabelledMethod,
    #[serde(flatten)]
    pub findings: MethodFindings,
    /// That members score no higher than non-members, against permutations of the clusters' labels; one-sided. It stands for the
    /// primary method alone; absent without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same for whoever picks the best of the listed methods, by Westfall and Young (max-T).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// AUROC over the pairs of a member and a non-member of the same group, where `stratify` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auroc_stratified: Option<f64>,
    /// Separation beyond that under the control model; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlFindings>,
    /// Resolution of its p-values; absent without a calibration, or where that has fewer than 19 scores of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<MethodCalibration>,
    /// Means over groups, where they were asked for; absent without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<Averages>,
}

/// Results of one method in a group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GroupMethod {
    /// That of the method among those of the whole audit.
    #[schema(value_type = String)]
    pub label: Arc<str>,
    #[serde(flatten)]
    pub findings: MethodFindings,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

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

/// The means of a method's numbers, by what they are over.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Averages {
    pub group: GroupAverage,
}

/// The unweighted (macro) means over the groups: each counts the same, however many samples it has.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct GroupAverage {
    /// Groups in the means.
    pub groups: usize,
    /// Groups that are left out, since the method scored samples of one class only, or none.
    pub left_out: usize,
    /// Mean area under the ROC curve; null where every group is left out.
    #[schema(required = false)]
    pub auroc: Option<f64>,
    /// Mean true-positive rates, in the order of the targets; empty where every group is left out.
    pub tpr_at_fpr: Vec<MeanTpr>,
}

/// A true-positive rate averaged over groups, each with a threshold of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct MeanTpr {
    /// The bound on the false-positive rate in each group.
    pub fpr: f64,
    /// Mean of the largest true-positive rates within the bound.
    pub tpr: f64,
}

/// Methods that differ by their seeds alone.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeedSummary {
    /// Their labels, in the order of the request.
    #[schema(value_type = Vec<String>)]
    pub labels: Vec<Arc<str>>,
    pub seeds: Vec<u64>,
    pub auroc: SeedSpread,
    /// AUROC minus that of the score before tuning, on the same samples; absent where one has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<SeedSpread>,
}

/// A number for each seed.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeedSpread {
    pub mean: f64,
    /// With n - 1 in the denominator.
    pub standard_deviation: f64,
    /// In the order of the seeds.
    pub each: Vec<f64>,
}
