//! p-values of an audit's texts against known non-members, and the list of texts at a stated false discovery rate.

use super::clusters::{dense, list_scores};
use super::error::CalibrationMismatch;
use super::evidence::{CalibrationSource, DecisionRequest, Effect};
use super::findings::{CalibratedResults, Decisions, MethodCalibration, WorkFindings};
use super::known_non_members::{KnownNonMembers, KnownWorks};
use super::request::AuditRequest;
use super::results::{AuditResults, MAX_NAMED, SampleScores};
use crate::datasets::SampleId;
use indexmap::IndexMap;
use mia::statistics::{
    CalibrationScores, ClusterScores, discover, false_discoveries_upper, fpr_upper, kolmogorov_smirnov, mann_whitney,
    minimum_discoveries,
};
use std::sync::Arc;

/// Of the bounds.
const CONFIDENCE: f64 = 0.95;

/// Adds the p-values of all listed methods and the list of the one that decides; nothing where the request has no calibration.
pub fn add_decisions(
    request: &AuditRequest,
    results: &mut AuditResults,
    known_works: Option<&KnownWorks>,
) -> Result<(), CalibrationMismatch> {
    let evidence = &request.evidence;
    let known = match (&evidence.calibration, known_works) {
        (Some(CalibrationSource::Share(share)), _) => KnownNonMembers::drawn(*share, results),
        (Some(CalibrationSource::Stored(_)), Some(works)) => KnownNonMembers::stored(works, results)?,
        (Some(CalibrationSource::Stored(id)), None) => return Err(CalibrationMismatch::Gone(id.clone())),
        (None, _) => return Ok(()),
    };
    let labels: Vec<Arc<str>> = results.listed().map(|(_, column)| Arc::clone(&column.method.label)).collect();
    let [tested_lengths, known_lengths] = known.lengths();
    let mut calibrated = CalibratedResults {
        digest: known_works.and_then(|works| works.calibration.digest().map(str::to_owned)),
        texts: known_lengths.len(),
        overlap: known.overlap,
        overlapping_documents: known.overlapping_documents.iter().take(MAX_NAMED).cloned().collect(),
        shared_text: known_works.and_then(|works| Some(works.shared.as_ref()?.findings.clone())),
        length_p_value: kolmogorov_smirnov(&tested_lengths, &known_lengths).ok().map(|test| test.p_value),
        ..CalibratedResults::default()
    };
    for (place, label) in labels.iter().enumerate() {
        let scores = known.clustered.scores(|text| known.texts[text].scores[place].map(|score| [score]));
        let [tested, non_members] = [true, false].map(|label| list_scores(&scores, &known.clustered, label));
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
        calibrated.methods.push(Some(MethodCalibration {
            clusters: non_members.size(),
            resolution: non_members.resolution(),
            threshold_at_fpr: request
                .metrics
                .fpr_targets
                .iter()
                .filter_map(|&fpr| non_members.threshold(fpr))
                .collect(),
        }));
        let clusters = tested_clusters(&results.rows, &known, place, &scores, &non_members);
        for cluster in &clusters {
            for &row in &cluster.rows {
                results.rows[row].p_values.push((Arc::clone(label), cluster.p_value));
            }
        }
        let Some(decision) = evidence.decisions.as_ref().filter(|decision| decision.method == *label) else { continue };
        let (decisions, each) = decide(decision, &non_members, &clusters);
        calibrated.decisions = Some(decisions);
        calibrated.works = works(&results.rows, &clusters, &each, non_members.size());
        for (cluster, (adjusted, listed)) in clusters.iter().zip(each) {
            for &row in &cluster.rows {
                (results.rows[row].p_value_adjusted, results.rows[row].flagged) = (Some(adjusted), Some(listed));
            }
        }
    }
    results.calibration = Some(calibrated);
    Ok(())
}

