//! Dataset inference: all methods of a test as one score of each cluster.

use crate::audits::evidence::{ControlFindings, Effect, LEVEL, Verdict, VerdictBasis, VerdictSplits, verdict};
use crate::audits::report::Evidence;
use crate::audits::results::AuditResults;
use mia::methods::LabelledMethod;
use mia::statistics::{
    ClusterScores, DatasetInference, HypothesisError, InferenceFeatures, InferenceSplit, dataset_inference,
    normal_quantile, twice_median,
};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The name of the combination of all methods.
const COMBINATION: &str = "di";

/// The combination of all methods, whose weights are learnt on one half of the clusters of each list and tested on the other, over 20 random
/// splits (Maini et al. 2024).
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestInference)]
pub struct Inference {
    /// Decides the splits.
    pub seed: u64,
    /// Texts that do not count: without a score of some method, or of some method under the control, or in a cluster with texts of both
    /// lists.
    pub left_out: usize,
    /// Clusters of suspects and of held-out texts that have scores of all methods.
    pub clusters: [usize; 2],
    /// The number of texts that each cluster's scores are the mean of.
    pub texts_per_cluster: usize,
    /// The weight of each method.
    pub weights: Vec<MethodWeight>,
    /// Clusters of each list in the half that a split tests.
    pub tested: [usize; 2],
    /// Twice the median p-value of the splits, at most 1, which is a p-value whatever their dependence. Absent if there is no test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Medians over the splits. The lower bound is one of the largest AUROC of any split's weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Medians over the splits, and twice the median p-value; absent without a control, or where it computes none of the methods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlFindings>,
    pub splits: Vec<InferenceSplit>,
    /// Why there is no test, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The weight of a method in the combination.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestMethodWeight)]
pub struct MethodWeight {
    #[schema(value_type = String)]
    pub label: Arc<str>,
    /// Mean over the splits, of the method's standardised score in log-odds of being a suspect.
    pub weight: f64,
}

impl Inference {
    /// Computes the combination from the scores of all listed methods; it is of no use once it is not `wanted` any more.
    pub fn new(results: &AuditResults, evidence: &Evidence, seed: u64, wanted: &dyn Fn() -> bool) -> Self {
        let listed: Vec<(usize, &LabelledMethod)> =
            results.listed().map(|(place, column)| (place, &column.method)).collect();
        let control_score = |row: usize, (place, method): (usize, &LabelledMethod)| {
            results.rows[row].control_score(place, method).filter(|score| score.is_finite())
        };
        let rows = 0..results.rows.len();
        // A method that the control cannot compute has no score of any text there.
        let is_controlled =
            |method: &(usize, &LabelledMethod)| rows.clone().any(|row| control_score(row, *method).is_some());
        let controlled: Vec<(usize, &LabelledMethod)> = listed.iter().copied().filter(is_controlled).collect();
        let target = |row: usize, place: usize| evidence.score(row, place).filter(|score| score.is_finite());
        let is_complete = |row: usize| {
            listed.iter().all(|&(place, _)| target(row, place).is_some())
                && controlled.iter().all(|&method| control_score(row, method).is_some())
        };
        let complete: Vec<bool> = rows.clone().map(is_complete).collect();
        let cluster_scores = |score: &dyn Fn(usize) -> Option<f64>| {
            evidence.clustered.scores(|row| score(row).filter(|_| complete[row]).map(|score| [score]))
        };
        let columns = |scores: Vec<ClusterScores<1>>| -> Vec<Vec<f64>> {
            let column = |scores: &ClusterScores<1>| scores.column(0).into_iter().flatten().collect();
            scores.iter().map(column).collect()
        };
        let scores: Vec<ClusterScores<1>> =
            listed.iter().map(|&(place, _)| cluster_scores(&|row| target(row, place))).collect();
        let control: Vec<ClusterScores<1>> =
            controlled.iter().map(|&method| cluster_scores(&|row| control_score(row, method))).collect();
        let values = scores.first().map_or(&[][..], |scores| &scores.values);
        let labels: Vec<bool> = values
            .iter()
            .zip(evidence.clustered.labels())
            .filter(|(value, _)| value.is_some())
            .map(|(_, label)| *label)
            .collect();
        let (features, control) = (columns(scores.clone()), columns(control));
        let inferred = dataset_inference(
            &InferenceFeatures {
                labels: &labels,
                features: &features,
                control: results.control.as_ref().map(|_| control.as_slice()),
                seed,
            },
            wanted,
        );
        let suspects = labels.iter().filter(|label| **label).count();
        Self {
            left_out: complete.iter().filter(|complete| !**complete).count(),
            clusters: [suspects, labels.len() - suspects],
            texts_per_cluster: scores.first().map_or(0, |scores| scores.texts),
            ..Self::of_splits(seed, &listed, results, inferred)
        }
    }

