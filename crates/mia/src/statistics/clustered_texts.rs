//! Clusters of texts, which are the units of comparisons between two lists.

use super::folds::LabelledClusters;
use crate::texts::TextDigest;
use std::collections::HashMap;

/// The clusters of labelled texts, as comparisons between the labels count them.
///
/// A cluster has the label and the stratum of its first text.
#[derive(Clone, Debug)]
pub struct ClusteredTexts {
    labels: Vec<bool>,
    strata: Vec<usize>,
    /// The distinct texts of each cluster in ascending order of their digests, one cluster after the other.
    texts: Vec<usize>,
    /// Where each cluster ends in `texts`.
    ends: Vec<usize>,
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
    #[must_use]
    pub fn new(labels: &[bool], clusters: &[usize], strata: &[usize], digests: &[TextDigest]) -> Self {
        let lengths = [labels.len(), clusters.len(), strata.len(), digests.len()];
        assert!(lengths.iter().all(|length| *length == labels.len()), "lists of different lengths");
        let LabelledClusters { numbers, labels } = LabelledClusters::new(labels, clusters);
        let mut texts: Vec<usize> = (0..numbers.len()).collect();
        texts.sort_by_key(|&text| (numbers[text], digests[text]));
        texts.dedup_by_key(|text| (numbers[*text], digests[*text]));
        let ends = texts.chunk_by(|a, b| numbers[*a] == numbers[*b]).scan(0, |end, cluster| {
            *end += cluster.len();
            Some(*end)
        });
        let ends = ends.collect();
        let mut cluster_strata = vec![0; labels.len()];
        for (&cluster, &stratum) in numbers.iter().zip(strata).rev() {
            cluster_strata[cluster] = stratum;
        }
        Self { labels, strata: cluster_strata, texts, ends }
    }

    /// The label of each cluster.
    #[must_use]
    pub fn labels(&self) -> &[bool] {
        &self.labels
    }

    /// The stratum of each cluster.
    #[must_use]
    pub fn strata(&self) -> &[usize] {
        &self.strata
    }

    /// The texts of each cluster in ascending order of their digests.
    fn clusters(&self) -> impl Iterator<Item = &[usize]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.texts[start..end])
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
            self.clusters().map(|texts| texts.iter().filter_map(finite).collect()).collect();
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
    #[must_use]
    pub fn column(&self, place: usize) -> Vec<Option<f64>> {
        self.values.iter().map(|values| values.map(|values| values[place])).collect()
    }

    /// The number of clusters with each label that are compared: members, then non-members. A cluster without a score is not,
    /// nor is one of a stratum in which only one label has scores.
    #[must_use]
    pub fn counts(&self, clustered: &ClusteredTexts) -> [usize; 2] {
        let mut strata: HashMap<usize, [usize; 2]> = HashMap::new();
        let scored = self.values.iter().zip(clustered.labels()).zip(clustered.strata());
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
}
