//! Which texts of an audit are left out of scoring, since the model is tuned on the non-members among them. Pure.

use super::results::SampleScores;
use indexmap::IndexMap;
use mia::methods::Split;
use mia::random::{shuffle, stream};
use std::collections::HashSet;

/// The parts of a sample that decide where it goes.
#[derive(Clone, Debug)]
pub struct SplitSample {
    pub cluster: Option<usize>,
    pub group: Option<String>,
}

impl From<&SampleScores> for SplitSample {
    fn from(sample: &SampleScores) -> Self {
        Self { cluster: sample.cluster, group: sample.group.clone() }
    }
}

/// The clusters that are left out: of the clusters of each group, in an order that the seed decides, as many as the share comes to,
/// rounded. A cluster is in the group of its first text.
#[must_use]
pub fn left_out(samples: &[SplitSample], split: Split) -> HashSet<usize> {
    let mut groups: IndexMap<usize, &Option<String>> = IndexMap::new();
    for SplitSample { cluster, group } in samples {
        if let Some(cluster) = cluster {
            groups.entry(*cluster).or_insert(group);
        }
    }
    let mut strata: IndexMap<&Option<String>, Vec<usize>> = IndexMap::new();
    for (cluster, group) in groups {
        strata.entry(group).or_default().push(cluster);
    }
    let chosen = strata.into_iter().flat_map(|(group, mut clusters)| {
        let purpose = format!("split {}", group.as_deref().unwrap_or_default());
        shuffle(&mut clusters, &mut stream(split.seed, &purpose));
        let count = (clusters.len() as f64 * split.share.get()).round() as usize;
        clusters.into_iter().take(count)
    });
    chosen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::methods::Fraction;

    fn sample(cluster: usize, group: Option<&str>) -> SplitSample {
        SplitSample { cluster: Some(cluster), group: group.map(str::to_owned) }
    }

    fn split(share: f64, seed: u64) -> Split {
        Split { share: Fraction::new(share).unwrap(), seed }
    }

    #[test]
    fn a_share_of_every_group_is_left_out_and_clusters_stay_together() {
        let mut samples: Vec<SplitSample> = (0..100).map(|i| sample(i, Some(if i < 60 { "a" } else { "b" }))).collect();
        // Texts of a cluster go with the first of them.
        samples.extend((0..30).map(|i| sample(i, Some("b"))));
        let out = left_out(&samples, split(0.3, 42));
        let is_out = |sample: &&SplitSample| sample.cluster.is_some_and(|cluster| out.contains(&cluster));
        let count = |range: std::ops::Range<usize>| samples[range].iter().filter(is_out).count();
        assert_eq!((out.len(), count(0..60), count(60..100)), (30, 18, 12));
        assert_eq!(count(0..30), count(100..130));
        assert_eq!(out, left_out(&samples, split(0.3, 42)));
        assert_ne!(out, left_out(&samples, split(0.3, 43)));
    }

    #[test]
    fn the_order_is_that_of_the_seed_alone() {
        let samples: Vec<SplitSample> = (0..1_000).map(|i| sample(i, None)).collect();
        let share = |seed| {
            let out = left_out(&samples, split(0.5, seed));
            (0..500).filter(|cluster| out.contains(cluster)).count()
        };
        // 250 on average, with a standard deviation of 7.9.
        assert!((0..20).all(|seed| (215..=285).contains(&share(seed))));
    }
}
