//! Results of an audit that a calibration adds.

use super::evidence::Effect;
use mia::statistics::{CalibratedThreshold, MannWhitney, Procedure};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Results of an audit that a calibration adds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CalibratedResults {
    /// The digest of the calibration's samples, as datasets are named; `None` for a share of the audit's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Texts of the calibration.
    pub texts: usize,
    /// Clusters that are in the calibration and among the texts tested; they were removed from the calibration.
    pub overlap: usize,
    /// That the texts tested and those of the calibration have the same lengths, by Kolmogorov and Smirnov.
    pub length_p_value: Option<f64>,
    /// One entry per listed method; `None` if the calibration has too few scores of it.
    pub methods: Vec<Option<MethodCalibration>>,
    pub decisions: Option<Decisions>,
    /// Test of whether the texts tested score higher than those of the calibration, by the primary method.
    pub dataset_test: Option<MannWhitney>,
    /// Effect size of the texts tested over those of the calibration, by the primary method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Clusters of texts tested, and of known non-members, that the primary method scores.
    #[serde(default)]
    pub clusters: [usize; 2],
    /// The number of texts that the primary method's score of each cluster is the mean of.
    #[serde(default)]
    pub texts_per_cluster: usize,
}

/// Resolution of the p-values of a method, and the guarantees of thresholds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MethodCalibration {
    /// Clusters of known non-members that have a score.
    pub clusters: usize,
    /// The smallest p-value that is possible, 1 / (clusters + 1).
    pub resolution: f64,
    /// The threshold at each false-positive rate that the calibration is large enough for.
    pub threshold_at_fpr: Vec<CalibratedThreshold>,
}

/// The list of texts at a false discovery rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// Label of the method that decides.
    #[schema(value_type = String)]
    pub method: Arc<str>,
    pub procedure: Procedure,
    pub fdr: f64,
    /// The estimated share of non-members among the texts tested; of `storey` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pi0: Option<f64>,
    /// Clusters of texts tested.
    pub tested: usize,
    /// Clusters on the list.
    pub rejected: usize,
    /// The shortest list that a calibration of this size makes possible at all.
    pub minimum_discoveries: usize,
    /// The lowest score on the list; absent where the list is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The upper 95 % bound of the false-positive rate at that threshold, had it been fixed beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr_upper_95: Option<f64>,
    /// The upper 95 % bound of how many of the clusters tested would be listed if all were non-members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_discoveries_upper_95: Option<usize>,
    /// Clusters on the list that are labelled non-members; absent without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_members_rejected: Option<usize>,
}
