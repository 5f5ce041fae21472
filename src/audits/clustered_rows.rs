//! The rows of an audit as comparisons between their labels count them.

use super::cluster_ids::dense;
use super::results::SampleScores;
use mia::statistics::ClusteredTexts;
use mia::texts::TextDigest;
use std::collections::HashMap;

/// The group of each row as a number; the rows without a group are one. The same number for all where no row has a group.
pub fn strata<'a>(rows: &'a [SampleScores]) -> Vec<usize> {
    let mut groups: HashMap<Option<&str>, usize> = HashMap::new();
    let number = |row: &'a SampleScores| {
        let next = groups.len();
        *groups.entry(row.group.as_deref()).or_insert(next)
    };
    rows.iter().map(number).collect()
}

/// The clusters of rows with these labels, compared within groups.
pub fn clustered(rows: &[SampleScores], labels: &[bool]) -> ClusteredTexts {
    let digests: Vec<TextDigest> = rows.iter().map(|row| row.text).collect();
    ClusteredTexts::new(labels, &dense(rows.iter().map(|row| row.cluster)), &strata(rows), &digests)
}
