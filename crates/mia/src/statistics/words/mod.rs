//! Test whether the words of a text alone tell members from non-members.
//!
//! If they do, the classes differ in what they are about or where they are from, and a score that separates them may
//! respond to that instead of to the training.

mod table;
mod top;

#[cfg(test)]
mod tests;

pub use table::WordTable;
pub use top::TopWords;

use super::auroc::{auroc, auroc_standard_error_by_cluster};
use super::folds::LabelledClusters;
use super::naive_bayes::{NgramColumns, log_odds, out_of_fold};
use super::roc::LabelledScore;
use crate::random::{shuffle, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use strum::Display;
use utoipa::ToSchema;

/// Number of permutations of the labels.
const PERMUTATIONS: usize = 199;

/// The number of permutations between two questions whether to go on.
const BLOCK: usize = 16;

/// The p-value above which nothing is shown.
const LEVEL: f64 = 0.05;

/// The AUROC from which words alone separate the classes.
const TOTAL: f64 = 0.9;

/// The 97.5 % quantile of the normal distribution.
const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// Separation of members from non-members by the words of a text alone: multinomial naive Bayes with add-one smoothing,
/// over the set of each text's lower-cased words, each text by a model fitted on the other folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WordsBaseline {
    /// Area under the ROC of the log-odds, in [0, 1].
    pub auroc: f64,
    /// Standard error of the area.
    pub standard_error: f64,
    /// Normal interval of the area at 95 %, within [0, 1]; absent if the standard error is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// One-sided, by 199 seeded permutations of the clusters' labels: `(1 + r) / 200`, where r of them have an area at
    /// least as large.
    pub p_value: f64,
    /// Difference between the words of the classes.
    pub shift: Shift,
    /// Number of texts that are too long, so that only their first words count; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub truncated_texts: Option<usize>,
    /// The words that differ most; absent where texts are not retained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_words: Option<TopWords>,
}

/// Difference between the words of members and non-members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Shift {
    /// No more than by chance: p > 0.05.
    None,
    /// More than by chance.
    Some,
    /// So much that words alone tell the classes apart: an AUROC of 0.9 or more.
    Total,
}

impl Shift {
    fn new(auroc: f64, p_value: f64) -> Self {
        if p_value > LEVEL {
            Self::None
        } else if auroc >= TOTAL {
            Self::Total
        } else {
            Self::Some
        }
    }
}

/// Measures how well words tell the texts of `table` apart, which have the given labels and clusters in the same order.
///
/// The folds are those of [`super::folds`]. For the p-value, the labels of the clusters are permuted: all texts of a
/// cluster get one label, and the folds are those of the permuted labels.
///
/// `None` if a label has fewer than two clusters, where a cluster has the label of its first text, since a model would
/// then be fitted on one class alone; if no text has a word; if the lists differ in length; or once `keep_going`
/// returns false. Runs on rayon's pool, with the same result on any number of threads. The time of each permutation is
/// proportional to the number of words in all texts.
pub fn words_baseline(
    table: &WordTable,
    labels: &[bool],
    clusters: &[usize],
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Option<WordsBaseline> {
    let columns = table.columns();
    let log_odds = log_odds(&columns, labels, clusters)?;
    let clusters = LabelledClusters::new(labels, clusters);
    let (auroc, standard_error) = area(&log_odds, labels, &clusters.numbers)?;
    let p_value = p_value(&columns, &clusters, auroc, seed, keep_going)?;
    let interval = [auroc - NORMAL_QUANTILE * standard_error, auroc + NORMAL_QUANTILE * standard_error];
    Some(WordsBaseline {
        auroc,
        standard_error,
        interval: (standard_error > 0.0).then(|| interval.map(|bound| bound.clamp(0.0, 1.0))),
        p_value,
        shift: Shift::new(auroc, p_value),
        truncated_texts: Some(table.truncated_texts()).filter(|texts| *texts > 0),
        top_words: Some(TopWords::new(table, &columns, labels, &clusters.numbers)),
    })
}

/// The AUROC and its standard error, by cluster.
fn area(log_odds: &[f64], labels: &[bool], clusters: &[usize]) -> Option<(f64, f64)> {
    let samples = labelled(log_odds, labels.iter().copied());
    Some((auroc(&samples).ok()?, auroc_standard_error_by_cluster(&samples, clusters)?))
}

fn labelled(log_odds: &[f64], labels: impl Iterator<Item = bool>) -> Vec<LabelledScore> {
    log_odds.iter().zip(labels).map(|(&score, member)| LabelledScore { score, member }).collect()
}

fn p_value(
    columns: &NgramColumns,
    clusters: &LabelledClusters,
    observed: f64,
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Option<f64> {
    let reached = |permutation: &usize| {
        let mut cluster_labels = clusters.labels.clone();
        shuffle(&mut cluster_labels, &mut stream(seed, &format!("words permutation {permutation}")));
        let labels: Vec<bool> = clusters.numbers.iter().map(|&cluster| cluster_labels[cluster]).collect();
        let log_odds = out_of_fold(columns, &labels, &clusters.numbers, &cluster_labels);
        auroc(&labelled(&log_odds, labels.into_iter())).is_ok_and(|area| area >= observed)
    };
    let mut as_large = 0;
    for start in (0..PERMUTATIONS).step_by(BLOCK) {
        if !keep_going() {
            return None;
        }
        as_large += (start..PERMUTATIONS.min(start + BLOCK)).into_par_iter().filter(reached).count();
    }
    Some((1 + as_large) as f64 / (1 + PERMUTATIONS) as f64)
}
