//! The log-odds that naive Bayes gives each text by the set of its n-grams: words, or runs of characters.

mod columns;
mod sets;

pub(super) use columns::NgramColumns;
pub(super) use sets::NgramSets;

use super::folds::{FOLDS, LabelledClusters, label_folds};

/// A place for each fold of the members, then for each fold of the non-members.
const CELLS: usize = 2 * FOLDS;

/// The log-odds of each text being a member, as [`out_of_fold`] has them; `None` if the lists differ in length, if a label has
/// fewer than two clusters, where a cluster has the label of its first text, or if no text has an n-gram.
pub(super) fn log_odds(columns: &NgramColumns, labels: &[bool], clusters: &[usize]) -> Option<Vec<f64>> {
    let clusters = LabelledClusters::new(labels, clusters);
    let members = clusters.labels.iter().filter(|member| **member).count();
    let same_length = columns.lengths.len() == labels.len() && labels.len() == clusters.numbers.len();
    if !same_length || members < 2 || clusters.labels.len() - members < 2 || columns.vocabulary == 0 {
        return None;
    }
    Some(out_of_fold(columns, labels, &clusters.numbers, &clusters.labels))
}

/// The log-odds of each text being a member, by multinomial naive Bayes with add-one smoothing (Laplace) over the set of
/// a text's n-grams, fitted on the texts of the other folds.
///
/// With n texts and N n-grams of a class among those, and a vocabulary of V n-grams, the log-odds of a text are
/// `ln(n1 / n0)` plus, for each of its n-grams, with c the number of texts of a class that have it,
/// `ln((c1 + 1) / (N1 + V)) - ln((c0 + 1) / (N0 + V))`; 1 stands for members, 0 for non-members.
/// The folds are those of the labels of the clusters; both classes need two clusters. O(n-grams of all texts).
pub(super) fn out_of_fold(
    columns: &NgramColumns,
    labels: &[bool],
    clusters: &[usize],
    cluster_labels: &[bool],
) -> Vec<f64> {
    let folds = label_folds(cluster_labels);
    let cell = |(&member, &cluster): (&bool, &usize)| folds[cluster] + if member { 0 } else { FOLDS };
    let cells: Vec<u8> = labels.iter().zip(clusters).map(|labelled| cell(labelled) as u8).collect();
    let mut log_odds = without_ngrams(columns, &cells);
    for (_, texts) in columns.iter() {
        let mut counts = [0_u32; CELLS];
        for &text in texts {
            counts[usize::from(cells[text as usize])] += 1;
        }
        let weights = weights(&counts, &columns.logarithms);
        for &text in texts {
            log_odds[text as usize] += weights[usize::from(cells[text as usize])];
        }
    }
    log_odds
}

/// The part of each text's log-odds that does not depend on which n-grams it has.
fn without_ngrams(columns: &NgramColumns, cells: &[u8]) -> Vec<f64> {
    let (mut texts, mut ngrams) = ([0_u64; CELLS], [0_u64; CELLS]);
    for (&cell, &length) in cells.iter().zip(&columns.lengths) {
        texts[usize::from(cell)] += 1;
        ngrams[usize::from(cell)] += u64::from(length);
    }
    let (texts, ngrams) = (elsewhere(&texts), elsewhere(&ngrams));
    let vocabulary = columns.vocabulary as f64;
    let ratio = |one: f64, other: f64| one.ln() - other.ln();
    let parts: [(f64, f64); CELLS] = std::array::from_fn(|cell| {
        let (member, other) = (cell % FOLDS, cell % FOLDS + FOLDS);
        let prior = ratio(texts[member] as f64, texts[other] as f64);
        (prior, ratio(ngrams[other] as f64 + vocabulary, ngrams[member] as f64 + vocabulary))
    });
    let log_odds = |(&cell, &length): (&u8, &u32)| {
        let (prior, per_ngram) = parts[usize::from(cell)];
        prior + f64::from(length) * per_ngram
    };
    cells.iter().zip(&columns.lengths).map(log_odds).collect()
}

/// The contribution of an n-gram to the log-odds of a text, by cell.
fn weights(counts: &[u32; CELLS], logarithms: &[f64]) -> [f64; CELLS] {
    let counts = elsewhere(&counts.map(u64::from));
    let mut weights = [0.0; CELLS];
    for fold in 0..FOLDS {
        let weight = logarithms[counts[fold] as usize] - logarithms[counts[fold + FOLDS] as usize];
        weights[fold] = weight;
        weights[fold + FOLDS] = weight;
    }
    weights
}

/// For each cell, the sum over the other folds of its class.
fn elsewhere(cells: &[u64; CELLS]) -> [u64; CELLS] {
    let members: u64 = cells[..FOLDS].iter().sum();
    let others: u64 = cells[FOLDS..].iter().sum();
    std::array::from_fn(|cell| if cell < FOLDS { members } else { others } - cells[cell])
}