/// The documents of the clusters tested, each with the p-value of its cluster, adjusted or not, against so many known works.
fn works(rows: &[SampleScores], clusters: &[TestedCluster], each: &[(f64, bool)], known: usize) -> Vec<WorkFindings> {
    let of_cluster = |(cluster, &(p_value_adjusted, listed)): (&TestedCluster, &(f64, bool))| {
        let mut passages: IndexMap<&SampleId, usize> = IndexMap::new();
        for document in cluster.rows.iter().filter_map(|row| rows[*row].document.as_ref()) {
            *passages.entry(document).or_default() += 1;
        }
        let (score, p_value) = (cluster.score, cluster.p_value);
        let known_above = ((p_value * (known + 1) as f64).round() as usize).saturating_sub(1);
        let work = |(document, passages): (&SampleId, usize)| WorkFindings {
            document: document.clone(),
            passages,
            score,
            known_above,
            p_value,
            p_value_adjusted,
            listed,
        };
        passages.into_iter().map(work).collect::<Vec<_>>()
    };
    clusters.iter().zip(each).flat_map(of_cluster).collect()
}

/// The clusters of texts that one method tests, in the order in which they appear.
fn tested_clusters(
    rows: &[SampleScores],
    known: &KnownNonMembers,
    place: usize,
    scores: &ClusterScores<1>,
    non_members: &CalibrationScores,
) -> Vec<TestedCluster> {
    let mut clusters: IndexMap<usize, TestedCluster> = IndexMap::new();
    let texts = &known.texts[..known.tested];
    // The scores number clusters by first appearance, too, and the texts tested come first.
    for (text, cluster) in texts.iter().zip(dense(texts.iter().map(|text| Some(text.cluster)))) {
        let (Some(row), Some(_), Some([score])) = (text.row, text.scores[place], scores.values[cluster]) else {
            continue;
        };
        let non_member = rows[row].member.map(|member| !member);
        let tested = clusters.entry(cluster).or_insert_with(|| TestedCluster {
            score,
            p_value: non_members.p_value(score),
            non_member,
            rows: Vec::new(),
        });
        tested.non_member = tested.non_member.zip(non_member).map(|(all, this)| all && this);
        tested.rows.push(row);
    }
    clusters.into_values().collect()
}

/// A cluster of texts that is tested.
struct TestedCluster {
    score: f64,
    p_value: f64,
    /// True if it holds only non-members; `None` without labels.
    non_member: Option<bool>,
    /// The rows of the audit that have a score.
    rows: Vec<usize>,
}

