//! AUROC of clusters, alone and beside that under a control model.

use super::CONFIDENCE;
use super::negative_controls::NegativeControl;
use mia::statistics::{
    ClusterScores, ClusteredTexts, PairedScore, StratifiedDifference, normal_quantile, stratified_delong,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The confidence of the interval of an effect; its one-sided bound has the same.
const EFFECT_CONFIDENCE: f64 = 0.99;

/// Effect size: how far the first list scores above the second one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    /// Over clusters, within groups where samples name some.
    pub auroc: f64,
    /// By DeLong.
    pub standard_error: f64,
    /// Normal, two-sided, at a confidence of 0.99, within [0, 1].
    pub interval: [f64; 2],
    /// One-sided lower bound at a confidence of 0.99.
    pub lower_bound: f64,
    /// Of an AUROC of at most one half, one-sided.
    pub p_value: f64,
}

/// Separation by the method beyond its separation of the same texts under the control model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ControlFindings {
    /// Id of the control model.
    pub model: String,
    /// AUROC under the control over clusters that both score, within groups where samples name some; of `ref`, `wbc` and `ez` that of `loss`.
    pub auroc: f64,
    /// AUROC under the model asked about minus that under the control.
    pub difference: f64,
    /// By DeLong.
    pub standard_error: f64,
    /// Normal, at a confidence of 0.95; absent without a standard error above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Of a difference of at most 0, against permutations of the clusters' labels, one-sided; absent where nothing varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same for whoever picks the best of the listed methods, by Westfall and Young (max-T).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// The same difference between groups of non-members of at least 50 texts, where there is nothing to find. They decide
    /// nothing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schema(required = false)]
    pub negative_controls: Vec<NegativeControl>,
}

impl Effect {
    /// Computes the effect of one of several scores of clusters, given its p-value; `None` if there is no pair.
    #[must_use]
    pub fn new<const N: usize>(
        scores: &ClusterScores<N>,
        place: usize,
        clustered: &ClusteredTexts,
        p_value: f64,
    ) -> Option<Self> {
        let above_half = difference(scores, clustered, |scores| [0.0, scores[place]])?;
        let (auroc, standard_error) = (0.5 + above_half.delta, above_half.standard_error);
        let half = normal_quantile(EFFECT_CONFIDENCE)? * standard_error;
        // A one-sided bound has the quantile of a two-sided interval at twice the distance from 1.
        let one_sided = normal_quantile(2.0 * EFFECT_CONFIDENCE - 1.0)? * standard_error;
        Some(Self {
            auroc,
            standard_error,
            interval: [auroc - half, auroc + half].map(|bound| bound.clamp(0.0, 1.0)),
            lower_bound: (auroc - one_sided).max(0.0),
            p_value,
        })
    }
}

impl ControlFindings {
    /// Compares the scores of clusters under the model asked about and under the control, in this order; `None` where there is
    /// no pair.
    #[must_use]
    pub fn new(model: &str, scores: &ClusterScores<2>, clustered: &ClusteredTexts) -> Option<Self> {
        let control = difference(scores, clustered, |scores| [0.0, scores[1]])?;
        let StratifiedDifference { delta, standard_error } = difference(scores, clustered, |[a, b]| [b, a])?;
        let half = normal_quantile(CONFIDENCE)? * standard_error;
        Some(Self {
            model: model.to_owned(),
            auroc: 0.5 + control.delta,
            difference: delta,
            standard_error,
            interval: (standard_error > 0.0).then_some([delta - half, delta + half]),
            p_value: None,
            p_value_adjusted: None,
            negative_controls: Vec::new(),
        })
    }
}

fn difference<const N: usize>(
    scores: &ClusterScores<N>,
    clustered: &ClusteredTexts,
    pair: impl Fn([f64; N]) -> [f64; 2],
) -> Option<StratifiedDifference> {
    let scored = scores.values.iter().zip(clustered.labels()).zip(clustered.strata());
    let pairs = scored.filter_map(|((values, &member), &stratum)| {
        let [first, second] = pair((*values)?);
        Some((PairedScore { member, first, second }, stratum))
    });
    let (samples, strata): (Vec<PairedScore>, Vec<usize>) = pairs.unzip();
    stratified_delong(&samples, &strata)
}
