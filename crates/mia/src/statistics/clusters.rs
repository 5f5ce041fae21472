//! Clusters of samples that are not independent of each other: their numbers, their folds and their scores.

use super::lists::Lists;
use crate::texts::TextDigest;
use foldhash::{HashMap, HashMapExt};

pub const FOLDS: usize = 5;

/// The clusters of some samples, numbered from 0 in the order of first appearance.
pub(super) struct ClusterIndex {
    /// The number of each sample's cluster.
    pub numbers: Vec<usize>,
    /// For each cluster, the place of its first sample in `numbers`.
    pub firsts: Vec<usize>,
}

impl ClusterIndex {
    /// Numbers the clusters of `samples`, which are positions in `clusters`: two samples are of one cluster if their
    /// entries are equal. A sample without an entry is a cluster by itself, so without any entry all are. O(n).
    pub fn new(clusters: &[usize], samples: impl Iterator<Item = usize>) -> Self {
        let mut known = HashMap::new();
        let mut firsts = Vec::new();
        let number = |(place, sample): (usize, usize)| {
            let mut next = || {
                firsts.push(place);
                firsts.len() - 1
            };
            match clusters.get(sample) {
                Some(&cluster) => *known.entry(cluster).or_insert_with(next),
                None => next(),
            }
        };
        let numbers = samples.enumerate().map(number).collect();
        Self { numbers, firsts }
    }

    /// The clusters of texts; as many texts as the shorter list is long.
    pub fn labelled(labels: &[bool], clusters: &[usize]) -> Self {
        Self::new(clusters, 0..labels.len().min(clusters.len()))
    }

    pub fn count(&self) -> usize {
        self.firsts.len()
    }

    /// Returns true if every cluster is a single sample.
    pub fn is_singletons(&self) -> bool {
        self.count() == self.numbers.len()
    }

    /// The value of each cluster, which is that of its first sample.
    pub fn first_values<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.firsts.iter().map(|&first| values[first]).collect()
    }

    /// The fold of each cluster: the i-th cluster of a label, counted from 0, is in fold i mod 5.
    pub fn folds(&self, labels: &[bool]) -> Vec<usize> {
        let mut counts = [0_usize; 2];
        let fold = |&first: &usize| {
            let count = &mut counts[usize::from(labels[first])];
            *count += 1;
            (*count - 1) % FOLDS
        };
        self.firsts.iter().map(fold).collect()
    }
}

/// The fold of each text, from 0 to 4: the i-th cluster of a label, counted from 0 by first appearance, is in fold
/// i mod 5. A cluster with both labels counts as one of its first text's label.
///
/// `clusters` has any number for each text, the same for the texts of a cluster. As many folds as the shorter list is
/// long. O(n).
pub fn folds(labels: &[bool], clusters: &[usize]) -> Vec<usize> {
    let clusters = ClusterIndex::labelled(labels, clusters);
    let folds = clusters.folds(labels);
    clusters.numbers.iter().map(|&cluster| folds[cluster]).collect()
}

/// The clusters of labelled texts, as comparisons between the labels count them.
///
/// A cluster has the label and the stratum of its first text.
#[derive(Clone, Debug)]
pub struct ClusteredTexts {
    labels: Vec<bool>,
    strata: Vec<usize>,
    /// The distinct texts of each cluster in ascending order of their digests.
    texts: Lists<usize>,
}

/// Scores of clusters; `N` scores of each, such as those of a model and of a control.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterScores<const N: usize> {
    /// The number of texts that each cluster's score is the mean of; 0 where no cluster has a score.
    pub texts: usize,
    /// For each cluster; `None` if none of its texts has a score.
    pub values: Vec<Option<[f64; N]>>,
}

impl ClusteredTexts {
    /// Groups texts by their entries in `clusters`; `strata` has the group that each text is compared within, the same
    /// number for all where there are none. The clusters are numbered from 0 by first appearance. Texts of a cluster with
    /// the same digest count as one, the first. O(n log n).
    ///
    /// # Panics
    ///
    /// If the lists differ in length.
    pub fn new(labels: &[bool], clusters: &[usize], strata: &[usize], digests: &[TextDigest]) -> Self {
        let lengths = [labels.len(), clusters.len(), strata.len(), digests.len()];
        assert!(lengths.iter().all(|length| *length == labels.len()), "lists of different lengths");
        let index = ClusterIndex::labelled(labels, clusters);
        let numbers = &index.numbers;
        let mut distinct: Vec<usize> = (0..numbers.len()).collect();
        distinct.sort_by_key(|&text| (numbers[text], digests[text]));
        distinct.dedup_by_key(|text| (numbers[*text], digests[*text]));
        let mut texts = Lists::default();
        distinct.chunk_by(|a, b| numbers[*a] == numbers[*b]).for_each(|cluster| texts.add(cluster.iter().copied()));
        Self { labels: index.first_values(labels), strata: index.first_values(strata), texts }
    }

