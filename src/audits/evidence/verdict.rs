//! The verdict on two lists of texts, as data (`docs/verdict.md`).

use super::comparison::Effect;
use crate::pool::ModelInfo;
use mia::statistics::Comparability;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// Minimum number of clusters of each list for a verdict.
pub const FEWEST_CLUSTERS: usize = 20;

/// Verdict about two lists of texts. The sentence is made of the other fields alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    pub state: VerdictState,
    pub reason: VerdictReason,
    pub design: Design,
    /// The null hypothesis.
    pub hypothesis: String,
    /// The significance level of the one-sided tests.
    pub level: f64,
    /// Label of the method that was tested; `di` for the combination of all methods.
    #[schema(value_type = String)]
    pub primary: Arc<str>,
    pub model: VerdictModel,
    /// Names of the lists: `members` and `non-members`, `texts` and `known non-members`, or `suspects` and
    /// `held-out texts`.
    pub lists: [String; 2],
    /// Clusters of each list that are compared.
    pub clusters: [usize; 2],
    /// The number of texts that each cluster's score is the mean of.
    pub texts_per_cluster: usize,
    /// Of the combination of all methods: the splits that effect and p-values are computed over.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub splits: Option<VerdictSplits>,
    /// That of the effect or, where there is a control, the larger of that and of the difference to it: both must be at most
    /// `level`. Absent where nothing was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Absent where nothing was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The method under the control model; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<VerdictControl>,
    /// Comparison of the lists by what can be computed without the model; absent if it could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparability: Option<Comparability>,
    /// Smallest AUROC that these numbers of clusters, or those that a split tests, would have shown at this level with a power of 0.8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub could_have_found: Option<f64>,
    /// True if the test is the one that was committed to; absent without a commitment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub committed: Option<bool>,
    /// Assumptions of the test.
    pub assumptions: Vec<String>,
    pub sentence: String,
}

/// Splits of the clusters into a half on which weights are learnt and one on which they are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerdictSplits {
    /// Number of splits. The effect is the median over them, and the p-value twice their median p-value, which is valid under any
    /// dependence.
    pub number: usize,
    /// Clusters of each list in the half that is tested.
    pub tested: [usize; 2],
}

/// Design of the study: how a text came to be in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Design {
    /// Chance decided, by the owner's own draw.
    Randomised,
    /// The model completes long passages, beside a control text.
    Extraction,
    /// Somebody collected the lists.
    Observational,
}

/// Conclusion. `evidence` takes a randomised design or extraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum VerdictState {
    Evidence,
    NoEvidence,
    /// The first list scores higher by more than chance and by more than the differences of the texts could explain; of
    /// `order`, the published order scores higher than random ones.
    Association,
    NoAssociation,
    /// The test shows nothing in either direction, for the reason given.
    Inconclusive,
}

/// Why the verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum VerdictReason {
    /// AUROC and its difference to the control are above chance, and AUROC is above what the lists' differences could explain.
    AboveControl,
    /// AUROC is above chance and above what the lists' differences could explain; there is no control.
    AboveChance,
    /// The p-value of AUROC is above the level.
    NotAboveChance,
    /// The p-value of the difference to the control is above the level.
    NotAboveControl,
    /// The first list scores lower than the other one: the labels may be the wrong way round.
    MembersScoreLower,
    /// AUROC is above chance, but not above what the lists' differences could explain.
    NotAboveDifferences,
    /// The test is not the one that the client committed to.
    CommitmentMismatch,
    /// The lists differ in what can be computed without the model.
    ListsDiffer,
    /// The lists are too short to show that they are comparable.
    TooFewToCompare,
    /// The texts of a list are not at hand, so that it is not known whether the lists are comparable.
    NotCompared,
    /// A list has fewer than 20 clusters of texts with a score.
    TooFew,
    /// The method has no scores to compare, or none under the control.
    NotScored,
}

/// The model that a verdict is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerdictModel {
    pub id: String,
    pub digest: String,
    /// SHA-256 over the files of the adapter that it is under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_digest: Option<String>,
}

impl From<&ModelInfo> for VerdictModel {
    fn from(model: &ModelInfo) -> Self {
        let ModelInfo { id, digest, adapter, .. } = model.clone();
        Self { id, digest, adapter_digest: adapter }
    }
}

/// The method under the control model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VerdictControl {
    pub model: String,
    pub digest: String,
    /// AUROC under the control, of `ref`, `wbc` and `ez` that of `loss`.
    pub auroc: f64,
    /// AUROC under the model minus that under the control.
    pub difference: f64,
    /// Of a difference of at most 0, by permutations of the clusters' labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
}
