//! The log-odds that naive Bayes gives each text by the set of its n-grams: words, or runs of characters.

use super::clusters::{ClusterIndex, FOLDS};
use super::lists::Lists;
use super::ngrams::NgramSets;

/// A place for each fold of the members, then for each fold of the non-members.
const CELLS: usize = 2 * FOLDS;

/// Sets of n-grams by n-gram instead of by text, so that all counts of an n-gram are done at once.
pub(super) struct NgramColumns {
    /// The n-grams in two texts or more. The others say nothing about a text: where one is scored, its n-gram is in no text
    /// that the model is fitted on.
    ngrams: Vec<u32>,
    /// The texts of each n-gram in ascending order.
    texts: Lists<u32>,
    /// The number of distinct n-grams of each text, of whatever frequency.
    pub lengths: Vec<u32>,
    /// The number of distinct n-grams of all texts.
    pub vocabulary: usize,
    /// The natural logarithm of 1 more than each number of texts.
    logarithms: Vec<f64>,
}

impl NgramColumns {
    /// Inverts the sets. O(n-grams of all texts).
    pub fn new(sets: &NgramSets) -> Self {
        let vocabulary = sets.vocabulary();
        let mut counts = vec![0_u32; vocabulary];
        sets.iter().flatten().for_each(|&ngram| counts[ngram as usize] += 1);
        let (mut ngrams, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        // Where the next text of each n-gram goes.
        let mut places = vec![None; vocabulary];
        for ((ngram, count), place) in (0..).zip(counts).zip(&mut places) {
            if count >= 2 {
                *place = Some(end);
                end += count as usize;
                ngrams.push(ngram);
                ends.push(end);
            }
        }
        let mut items = vec![0; end];
        for (text, set) in (0..).zip(sets.iter()) {
            for &ngram in set {
                if let Some(place) = &mut places[ngram as usize] {
                    items[*place] = text;
                    *place += 1;
                }
            }
        }
        let lengths = sets.iter().map(|set| set.len() as u32).collect();
        let logarithms = (0..=sets.texts()).map(|count| (count as f64 + 1.0).ln()).collect();
        Self { ngrams, texts: Lists { items, ends }, lengths, vocabulary, logarithms }
    }

    /// Each n-gram with its texts.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.ngrams.iter().copied().zip(self.texts.iter())
    }

    /// The clusters of the texts; `None` if the lists differ in length, if a label has fewer than `fewest` clusters, where a
    /// cluster has the label of its first text, or if no text has an n-gram.
    pub fn fitted_clusters(&self, labels: &[bool], clusters: &[usize], fewest: usize) -> Option<ClusterIndex> {
        let clusters = ClusterIndex::labelled(labels, clusters);
        let same_length = self.lengths.len() == labels.len() && labels.len() == clusters.numbers.len();
        let members = clusters.firsts.iter().filter(|&&first| labels[first]).count();
        let enough = members.min(clusters.count() - members) >= fewest;
        (same_length && enough && self.vocabulary > 0).then_some(clusters)
    }

    /// The log-odds of each text being a member, by multinomial naive Bayes with add-one smoothing (Laplace) over the set of
    /// a text's n-grams, fitted on the texts of the other folds.
    ///
    /// With n texts and N n-grams of a class among those, and a vocabulary of V n-grams, the log-odds of a text are
    /// `ln(n1 / n0)` plus, for each of its n-grams, with c the number of texts of a class that have it,
    /// `ln((c1 + 1) / (N1 + V)) - ln((c0 + 1) / (N0 + V))`; 1 stands for members, 0 for non-members.
    /// The folds are those of the labels of the clusters; both classes need two clusters. O(n-grams of all texts).
    pub fn log_odds(&self, labels: &[bool], clusters: &ClusterIndex) -> Vec<f64> {
        self.sums::<1>(labels, clusters).into_iter().map(|[log_odds]| log_odds).collect()
    }

    /// The log-odds of each text for each fold, by the model that is fitted on the texts of neither that fold nor the text's own:
    /// the features of a second model that is fitted without that fold. At the text's own fold they are those of
    /// [`Self::log_odds`]. `None` if a label has fewer than three clusters, or as [`Self::fitted_clusters`].
    pub fn nested_log_odds(&self, labels: &[bool], clusters: &[usize]) -> Option<Vec<[f64; FOLDS]>> {
        let clusters = self.fitted_clusters(labels, clusters, 3)?;
        Some(self.sums(labels, &clusters))
    }

    /// The log-odds of each text by `MODELS` models: one, which is fitted without the text's fold, or one for each fold, which is
    /// fitted without that fold as well.
    fn sums<const MODELS: usize>(&self, labels: &[bool], clusters: &ClusterIndex) -> Vec<[f64; MODELS]> {
        let folds = clusters.folds(labels);
        let cell = |(&member, &cluster): (&bool, &usize)| folds[cluster] + if member { 0 } else { FOLDS };
        let cells: Vec<u8> = labels.iter().zip(&clusters.numbers).map(|labelled| cell(labelled) as u8).collect();
        let mut log_odds = self.without_ngrams(&cells);
        for texts in self.texts.iter() {
            let mut counts = [0_u32; CELLS];
            for &text in texts {
                counts[usize::from(cells[text as usize])] += 1;
            }
            let logarithm = |count: u32| self.logarithms[count as usize];
            let weights = fitted(&counts).map(|models| models.map(|[one, other]| logarithm(one) - logarithm(other)));
            for &text in texts {
                add(&mut log_odds[text as usize], 1.0, &weights[usize::from(cells[text as usize]) % FOLDS]);
            }
        }
        log_odds
    }

    /// The part of each text's log-odds that does not depend on which n-grams it has.
    fn without_ngrams<const MODELS: usize>(&self, cells: &[u8]) -> Vec<[f64; MODELS]> {
        let (mut texts, mut ngrams) = ([0_u32; CELLS], [0_u64; CELLS]);
        for (&cell, &length) in cells.iter().zip(&self.lengths) {
            texts[usize::from(cell)] += 1;
            ngrams[usize::from(cell)] += u64::from(length);
        }
        let smoothed = |count: u64| count as f64 + self.vocabulary as f64;
        let priors = fitted::<MODELS, _>(&texts)
            .map(|models| models.map(|[one, other]| f64::from(one).ln() - f64::from(other).ln()));
        let per_ngram = fitted::<MODELS, _>(&ngrams)
            .map(|models| models.map(|[one, other]| smoothed(other).ln() - smoothed(one).ln()));
        let log_odds = |(&cell, &length): (&u8, &u32)| {
            let fold = usize::from(cell) % FOLDS;
            let mut log_odds = priors[fold];
            add(&mut log_odds, f64::from(length), &per_ngram[fold]);
            log_odds
        };
        cells.iter().zip(&self.lengths).map(log_odds).collect()
    }
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
