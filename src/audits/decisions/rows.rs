//! Adds p-values and the list to the results of an audit.

use super::decide::{TestedCluster, decide};
use super::known::KnownNonMembers;
use crate::audits::calibrated_results::{CalibratedResults, Decisions, MethodCalibration};
use crate::audits::calibration_mismatch::CalibrationMismatch;
use crate::audits::calibrations::Calibration;
use crate::audits::cluster_ids::dense;
use crate::audits::evidence::{CalibrationSource, DecisionRequest, Effect};
use crate::audits::request::AuditRequest;
use crate::audits::results::AuditResults;
use indexmap::IndexMap;
use mia::statistics::{CalibrationScores, ClusterScores, kolmogorov_smirnov, mann_whitney};
use std::sync::Arc;

/// Adds the p-values of all listed methods and the list of the one that decides; nothing where the request has no calibration.
pub fn add_decisions(
    request: &AuditRequest,
    results: &mut AuditResults,
    calibration: Option<&Calibration>,
) -> Result<(), CalibrationMismatch> {
    let evidence = &request.evidence;
    let known = match (&evidence.calibration, calibration) {
        (Some(CalibrationSource::Share(share)), _) => KnownNonMembers::drawn(*share, results),
        (Some(CalibrationSource::Stored(_)), Some(calibration)) => KnownNonMembers::stored(calibration, results)?,
        (Some(CalibrationSource::Stored(id)), None) => return Err(CalibrationMismatch::Gone(id.clone())),
        (None, _) => return Ok(()),
    };
    let labels: Vec<Arc<str>> = results.listed().map(|(_, column)| Arc::clone(&column.method.label)).collect();
    let [tested_lengths, known_lengths] = known.lengths();
    let mut calibrated = CalibratedResults {
        digest: calibration.and_then(|calibration| calibration.digest().map(str::to_owned)),
        texts: known_lengths.len(),
        overlap: known.overlap,
        length_p_value: kolmogorov_smirnov(&tested_lengths, &known_lengths).ok().map(|test| test.p_value),
        methods: Vec::new(),
        decisions: None,
        dataset_test: None,
        effect: None,
        clusters: [0; 2],
        texts_per_cluster: 0,
    };
    for (place, label) in labels.iter().enumerate() {
        let scores = known.clustered.scores(|text| known.texts[text].scores[place].map(|score| [score]));
        let [tested, non_members] = [true, false].map(|label| of_list(&scores, known.clustered.labels(), label));
        if evidence.primary.as_ref() == Some(label) {
            calibrated.clusters = [tested.len(), non_members.len()];
            calibrated.texts_per_cluster = scores.texts;
            calibrated.dataset_test = mann_whitney(&tested, &non_members).ok();
            calibrated.effect =
                calibrated.dataset_test.and_then(|test| Effect::new(&scores, 0, &known.clustered, test.p_value));
        }
        let Ok(non_members) = CalibrationScores::new(non_members) else {
            calibrated.methods.push(None);
            continue;
        };
        calibrated.methods.push(Some(method_calibration(&non_members, &request.metrics.fpr_targets)));
        let tested = TestedColumn::new(results, &known, place, &scores, &non_members);
        tested.add_p_values(results, label);
        if let Some(decision) = evidence.decisions.as_ref().filter(|decision| decision.method == *label) {
            calibrated.decisions = Some(tested.add_decisions(results, decision, &non_members));
        }
    }
    results.calibration = Some(calibrated);
    Ok(())
}

/// The scores of the clusters of a list.
fn of_list(scores: &ClusterScores<1>, labels: &[bool], list: bool) -> Vec<f64> {
    let of_list = scores.values.iter().zip(labels).filter(|(_, label)| **label == list);
    of_list.filter_map(|(score, _)| score.map(|[score]| score)).collect()
}

fn method_calibration(scores: &CalibrationScores, targets: &[f64]) -> MethodCalibration {
    MethodCalibration {
        clusters: scores.size(),
        resolution: scores.resolution(),
        threshold_at_fpr: targets.iter().filter_map(|&fpr| scores.threshold(fpr)).collect(),
    }
}

/// The clusters of texts tested by one method.
struct TestedColumn {
    /// By number, in the order in which they appear.
    clusters: IndexMap<usize, TestedCluster>,
    /// The rows that have a score, each with its cluster.
    rows: Vec<(usize, usize)>,
}

impl TestedColumn {
    fn new(
        results: &AuditResults,
        known: &KnownNonMembers,
        place: usize,
        scores: &ClusterScores<1>,
        non_members: &CalibrationScores,
    ) -> Self {
        let mut column = Self { clusters: IndexMap::new(), rows: Vec::new() };
        let texts = &known.texts[..known.tested];
        let clusters = dense(texts.iter().map(|text| Some(text.cluster)));
        for (text, cluster) in texts.iter().zip(clusters) {
            let (Some(row), Some(_), Some([score])) = (text.row, text.scores[place], scores.values[cluster]) else {
                continue;
            };
            let non_member = results.rows[row].member.map(|member| !member);
            let tested = TestedCluster { score, p_value: non_members.p_value(score), non_member };
            let tested = column.clusters.entry(cluster).or_insert(tested);
            tested.non_member = tested.non_member.zip(non_member).map(|(all, this)| all && this);
            column.rows.push((row, cluster));
        }
        column
    }

    fn add_p_values(&self, results: &mut AuditResults, label: &Arc<str>) {
        for &(row, cluster) in &self.rows {
            results.rows[row].p_values.push((Arc::clone(label), self.clusters[&cluster].p_value));
        }
    }

    fn add_decisions(
        &self,
        results: &mut AuditResults,
        request: &DecisionRequest,
        known: &CalibrationScores,
    ) -> Decisions {
        let clusters: Vec<TestedCluster> = self.clusters.values().copied().collect();
        let (decisions, each) = decide(request, known, &clusters);
        for (row, cluster) in &self.rows {
            let decided = self.clusters.get_index_of(cluster).and_then(|place| each.get(place));
            if let Some(&(adjusted, listed)) = decided {
                (results.rows[*row].p_value_adjusted, results.rows[*row].flagged) = (Some(adjusted), Some(listed));
            }
        }
        decisions
    }
}
