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
    let clusters = fitted_clusters(columns, labels, clusters, 2)?;
    Some(out_of_fold(columns, labels, &clusters.numbers, &clusters.labels))
}

/// The log-odds of each text for each fold, by the model that is fitted on the texts of neither that fold nor the text's own: the
/// features of a second model that is fitted without that fold. At the text's own fold they are those of [`log_odds`].
///
/// `None` as there, where three clusters of a label are required instead of two.
pub(super) fn nested_log_odds(
    columns: &NgramColumns,
    labels: &[bool],
    clusters: &[usize],
) -> Option<Vec<[f64; FOLDS]>> {
    let clusters = fitted_clusters(columns, labels, clusters, 3)?;
    Some(sums(columns, labels, &clusters.numbers, &clusters.labels))
}

/// The clusters, if each label has at least `fewest` of them and there is an n-gram.
fn fitted_clusters(
    columns: &NgramColumns,
    labels: &[bool],
    clusters: &[usize],
    fewest: usize,
) -> Option<LabelledClusters> {
    let clusters = LabelledClusters::new(labels, clusters);
    let members = clusters.labels.iter().filter(|member| **member).count();
    let same_length = columns.lengths.len() == labels.len() && labels.len() == clusters.numbers.len();
    let enough = members.min(clusters.labels.len() - members) >= fewest;
    (same_length && enough && columns.vocabulary > 0).then_some(clusters)
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
    sums::<1>(columns, labels, clusters, cluster_labels).into_iter().map(|[log_odds]| log_odds).collect()
}

/// The log-odds of each text by `MODELS` models: one, which is fitted without the text's fold, or one for each fold, which is
/// fitted without that fold as well.
fn sums<const MODELS: usize>(
    columns: &NgramColumns,
    labels: &[bool],
    clusters: &[usize],
    cluster_labels: &[bool],
) -> Vec<[f64; MODELS]> {
    let folds = label_folds(cluster_labels);
    let cell = |(&member, &cluster): (&bool, &usize)| folds[cluster] + if member { 0 } else { FOLDS };
    let cells: Vec<u8> = labels.iter().zip(clusters).map(|labelled| cell(labelled) as u8).collect();
    let mut log_odds = without_ngrams(columns, &cells);
    for (_, texts) in columns.iter() {
        let mut counts = [0_u32; CELLS];
        for &text in texts {
            counts[usize::from(cells[text as usize])] += 1;
        }
        let logarithm = |count: u32| columns.logarithms[count as usize];
        let weights = fitted(&counts).map(|models| models.map(|[one, other]| logarithm(one) - logarithm(other)));
        for &text in texts {
            add(&mut log_odds[text as usize], 1.0, &weights[usize::from(cells[text as usize]) % FOLDS]);
        }
    }
    log_odds
}

/// The part of each text's log-odds that does not depend on which n-grams it has.
fn without_ngrams<const MODELS: usize>(columns: &NgramColumns, cells: &[u8]) -> Vec<[f64; MODELS]> {
    let (mut texts, mut ngrams) = ([0_u32; CELLS], [0_u64; CELLS]);
    for (&cell, &length) in cells.iter().zip(&columns.lengths) {
        texts[usize::from(cell)] += 1;
        ngrams[usize::from(cell)] += u64::from(length);
    }
    let vocabulary = columns.vocabulary as f64;
    let priors = fitted::<MODELS, _>(&texts).map(|models| models.map(|counts| counts.map(f64::from)));
    let priors = priors.map(|models| models.map(|[one, other]| one.ln() - other.ln()));
    let per_ngram = fitted::<MODELS, _>(&ngrams).map(|models| models.map(|counts| counts.map(|count| count as f64)));
    let per_ngram =
        per_ngram.map(|models| models.map(|[one, other]| (other + vocabulary).ln() - (one + vocabulary).ln()));
    let log_odds = |(&cell, &length): (&u8, &u32)| {
        let fold = usize::from(cell) % FOLDS;
        let mut log_odds = priors[fold];
        add(&mut log_odds, f64::from(length), &per_ngram[fold]);
        log_odds
    };
    cells.iter().zip(&columns.lengths).map(log_odds).collect()
}

fn add<const MODELS: usize>(sums: &mut [f64; MODELS], factor: f64, values: &[f64; MODELS]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += factor * value);
}

/// For a text of each fold and each model, the sums over the members and over the non-members that the model is fitted on.
fn fitted<const MODELS: usize, T>(cells: &[T; CELLS]) -> [[[T; 2]; MODELS]; FOLDS]
where
    T: Copy + std::iter::Sum<T> + std::ops::Sub<Output = T>,
{
    let totals = [0, FOLDS].map(|class| cells[class..class + FOLDS].iter().copied().sum::<T>());
    std::array::from_fn(|own| {
        let others = [totals[0] - cells[own], totals[1] - cells[FOLDS + own]];
        std::array::from_fn(|fold| {
            let is_own = MODELS == 1 || fold == own;
            if is_own { others } else { [others[0] - cells[fold], others[1] - cells[FOLDS + fold]] }
        })
    })
}