    /// The label of each cluster.
    pub fn labels(&self) -> &[bool] {
        &self.labels
    }

    /// The stratum of each cluster.
    pub fn strata(&self) -> &[usize] {
        &self.strata
    }

    /// The mean score of each cluster over the same number of its texts: the smallest number of scored texts in any
    /// cluster that has one; of each cluster the texts with the smallest digests. So clusters of any sizes are
    /// exchangeable where their texts are. `score` is `None`, or not finite, for a text that is not compared.
    pub fn scores<const N: usize>(&self, score: impl Fn(usize) -> Option<[f64; N]>) -> ClusterScores<N> {
        self.scores_over(usize::MAX, score)
    }

    /// The mean scores of [`ClusteredTexts::scores`] over at most `most` texts of each cluster. Comparisons of clusters with
    /// single texts use 1.
    pub fn scores_over<const N: usize>(
        &self,
        most: usize,
        score: impl Fn(usize) -> Option<[f64; N]>,
    ) -> ClusterScores<N> {
        let finite = |text: &usize| score(*text).filter(|scores| scores.iter().all(|score| score.is_finite()));
        let scored: Vec<Vec<[f64; N]>> =
            self.texts.iter().map(|texts| texts.iter().filter_map(finite).collect()).collect();
        let texts = scored.iter().map(Vec::len).filter(|count| *count > 0).min().unwrap_or(0).min(most);
        let mean = |scores: &Vec<[f64; N]>| -> Option<[f64; N]> {
            let sum = |place: usize| scores[..texts].iter().map(|scores| scores[place]).sum::<f64>();
            (!scores.is_empty()).then(|| std::array::from_fn(|place| sum(place) / texts as f64))
        };
        ClusterScores { texts, values: scored.iter().map(mean).collect() }
    }
}

impl<const N: usize> ClusterScores<N> {
    /// One of the scores of each cluster.
    pub fn column(&self, place: usize) -> Vec<Option<f64>> {
        self.values.iter().map(|values| values.map(|values| values[place])).collect()
    }