    fn of_splits(
        seed: u64,
        listed: &[(usize, &LabelledMethod)],
        results: &AuditResults,
        inferred: Result<DatasetInference, HypothesisError>,
    ) -> Self {
        let error = inferred.as_ref().err().map(ToString::to_string);
        let inferred = inferred.unwrap_or_default();
        let weights = listed.iter().zip(&inferred.weights);
        Self {
            seed,
            left_out: 0,
            clusters: [0, 0],
            texts_per_cluster: 0,
            weights: weights
                .map(|((_, method), weight)| MethodWeight { label: Arc::clone(&method.label), weight: *weight })
                .collect(),
            tested: inferred.tested,
            p_value: inferred.p_value(),
            effect: effect(&inferred),
            control: results.control.as_ref().and_then(|control| control_findings(&control.id, &inferred)),
            splits: inferred.splits,
            error,
        }
    }

    /// The verdict, by the rules for two lists.
    pub fn verdict(&self, results: &AuditResults, lists: [&'static str; 2], committed: Option<bool>) -> Verdict {
        verdict(&VerdictBasis {
            primary: &COMBINATION.into(),
            model: &results.model,
            lists,
            clusters: self.clusters,
            texts_per_cluster: self.texts_per_cluster,
            splits: Some(VerdictSplits { number: self.splits.len(), tested: self.tested }),
            effect: self.effect,
            control: results.control.as_ref().map(|control| (control, self.control.as_ref())),
            comparability: results.comparability.as_ref(),
            committed,
        })
    }
}

/// The effect over splits. Its bounds are medians of bounds at half the level, as the p-value is twice the median.
fn effect(inferred: &DatasetInference) -> Option<Effect> {
    let [low, high] = bounds(inferred, 1.0 - LEVEL / 2.0, |split| Some([split.auroc, split.standard_error]))?;
    let one_sided = bounds(inferred, 1.0 - LEVEL, |split| Some([split.auroc, split.standard_error]))?;
    Some(Effect {
        auroc: inferred.median(|split| Some(split.auroc))?,
        standard_error: inferred.median(|split| Some(split.standard_error))?,
        interval: [low, high].map(|bound| bound.clamp(0.0, 1.0)),
        lower_bound: one_sided[0].max(0.0),
        p_value: inferred.p_value()?,
    })
}

fn control_findings(model: &str, inferred: &DatasetInference) -> Option<ControlFindings> {
    let difference = |split: &InferenceSplit| split.control.map(|control| [control.difference, control.standard_error]);
    Some(ControlFindings {
        model: model.to_owned(),
        auroc: inferred.median(|split| Some(split.control?.auroc))?,
        difference: inferred.median(|split| Some(split.control?.difference))?,
        standard_error: inferred.median(|split| Some(split.control?.standard_error))?,
        interval: bounds(inferred, 0.975, difference),
        p_value: twice_median(inferred.splits.iter().filter_map(|split| Some(split.control?.p_value))),
        p_value_adjusted: None,
        negative_controls: Vec::new(),
    })
}

/// The medians over splits of the bounds of normal intervals at two-sided `confidence`; the lower median of lower bounds, the upper of upper.
fn bounds(
    inferred: &DatasetInference,
    confidence: f64,
    estimate: impl Fn(&InferenceSplit) -> Option<[f64; 2]>,
) -> Option<[f64; 2]> {
    let quantile = normal_quantile(confidence)?;
    let bound =
        |sign: f64| inferred.median(|split| estimate(split).map(|[value, error]| sign * value - quantile * error));
    Some([bound(1.0)?, -bound(-1.0)?])
}
