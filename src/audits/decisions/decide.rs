//! The list of texts at a false discovery rate. Pure.

use crate::audits::calibrated_results::Decisions;
use crate::audits::evidence::DecisionRequest;
use mia::statistics::{CalibrationScores, discover, false_discoveries_upper, fpr_upper, minimum_discoveries};
use std::sync::Arc;

/// Of the bounds.
const CONFIDENCE: f64 = 0.95;

/// A cluster of texts that is tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestedCluster {
    /// Its highest score.
    pub score: f64,
    pub p_value: f64,
    /// True if it holds only non-members; `None` without labels.
    pub non_member: Option<bool>,
}

/// The list, and of each cluster its adjusted p-value and whether it is listed.
pub fn decide(
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
    fn one_text_alone_can_be_listed() {
        let known = CalibrationScores::new((0..19).map(f64::from).collect()).unwrap();
        let cluster = TestedCluster { score: 20.0, p_value: known.p_value(20.0), non_member: None };
        let request = DecisionRequest { method: "m".into(), fdr: 0.05, procedure: Procedure::By };
        let (decisions, each) = decide(&request, &known, &[cluster]);
        assert_eq!((decisions.rejected, decisions.non_members_rejected, each[0].1), (1, None, true));
        let (nothing, none) = decide(&request, &known, &[]);
        assert!(nothing.rejected == 0 && nothing.tested == 0 && none.is_empty());
    }
}
