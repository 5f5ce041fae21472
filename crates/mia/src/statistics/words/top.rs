//! The words that differ most between members and non-members.

use super::table::{SPELLED_TEXTS, WordTable};
use crate::statistics::naive_bayes::NgramColumns;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use utoipa::ToSchema;

/// The maximum number of words of a class.
const MOST_WORDS: usize = 10;

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
    pub(super) fn new(table: &WordTable, columns: &NgramColumns, labels: &[bool], clusters: &[usize]) -> Self {
        let totals = ClassCounts::totals(columns, labels);
        let mut words: Vec<(ClassCounts, &str)> = columns
            .iter()
            .filter(|(_, texts)| in_many_clusters(texts, clusters))
            .filter_map(|(word, texts)| Some((ClassCounts::new(texts, labels), table.spelling(word)?)))
            .collect();
        let top = |words: &[(ClassCounts, &str)], side: Ordering| -> Vec<String> {
            let listed = words.iter().filter(|(counts, _)| counts.compare(&totals) == side);
            listed.take(MOST_WORDS).map(|(_, word)| (*word).to_owned()).collect()
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
