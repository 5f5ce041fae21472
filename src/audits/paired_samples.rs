//! The samples that two audits have in common.

use super::audit_difference::PairedMethod;
use super::clusters::clusters;
use super::results::SampleScores;
use super::stored_scores::LoadedScores;
use mia::texts::TextDigest;
use std::collections::HashMap;
use std::sync::Arc;

/// Samples of two audits that have the same text, in the order of the first audit.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedSamples {
    /// Of each pair whether it is a member, where that is known.
    pub labels: Vec<Option<bool>>,
    /// The cluster of each pair, as the first audit has it.
    pub clusters: Vec<usize>,
    /// The methods that both audits list under the same label.
    pub methods: Vec<PairedMethod>,
    /// Samples of the first audit that are in no pair.
    pub only_a: usize,
    /// Samples of the second audit that are in no pair.
    pub only_b: usize,
    /// Samples that are labelled otherwise in the other audit; they are in no pair either.
    pub label_conflicts: usize,
}

impl PairedSamples {
    /// Pairs the samples by their texts: the first sample of a text with the first of the same text, the second with the second.
    pub fn new(a: &LoadedScores, b: &LoadedScores) -> Self {
        let mut places: HashMap<(TextDigest, usize), usize> =
            occurrences(&b.rows).enumerate().map(|(row, text)| (text, row)).collect();
        let (mut pairs, mut only_a, mut label_conflicts) = (Vec::new(), 0, 0);
        for (row, text) in occurrences(&a.rows).enumerate() {
            match places.remove(&text) {
                None => only_a += 1,
                Some(other) if a.rows[row].member != b.rows[other].member => label_conflicts += 1,
                Some(other) => pairs.push((row, other)),
            }
        }
        Self {
            labels: pairs.iter().map(|&(row, _)| a.rows[row].member).collect(),
            clusters: clusters(pairs.iter().map(|&(row, _)| &a.rows[row])),
            methods: methods(a, b, &pairs),
            only_a,
            only_b: places.len(),
            label_conflicts,
        }
    }
}

/// The text of each row, and how many rows before it have the same.
fn occurrences(rows: &[SampleScores]) -> impl Iterator<Item = (TextDigest, usize)> {
    let mut seen: HashMap<TextDigest, usize> = HashMap::new();
    rows.iter().map(move |row| {
        let count = seen.entry(row.text).or_default();
        *count += 1;
        (row.text, *count - 1)
    })
}

fn methods(a: &LoadedScores, b: &LoadedScores, pairs: &[(usize, usize)]) -> Vec<PairedMethod> {
    let both = a.header.listed().filter_map(|(place, column)| {
        let label = &column.method.label;
        let (other, _) = b.header.listed().find(|(_, column)| column.method.label == *label)?;
        Some((label, place, other))
    });
    both.map(|(label, place, other)| PairedMethod {
        label: Arc::clone(label),
        a: pairs.iter().map(|&(row, _)| a.rows[row].scores[place]).collect(),
        b: pairs.iter().map(|&(_, row)| b.rows[row].scores[other]).collect(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::columns::columns;
    use crate::audits::fixtures::{model, row};
    use crate::audits::stored_scores::ScoreHeader;
    use mia::methods::default_methods;

    fn loaded(samples: &[(&str, bool, f64)]) -> LoadedScores {
        let columns = columns(&default_methods());
        let scores = |score| std::iter::once(Some(score)).chain(vec![None; columns.len() - 1]).collect();
        let rows: Vec<_> = samples.iter().map(|&(text, member, score)| row(text, member, scores(score))).collect();
        let header = ScoreHeader {
            columns,
            model: model("m"),
            rows: rows.len(),
            error_reasons: Vec::new(),
            overflow: None,
            numerics: None,
            dataset_digest: None,
            ngram_step: None,
        };
        LoadedScores { header: Arc::new(header), rows }
    }

    #[test]
    fn samples_are_paired_by_text_and_label() {
        let a = loaded(&[("x", true, 1.0), ("y", false, 2.0), ("x", true, 3.0), ("z", true, 4.0), ("w", false, 5.0)]);
        let b = loaded(&[("w", true, 9.0), ("x", true, 8.0), ("v", false, 7.0), ("y", false, 6.0), ("x", true, 5.0)]);
        let paired = PairedSamples::new(&a, &b);
        assert_eq!(paired.labels, [Some(true), Some(false), Some(true)]);
        assert_eq!((paired.only_a, paired.only_b, paired.label_conflicts), (1, 1, 1));
        let loss = &paired.methods[0];
        assert_eq!(
            (&*loss.label, &loss.a, &loss.b),
            ("loss", &vec![Some(1.0), Some(2.0), Some(3.0)], &vec![Some(8.0), Some(6.0), Some(5.0)])
        );
        assert_eq!(paired.methods.len(), default_methods().len());
        assert!(paired.methods[1].a.iter().all(Option::is_none));
    }

    #[test]
    fn only_methods_of_both_are_compared() {
        let (a, mut b) = (loaded(&[("x", true, 1.0)]), loaded(&[("x", true, 1.0)]));
        Arc::make_mut(&mut b.header).columns.remove(0);
        b.rows[0].scores.remove(0);
        assert_eq!(PairedSamples::new(&a, &b).methods.len(), a.header.columns.len() - 1);
    }
}
