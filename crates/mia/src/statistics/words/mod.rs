//! Test whether the words of a text alone tell members from non-members.
//!
//! If they do, the classes differ in what they are about or where they are from, and a score that separates them may
//! respond to that instead of to the training.

mod table;

#[cfg(test)]
mod tests;

pub use table::WordTable;

use super::clusters::ClusterIndex;
use super::delong::auroc_standard_error_by_cluster;
use super::naive_bayes::NgramColumns;
use super::roc::{LabelledScore, auroc};
use crate::random::{shuffle, stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use strum::Display;
use table::SPELLED_TEXTS;
use utoipa::ToSchema;

/// The maximum number of words of a class that are listed.
const MOST_LISTED: usize = 10;

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
    let columns = NgramColumns::new(&table.sets);
    let clusters = columns.fitted_clusters(labels, clusters, 2)?;
    let samples = labelled(&columns.log_odds(labels, &clusters), labels);
    let auroc = auroc(&samples).ok()?;
    let standard_error = auroc_standard_error_by_cluster(&samples, &clusters.numbers)?;
    let p_value = p_value(&columns, &clusters, labels, auroc, seed, keep_going)?;
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

fn labelled(log_odds: &[f64], labels: &[bool]) -> Vec<LabelledScore> {
    log_odds.iter().zip(labels).map(|(&score, &member)| LabelledScore { score, member }).collect()
}

fn p_value(
    columns: &NgramColumns,
    clusters: &ClusterIndex,
    labels: &[bool],
    observed: f64,
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Option<f64> {
    let cluster_labels = clusters.first_values(labels);
    let reached = |permutation: &usize| {
        let mut permuted = cluster_labels.clone();
        shuffle(&mut permuted, &mut stream(seed, &format!("words permutation {permutation}")));
        let labels: Vec<bool> = clusters.numbers.iter().map(|&cluster| permuted[cluster]).collect();
        auroc(&labelled(&columns.log_odds(&labels, clusters), &labels)).is_ok_and(|area| area >= observed)
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

/// The words that speak most for either class, by a model fitted on all texts.
///
/// Words that are in fewer than three clusters are left out, since they explain nothing but these. Words are in lower
/// case; one of more than 64 characters is cut there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopWords {
    /// Up to ten words that are relatively more frequent among members, from the largest log-odds down; ties by word.
    pub members: Vec<String>,
    /// Up to ten words that are relatively more frequent among non-members, from the smallest log-odds up; ties by
    /// word.
    pub non_members: Vec<String>,
}

impl TopWords {
    fn new(table: &WordTable, columns: &NgramColumns, labels: &[bool], clusters: &[usize]) -> Self {
        let totals = ClassCounts::totals(columns, labels);
        let mut words: Vec<(ClassCounts, &str)> = columns
            .iter()
            .filter(|(_, texts)| in_many_clusters(texts, clusters))
            .filter_map(|(word, texts)| Some((ClassCounts::new(texts, labels), table.spelling(word)?)))
            .collect();
        let top = |words: &[(ClassCounts, &str)], side: Ordering| -> Vec<String> {
            let listed = words.iter().filter(|(counts, _)| counts.compare(&totals) == side);
            listed.take(MOST_LISTED).map(|(_, word)| (*word).to_owned()).collect()
        };
        words.sort_by(|(a, one), (b, other)| b.compare(a).then_with(|| one.cmp(other)));
        let members = top(&words, Ordering::Greater);
        words.sort_by(|(a, one), (b, other)| a.compare(b).then_with(|| one.cmp(other)));
        Self { members, non_members: top(&words, Ordering::Less) }
    }
}

/// Smoothed counts in both classes. They are compared by their ratio, in integers, so that equal log-odds are ties.
struct ClassCounts {
    members: u64,
    non_members: u64,
}

impl ClassCounts {
    /// One more than the number of texts of each class.
    fn new(texts: &[u32], labels: &[bool]) -> Self {
        let members = texts.iter().filter(|&&text| labels[text as usize]).count() as u64;
        Self { members: members + 1, non_members: texts.len() as u64 - members + 1 }
    }

    /// The number of words of each class and the vocabulary.
    fn totals(columns: &NgramColumns, labels: &[bool]) -> Self {
        let words = |class: bool| -> u64 {
            let lengths = columns.lengths.iter().zip(labels).filter(|(_, label)| **label == class);
            lengths.map(|(length, _)| u64::from(*length)).sum::<u64>() + columns.vocabulary as u64
        };
        Self { members: words(true), non_members: words(false) }
    }

    fn compare(&self, other: &Self) -> Ordering {
        (self.members * other.non_members).cmp(&(other.members * self.non_members))
    }
}

/// Returns true if the texts are of three clusters or more.
fn in_many_clusters(texts: &[u32], clusters: &[usize]) -> bool {
    let mut distinct: Vec<usize> = Vec::new();
    for &text in texts {
        let cluster = clusters[text as usize];
        if !distinct.contains(&cluster) {
            distinct.push(cluster);
        }
        if distinct.len() >= SPELLED_TEXTS as usize {
            return true;
        }
    }
    false
}
