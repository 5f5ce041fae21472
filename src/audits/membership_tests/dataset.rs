//! The test of suspects against held-out texts. Pure.

use super::measure::Measured;
use crate::audits::results::SampleScores;
use mia::statistics::{ClusterScores, ClusteredTexts, HypothesisError, mann_whitney, welch};
use std::collections::{HashMap, HashSet};

/// The clusters that have suspects and held-out texts, so that neither is what it is said to be.
pub fn mixed_clusters(rows: &[SampleScores], clusters: &[usize]) -> HashSet<usize> {
    let mut labels: HashMap<usize, [bool; 2]> = HashMap::new();
    for (row, &cluster) in rows.iter().zip(clusters) {
        if let Some(member) = row.member {
            labels.entry(cluster).or_default()[usize::from(member)] = true;
        }
    }
    labels.into_iter().filter_map(|(cluster, labels)| (labels == [true; 2]).then_some(cluster)).collect()
}

/// Tests whether suspects score higher than held-out texts by the method of a column. A cluster counts once; a mixed one does not
/// count.
pub fn test_dataset(
    rows: &[SampleScores],
    clustered: &ClusteredTexts,
    is_mixed: impl Fn(usize) -> bool,
    place: usize,
) -> Result<Measured, HypothesisError> {
    let scores = cluster_scores(rows, clustered, is_mixed, place);
    let side = |suspect: bool| -> Vec<f64> {
        let of_side = scores.values.iter().zip(clustered.labels()).filter(|(_, label)| **label == suspect);
        of_side.filter_map(|(score, _)| score.map(|[score]| score)).collect()
    };
    let (suspects, held_out) = (side(true), side(false));
    let scored = rows.iter().filter(|row| row.scores.get(place).is_some_and(Option::is_some)).count();
    let test = mann_whitney(&suspects, &held_out)?;
    let mut measured = Measured {
        tested: suspects.len() + held_out.len(),
        left_out: rows.len() - scored,
        p_value: Some(test.p_value),
        smallest_p_value: smallest_p_value(suspects.len(), held_out.len()),
        ..Measured::default()
    };
    measured.statistics.suspects = Some(suspects.len());
    measured.statistics.held_out = Some(held_out.len());
    measured.statistics.welch = welch(&suspects, &held_out);
    measured.statistics.mann_whitney = Some(test);
    Ok(measured)
}

/// The scores of the clusters by the method of a column; none of a mixed one.
pub fn cluster_scores(
    rows: &[SampleScores],
    clustered: &ClusteredTexts,
    is_mixed: impl Fn(usize) -> bool,
    place: usize,
) -> ClusterScores<1> {
    clustered.scores(|row| {
        let score = rows[row].scores.get(place).copied().flatten();
        score.filter(|_| !is_mixed(row)).map(|score| [score])
    })
}

/// The p-value where every suspect scores higher than every held-out text.
fn smallest_p_value(suspects: usize, held_out: usize) -> Option<f64> {
    let scores: Vec<f64> = (0..suspects + held_out).map(|score| score as f64).collect();
    let (low, high) = scores.split_at(held_out);
    mann_whitney(high, low).ok().map(|test| test.p_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::{Label, Sample};
    use mia::texts::TextDigest;

    fn tested(rows: &[SampleScores], clusters: &[usize], mixed: &HashSet<usize>) -> Result<Measured, HypothesisError> {
        let labels: Vec<bool> = rows.iter().map(|row| row.member == Some(true)).collect();
        let digests: Vec<TextDigest> = (0..rows.len()).map(|row| TextDigest::new(&row.to_string())).collect();
        let clustered = ClusteredTexts::new(&labels, clusters, &vec![0; rows.len()], &digests);
        test_dataset(rows, &clustered, |row| mixed.contains(&clusters[row]), 0)
    }

    fn row(member: bool, score: Option<f64>) -> SampleScores {
        let label = if member { Label::MEMBER } else { Label::NON_MEMBER };
        let sample = Sample { label: Some(label), ..Sample::default() };
        SampleScores { scores: vec![score], ..SampleScores::unknown(&sample, 1) }
    }

    #[test]
    fn a_cluster_counts_once_and_a_mixed_one_not_at_all() {
        let rows = [
            row(true, Some(9.0)),
            row(true, Some(9.0)),
            row(true, Some(4.0)),
            row(true, None),
            row(false, Some(1.0)),
            row(false, Some(2.0)),
            row(true, Some(-7.0)),
            row(false, Some(7.0)),
        ];
        let clusters = [0, 0, 1, 2, 3, 4, 5, 5];
        let mixed = mixed_clusters(&rows, &clusters);
        assert_eq!(mixed, HashSet::from([5]));
        let measured = tested(&rows, &clusters, &mixed).unwrap();
        let statistics = measured.statistics;
        assert_eq!((statistics.suspects, statistics.held_out, measured.left_out), (Some(2), Some(2), 1));
        assert_eq!(statistics.mann_whitney.map(|test| (test.auroc, test.exact)), Some((1.0, true)));
        // One of the 6 arrangements of 2 and 2.
        assert_eq!((measured.p_value, measured.smallest_p_value), (Some(1.0 / 6.0), Some(1.0 / 6.0)));
        // Means 6.5 and 1.5, variances 12.5 and 0.5: t = 5 / sqrt(6.5).
        assert!((statistics.welch.unwrap().statistic - 5.0 / 6.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_text_a_side_is_a_test_that_proves_nothing() {
        let measured = tested(&[row(true, Some(1.0)), row(false, Some(0.0))], &[0, 1], &HashSet::new()).unwrap();
        assert_eq!((measured.p_value, measured.smallest_p_value), (Some(0.5), Some(0.5)));
        assert!(measured.statistics.welch.is_none());
        let one_side = tested(&[row(true, Some(1.0)), row(false, None)], &[0, 1], &HashSet::new());
        assert_eq!(one_side, Err(HypothesisError::NoValues));
    }
}
