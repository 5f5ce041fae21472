//! The sets of n-grams of texts, words or runs of characters, and the n-grams in which two lists of texts differ most.

use super::lists::Lists;
use foldhash::{HashMap, HashMapExt};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum number of n-grams that are listed.
const MAX_LISTED: usize = 10;

/// N-grams in fewer texts are not listed.
const MIN_TEXTS: u32 = 3;

/// The set of n-grams of each text. An n-gram is known by a key and numbered from 0 by first appearance.
#[derive(Clone, Debug)]
pub(super) struct NgramSets {
    ids: HashMap<u64, u32>,
    most: usize,
    sets: Lists<u32>,
}

/// A word, or a run of one to three characters, that more texts of one list have than of the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeparatingNgram {
    pub ngram: String,
    /// The share of the members that have it.
    pub members: f64,
    /// The share of the non-members that have it.
    pub non_members: f64,
}

impl NgramSets {
    /// For up to `most` distinct n-grams.
    pub fn new(most: u32) -> Self {
        Self { ids: HashMap::new(), most: most as usize, sets: Lists::default() }
    }

    /// The number of an n-gram; `None` for a new one beyond the last number.
    pub fn id(&mut self, key: u64) -> Option<u32> {
        let next = self.ids.len();
        if next == self.most {
            return self.known(key);
        }
        Some(*self.ids.entry(key).or_insert(next as u32))
    }

    /// The number of an n-gram that is there already.
    pub fn known(&self, key: u64) -> Option<u32> {
        self.ids.get(&key).copied()
    }

    /// Adds the next text with its distinct n-grams.
    pub fn add(&mut self, ngrams: Vec<u32>) {
        self.sets.add(ngrams);
    }

    /// The number of texts.
    pub fn texts(&self) -> usize {
        self.sets.len()
    }

    /// The number of distinct n-grams of all texts.
    pub fn vocabulary(&self) -> usize {
        self.ids.len()
    }

    /// The n-grams of each text.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> + Clone {
        self.sets.iter()
    }

    /// The share of each text's n-grams that no other text has, of those that `counts` accepts; `None` for a text without any.
    pub fn unique_shares(&self, counts: impl Fn(u32) -> bool) -> impl Iterator<Item = Option<f64>> {
        let mut texts = vec![0_u32; self.vocabulary()];
        self.sets.items.iter().for_each(|&ngram| texts[ngram as usize] += 1);
        self.iter().map(move |set| {
            let counted = set.iter().filter(|&&ngram| counts(ngram));
            let (unique, all) = counted
                .fold((0, 0), |(unique, all), &ngram| (unique + usize::from(texts[ngram as usize] == 1), all + 1));
            (all > 0).then(|| unique as f64 / all as f64)
        })
    }

    /// Up to ten n-grams whose shares of texts differ most between the lists, by the statistic of two proportions; those in
    /// fewer than three texts are left out. Equal differences are in the order of the n-grams. `spell` is `None` for an
    /// n-gram that cannot be listed.
    pub fn separating(&self, labels: &[bool], spell: impl Fn(u32) -> Option<String>) -> Vec<SeparatingNgram> {
        let mut counts = vec![[0_u32; 2]; self.vocabulary()];
        let mut totals = [0_u32; 2];
        for (set, member) in self.iter().zip(labels) {
            let class = usize::from(!member);
            totals[class] += 1;
            set.iter().for_each(|&ngram| counts[ngram as usize][class] += 1);
        }
        let [members, non_members] = totals.map(f64::from);
        let shares = |[a, b]: [u32; 2]| [f64::from(a) / members, f64::from(b) / non_members];
        let distance = |count: [u32; 2]| {
            let [a, b] = shares(count);
            let pooled = f64::from(count[0] + count[1]) / (members + non_members);
            (a - b).abs() / (pooled * (1.0 - pooled)).sqrt()
        };
        let mut differing: Vec<(f64, u32)> = (0..)
            .zip(&counts)
            .filter(|(_, count): &(u32, &[u32; 2])| count[0] + count[1] >= MIN_TEXTS)
            .map(|(ngram, count)| (distance(*count), ngram))
            .filter(|(distance, _)| *distance > 0.0)
            .collect();
        differing.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let listed = |(_, ngram): (f64, u32)| {
            let [members, non_members] = shares(counts[ngram as usize]);
            Some(SeparatingNgram { ngram: spell(ngram)?, members, non_members })
        };
        differing.into_iter().filter_map(listed).take(MAX_LISTED).collect()
    }
}