/// The list, and of each cluster its adjusted p-value and whether it is listed.
fn decide(
    request: &DecisionRequest,
    known: &CalibrationScores,
    clusters: &[TestedCluster],
) -> (Decisions, Vec<(f64, bool)>) {
    let p_values: Vec<f64> = clusters.iter().map(|cluster| cluster.p_value).collect();
    let discoveries = discover(&p_values, request.fdr, request.procedure);
    let listed =
        || clusters.iter().zip(&discoveries.rejected).filter(|(_, rejected)| **rejected).map(|(cluster, _)| cluster);
    let threshold = listed().map(|cluster| cluster.score).reduce(f64::min);
    let size = known.size();
    // Number of known non-members at or above the threshold, plus one.
    let rank =
        listed().map(|cluster| cluster.p_value).reduce(f64::max).map(|p| (p * (size + 1) as f64).round() as usize);
    let non_members = || listed().filter(|cluster| cluster.non_member == Some(true)).count();
    let decisions = Decisions {
        method: Arc::clone(&request.method),
        procedure: request.procedure,
        fdr: request.fdr,
        pi0: discoveries.pi0,
        tested: clusters.len(),
        rejected: listed().count(),
        minimum_discoveries: minimum_discoveries(clusters.len(), request.fdr, size),
        threshold,
        fpr_upper_95: rank.map(|rank| fpr_upper(rank, size, CONFIDENCE)),
        false_discoveries_upper_95: rank.map(|rank| false_discoveries_upper(clusters.len(), rank, size, CONFIDENCE)),
        non_members_rejected: clusters.iter().any(|cluster| cluster.non_member.is_some()).then(non_members),
    };
    (decisions, discoveries.adjusted.into_iter().zip(discoveries.rejected).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::Sample;
    use mia::statistics::Procedure;

    /// Example 7 of the worked examples: five of ten are listed at 0.1, none at 0.05, with 19 known non-members.
    #[test]
    fn a_list_and_what_it_guarantees() {
        let known = CalibrationScores::new(vec![
            -3.1, -2.7, -2.5, -2.4, -2.2, -2.0, -1.9, -1.6, -1.4, -1.3, -1.25, -1.2, -1.15, -1.1, -1.05, -1.02, -0.98,
            -0.95, -0.9,
        ])
        .unwrap();
        let scores = [-0.2, -0.3, -0.5, -0.6, -0.85, -0.97, -1.4, -2.0, -2.6, -3.3];
        let cluster = |(place, &score): (usize, &f64)| TestedCluster {
            score,
            p_value: known.p_value(score),
            non_member: Some(place >= 4),
            rows: Vec::new(),
        };
        let clusters: Vec<TestedCluster> = scores.iter().enumerate().map(cluster).collect();
        let request = |fdr| DecisionRequest { method: "m".into(), fdr, procedure: Procedure::Bh };
        let (decisions, each) = decide(&request(0.1), &known, &clusters);
        assert_eq!((decisions.tested, decisions.rejected, decisions.minimum_discoveries), (10, 5, 5));
        assert_eq!((decisions.threshold, decisions.non_members_rejected, decisions.pi0), (Some(-0.85), Some(1), None));
        assert!((decisions.fpr_upper_95.unwrap() - 0.145868503312243).abs() < 1e-9);
        assert_eq!(decisions.false_discoveries_upper_95, Some(2));
        assert!(each[..5].iter().all(|(adjusted, listed)| (adjusted - 0.1).abs() < 1e-9 && *listed));
        assert!(each[5..].iter().all(|(_, listed)| !listed));
        let (none, _) = decide(&request(0.05), &known, &clusters);
        assert_eq!((none.rejected, none.minimum_discoveries, none.threshold, none.fpr_upper_95), (0, 10, None, None));
    }

    #[test]
    fn a_work_is_placed_among_the_known_works() {
        let row = |document: Option<&str>| {
            let document = document.map(|document| SampleId::Text(document.to_owned()));
            SampleScores::unknown(&Sample { document, ..Sample::default() }, 0)
        };
        let rows = [row(Some("a")), row(Some("b")), row(Some("a")), row(None), row(Some("c"))];
        let known = CalibrationScores::new((0..19).map(f64::from).collect()).unwrap();
        let cluster = |score, rows: &[usize]| TestedCluster {
            score,
            p_value: known.p_value(score),
            non_member: None,
            rows: rows.to_vec(),
        };
        // `b` and `c` are one cluster, such as two editions.
        let clusters = [cluster(17.5, &[0, 2]), cluster(5.0, &[1, 4]), cluster(30.0, &[3])];
        let works = works(&rows, &clusters, &[(0.15, true), (0.7, false), (0.15, true)], known.size());
        let placed: Vec<(String, usize, usize, f64, bool)> = works
            .iter()
            .map(|work| (work.document.to_string(), work.passages, work.known_above, work.p_value, work.listed))
            .collect();
        let expected = [("a", 2, 1, 0.1, true), ("b", 1, 14, 0.75, false), ("c", 1, 14, 0.75, false)];
        let expected =
            expected.map(|(document, passages, above, p, listed)| (document.to_owned(), passages, above, p, listed));
        assert_eq!(placed, expected);
    }

    #[test]
    fn one_text_alone_can_be_listed() {
        let known = CalibrationScores::new((0..19).map(f64::from).collect()).unwrap();
        let cluster = TestedCluster { score: 20.0, p_value: known.p_value(20.0), non_member: None, rows: Vec::new() };
        let request = DecisionRequest { method: "m".into(), fdr: 0.05, procedure: Procedure::By };
        let (decisions, each) = decide(&request, &known, &[cluster]);
        assert_eq!((decisions.rejected, decisions.non_members_rejected, each[0].1), (1, None, true));
        let (nothing, none) = decide(&request, &known, &[]);
        assert!(nothing.rejected == 0 && nothing.tested == 0 && none.is_empty());
    }
}
