//! Adds p-values and the list to the results of an audit.

use super::decide::{TestedCluster, decide};
use super::known::KnownNonMembers;
use crate::audits::calibrated_results::{CalibratedResults, Decisions, MethodCalibration};
use crate::audits::calibration_mismatch::CalibrationMismatch;
use crate::audits::calibrations::Calibration;
use crate::audits::cluster_ids::dense;
use crate::audits::evidence::{CalibrationSource, DecisionRequest};
use crate::audits::request::AuditRequest;
use crate::audits::results::AuditResults;
use indexmap::IndexMap;
use mia::statistics::{CalibrationScores, Shift, kolmogorov_smirnov, mann_whitney};
use std::sync::Arc;

/// Adds the p-values of all listed methods and the list of the one that decides; nothing where the request has no calibration.
/// `shift` says whether words tell the texts from those of the calibration, where that is known.
pub fn add_decisions(
    request: &AuditRequest,
    results: &mut AuditResults,
    calibration: Option<&Calibration>,
    shift: Option<Shift>,
) -> Result<(), CalibrationMismatch> {
    let evidence = &request.evidence;
    let known = match (&evidence.calibration, calibration) {
        (Some(CalibrationSource::Share(share)), _) => KnownNonMembers::drawn(*share, results),
        (Some(CalibrationSource::Stored(_)), Some(calibration)) => KnownNonMembers::stored(calibration, results)?,
        (Some(CalibrationSource::Stored(id)), None) => return Err(CalibrationMismatch::Gone(id.clone())),
        (None, _) => return Ok(()),
    };
    let clusters = dense(results.rows.iter().map(|row| row.cluster));
    let listed: Vec<(usize, Arc<str>)> =
        results.listed().map(|(place, column)| (place, Arc::clone(&column.method.label))).collect();
    let lengths: Vec<f64> = (results.rows.iter().zip(&known.tested))
        .filter(|(_, tested)| **tested)
        .map(|(row, _)| row.scored_tokens as f64)
        .collect();
    let mut calibrated = CalibratedResults {
        texts: known.texts,
        overlap: known.overlap,
        length_p_value: kolmogorov_smirnov(&lengths, &known.lengths).ok().map(|test| test.p_value),
        methods: Vec::new(),
        decisions: None,
        dataset_test: None,
        shift,
        tested: 0,
    };
    for ((place, label), scores) in listed.iter().zip(&known.scores) {
        let Ok(scores) = scores else {
            calibrated.methods.push(None);
            continue;
        };
        calibrated.methods.push(Some(method_calibration(scores, &request.metrics.fpr_targets)));
        let tested = TestedColumn::new(results, *place, &known.tested, &clusters, scores);
        tested.add_p_values(results, label);
        if evidence.primary.as_ref() == Some(label) {
            let highest: Vec<f64> = tested.clusters.values().map(|cluster| cluster.score).collect();
            calibrated.tested = highest.len();
            calibrated.dataset_test = mann_whitney(&highest, scores.ascending()).ok();
        }
        if let Some(decision) = evidence.decisions.as_ref().filter(|decision| decision.method == *label) {
            calibrated.decisions = Some(tested.add_decisions(results, decision, scores));
        }
    }
    results.calibration = Some(calibrated);
    Ok(())
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
        place: usize,
        tested: &[bool],
        clusters: &[usize],
        known: &CalibrationScores,
    ) -> Self {
        let mut column = Self { clusters: IndexMap::new(), rows: Vec::new() };
        for (row, sample) in results.rows.iter().enumerate().filter(|(row, _)| tested[*row]) {
            let Some(score) = sample.scores[place] else { continue };
            let non_member = sample.member.map(|member| !member);
            let cluster =
                column.clusters.entry(clusters[row]).or_insert(TestedCluster { score, p_value: 1.0, non_member });
            cluster.score = cluster.score.max(score);
            cluster.non_member = cluster.non_member.zip(non_member).map(|(all, this)| all && this);
            column.rows.push((row, clusters[row]));
        }
        column.clusters.values_mut().for_each(|cluster| cluster.p_value = known.p_value(cluster.score));
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