    /// The number of clusters with each label that are compared: members, then non-members. A cluster without a score is not,
    /// nor is one of a stratum in which only one label has scores.
    pub fn counts(&self, clustered: &ClusteredTexts) -> [usize; 2] {
        let mut strata: HashMap<usize, [usize; 2]> = HashMap::new();
        let scored = self.values.iter().zip(&clustered.labels).zip(&clustered.strata);
        for ((_, &member), &stratum) in scored.filter(|((values, _), _)| values.is_some()) {
            strata.entry(stratum).or_default()[usize::from(!member)] += 1;
        }
        let compared = strata.values().filter(|counts| counts.iter().all(|count| *count > 0));
        compared.fold([0, 0], |[members, others], counts| [members + counts[0], others + counts[1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clusters_are_numbered_in_the_order_of_first_appearance() {
        for (clusters, samples, numbers, firsts) in [
            (&[7, 0, 7, usize::MAX, 0][..], &[0, 2, 3, 4][..], &[0, 0, 1, 2][..], &[0, 2, 3][..]),
            // Samples without an entry are clusters by themselves.
            (&[1, 1], &[0, 1, 2, 3], &[0, 0, 1, 2], &[0, 2, 3]),
            (&[], &[0, 1, 2], &[0, 1, 2], &[0, 1, 2]),
        ] {
            let index = ClusterIndex::new(clusters, samples.iter().copied());
            assert_eq!((&*index.numbers, &*index.firsts), (numbers, firsts));
            assert_eq!(index.is_singletons(), clusters.is_empty());
        }
    }

    /// Worked example 10.
    #[test]
    fn texts_alone_take_turns() {
        let labels = [1, 1, 0, 0, 1, 0, 1, 0, 1, 0].map(|label| label == 1);
        let clusters: Vec<usize> = (0..10).collect();
        assert_eq!(folds(&labels, &clusters), [0, 1, 0, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_cluster_counts_once_as_its_first_text() {
        let labels = [true, false, false, true, true, false];
        assert_eq!(folds(&labels, &[7, 9, 7, 9, 2, 4]), [0, 0, 0, 0, 1, 1]);
        assert_eq!(folds(&labels, &[3; 6]), [0; 6]);
        assert_eq!(folds(&labels, &[1, 1]), [0; 2]);
        assert!(folds(&[], &[]).is_empty());
    }

    fn digests(texts: &[&str]) -> Vec<TextDigest> {
        texts.iter().map(|text| TextDigest::new(text)).collect()
    }

    /// Example 15 of the worked examples.
    #[test]
    fn a_cluster_counts_with_the_mean_of_as_many_texts_as_the_smallest_has() {
        let texts = ["alpha", "beta", "gamma", "delta", "epsilon"];
        let scores = [-1.0, -2.0, -4.0, -1.5, -2.5];
        let clustered =
            ClusteredTexts::new(&[true, true, true, false, false], &[7, 7, 7, 3, 3], &[0; 5], &digests(&texts));
        let scored = clustered.scores(|text| Some([scores[text]]));
        assert_eq!(scored.texts, 2);
        assert_eq!(scored.column(0), [Some(-2.5), Some(-2.0)]);
        assert_eq!((clustered.labels(), scored.counts(&clustered)), (&[true, false][..], [1, 1]));
        // With a single text in one of them, one text of each counts: that with the smallest digest.
        let single = clustered.scores(|text| (text != 4).then(|| [scores[text], 1.0]));
        assert_eq!((single.texts, single.values[1]), (1, Some([-1.5, 1.0])));
        assert!([Some([-1.0, 1.0]), Some([-4.0, 1.0])].contains(&single.values[0]));
    }

    #[test]
    fn copies_of_a_text_count_once() {
        let digests = digests(&["a", "b", "a", "a", "c", "d"]);
        let clustered =
            ClusteredTexts::new(&[true, true, true, true, false, false], &[0, 0, 0, 1, 2, 2], &[0; 6], &digests);
        // The digest of b is below that of a, and that of d below that of c.
        let scored = clustered.scores(|text| Some([text as f64]));
        assert_eq!((scored.texts, &*scored.column(0)), (1, &[Some(1.0), Some(3.0), Some(5.0)][..]));
        let scored = clustered.scores(|text| (text != 3).then_some([text as f64]));
        assert_eq!((scored.texts, &*scored.column(0)), (2, &[Some(0.5), None, Some(4.5)][..]));
    }

    #[test]
    fn a_cluster_without_a_score_has_none_and_decides_nothing() {
        let clustered = ClusteredTexts::new(&[true, false, false], &[0, 1, 1], &[5, 6, 5], &digests(&["a", "b", "c"]));
        assert_eq!(clustered.strata(), [5, 6]);
        let scored = clustered.scores(|text| (text > 0).then_some([text as f64]));
        assert_eq!((scored.texts, &*scored.column(0)), (2, &[None, Some(1.5)][..]));
        assert_eq!(scored.counts(&clustered), [0, 0]);
        // Each in a stratum by itself.
        assert_eq!(clustered.scores(|_| Some([1.0])).counts(&clustered), [0, 0]);
        let nothing = clustered.scores(|_| Some([f64::NAN]));
        assert_eq!((nothing.texts, nothing.values), (0, vec![None, None]));
    }

    proptest! {
        #[test]
        fn clusters_stay_together_and_folds_are_even(
            texts in prop::collection::vec((any::<bool>(), 0_usize..12), 0..60)
        ) {
            let (labels, clusters): (Vec<bool>, Vec<usize>) = texts.into_iter().unzip();
            let folds = folds(&labels, &clusters);
            let mut sizes = [[0_usize; FOLDS]; 2];
            for (row, cluster) in clusters.iter().enumerate() {
                let first = clusters.iter().position(|other| other == cluster).expect("itself");
                prop_assert_eq!(folds[row], folds[first]);
                sizes[usize::from(labels[row])][folds[row]] += usize::from(first == row);
            }
            for sizes in sizes {
                prop_assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[FOLDS - 1] <= 1);
            }
        }
    }
}
