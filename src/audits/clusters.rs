//! Clusters and groups of an audit's rows, as comparisons count them.

use super::results::SampleScores;
use mia::statistics::{ClusterScores, ClusteredTexts};
use mia::texts::TextDigest;
use std::collections::HashMap;

/// A cluster of rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCluster {
    pub texts: usize,
    /// True if members and non-members are in it.
    pub is_mixed: bool,
}

/// The cluster of each row, numbered from 0 by first appearance. A row without one is its own.
pub fn clusters<'a>(rows: impl IntoIterator<Item = &'a SampleScores>) -> Vec<usize> {
    dense(rows.into_iter().map(|row| row.cluster))
}

/// The same of clusters alone.
pub fn dense(clusters: impl Iterator<Item = Option<usize>>) -> Vec<usize> {
    let (mut numbers, mut next) = (HashMap::new(), 0);
    let mut number = || {
        next += 1;
        next - 1
    };
    clusters
        .map(|cluster| match cluster {
            None => number(),
            Some(cluster) => *numbers.entry(cluster).or_insert_with(&mut number),
        })
        .collect()
}

/// The first number after those of these clusters.
pub fn next_cluster(clusters: &[usize]) -> usize {
    clusters.iter().max().map_or(0, |last| last + 1)
}

/// The clusters of the rows, in the order of their numbers.
pub fn row_clusters(rows: &[SampleScores]) -> Vec<RowCluster> {
    let (mut all, mut labels) = (Vec::new(), Vec::new());
    for (row, cluster) in rows.iter().zip(clusters(rows)) {
        if cluster == all.len() {
            all.push(RowCluster::default());
            labels.push(None);
        }
        all[cluster].texts += 1;
        if let Some(member) = row.member {
            all[cluster].is_mixed |= *labels[cluster].get_or_insert(member) != member;
        }
    }
    all
}

/// The group of each row as a number; the rows without a group are one. The same number for all where no row has a group.
pub fn strata(rows: &[SampleScores]) -> Vec<usize> {
    let mut groups: HashMap<Option<&str>, usize> = HashMap::new();
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        let next = groups.len();
        numbers.push(*groups.entry(row.group.as_deref()).or_insert(next));
    }
    numbers
}

/// The clusters of rows with these labels, compared within groups.
pub fn clustered(rows: &[SampleScores], labels: &[bool]) -> ClusteredTexts {
    let digests: Vec<TextDigest> = rows.iter().map(|row| row.text).collect();
    ClusteredTexts::new(labels, &clusters(rows), &strata(rows), &digests)
}

/// The scores of the clusters that have this label.
pub fn list_scores(scores: &ClusterScores<1>, clustered: &ClusteredTexts, label: bool) -> Vec<f64> {
    let of_list = scores.values.iter().zip(clustered.labels()).filter(|(_, known)| **known == label);
    of_list.filter_map(|(score, _)| score.map(|[score]| score)).collect()
}

#[cfg(test)]
mod tests {
    use super::dense;

    #[test]
    fn clusters_are_numbered_by_first_appearance() {
        let clusters = [Some(7), None, Some(2), Some(7), None, Some(2)];
        assert_eq!(dense(clusters.into_iter()), [0, 1, 2, 0, 3, 2]);
    }
}
