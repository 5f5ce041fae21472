//! Test whether the signal of membership is stronger at the start of texts, as positional decay assumes.

use super::publication::{permutation_p_value, reached_from};
use crate::TokenStats;
use crate::random::{shuffle, stream};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::ToSchema;

const MOST_POSITIONS: usize = 256;
/// Maximum number of log-probabilities in memory, 128 MiB. There are fewer positions for more than 65,536 clusters.
const MOST_NUMBERS: usize = 1 << 24;
/// Permutations of the clusters' labels.
const PERMUTATIONS: usize = 999;

/// Test whether members differ from non-members more at the start of texts than later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriorTest {
    /// The number of positions compared, L: every text reaches them. At most 256, and half as many each time the number
    /// of clusters exceeds 65,536 times a power of two.
    pub positions: usize,
    /// The mean log-probability of members less that of non-members, over positions 1 to floor(L / 2), in nats.
    pub early_gap: f64,
    /// The same over positions floor(L / 2) + 1 to L.
    pub late_gap: f64,
    /// One-sided, that the early gap exceeds the late one, by 999 permutations of the clusters' labels.
    pub p_value: f64,
    /// The least-squares slope of the entropy by position over all tokens of a text, averaged over the texts, in nats
    /// per token; absent where the model does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_slope: Option<f64>,
    /// The share of the texts whose slope is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_falling: Option<f64>,
}

/// Accumulated inputs of the test, to which texts are added one after another.
///
/// Keeps for each cluster the sums of the log-probabilities at the positions that every text so far reaches: at most
/// 256 numbers for a cluster and 128 MiB for all, twice that while it grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriorTestSums {
    /// Positions that are kept, none before the first text.
    positions: Option<usize>,
    /// One row of `positions` numbers for each cluster, in the order of their first texts.
    sums: Vec<f64>,
    clusters: Vec<Cluster>,
    /// The row of each cluster.
    rows: HashMap<usize, usize>,
    slopes: Slopes,
}

/// Texts that count as one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cluster {
    /// The label of its first text.
    member: bool,
    texts: usize,
}

/// The slopes of the entropy of the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slopes {
    texts: usize,
    sum: f64,
    falling: usize,
}

/// A cluster at the end: the sums over its texts of the mean log-probability of the early and of the late positions.
#[derive(Clone, Copy)]
struct Halves {
    texts: f64,
    early: f64,
    late: f64,
}

impl PriorTestSums {
    /// Adds the scored tokens of one text with a label.
    ///
    /// `cluster` names the texts that count as one, with the label of the first. A text without tokens, or with a
    /// log-probability that is not finite, is omitted; one with an entropy that is not known, or not finite, has no slope.
    /// O(n), and O(all sums) for a text that is shorter than all before it.
    pub fn add(&mut self, member: bool, cluster: usize, tokens: &[TokenStats]) {
        if tokens.is_empty() || !tokens.iter().all(|token| token.lp.is_finite()) {
            return;
        }
        self.slopes.add(tokens);
        let row = *self.rows.entry(cluster).or_insert(self.clusters.len());
        if row == self.clusters.len() {
            self.clusters.push(Cluster { member, texts: 0 });
        }
        let positions = self.narrow(tokens.len());
        self.sums.resize(self.clusters.len() * positions, 0.0);
        let sums = self.sums.iter_mut().skip(row * positions);
        sums.zip(tokens).take(positions).for_each(|(sum, token)| *sum += token.lp);
        if let Some(cluster) = self.clusters.get_mut(row) {
            cluster.texts += 1;
        }
    }

    /// Keeps no more positions than a text of this length reaches and than there is memory for. Returns their number.
    fn narrow(&mut self, length: usize) -> usize {
        let before = self.positions.unwrap_or(MOST_POSITIONS);
        let positions = before.min(length).min(most_positions(self.clusters.len()));
        if positions < before {
            let rows = self.sums.len().checked_div(before).unwrap_or(0);
            (0..rows).for_each(|row| self.sums.copy_within(row * before..row * before + positions, row * positions));
            self.sums.truncate(rows * positions);
            self.sums.shrink_to_fit();
        }
        self.positions = Some(positions);
        positions
    }

    /// The test, with permutations from `seed`; `None` if a class is missing, a text has a single token, or a
    /// sum is not finite.
    ///
    /// T is the early gap less the late one. It is recomputed for each of 999 permutations of the clusters' labels, and
    /// the p-value is `(1 + reached) / (1 + 999)`. O(999 clusters), about two seconds for 100,000 clusters. Once
    /// `keep_going` returns false, stops with fewer permutations.
    pub fn finish(&self, seed: u64, keep_going: &dyn Fn() -> bool) -> Option<PriorTest> {
        let positions = self.positions.filter(|positions| *positions >= 2)?;
        let halves = self.halves(positions);
        let mut labels: Vec<bool> = self.clusters.iter().map(|cluster| cluster.member).collect();
        let [early_gap, late_gap] = gaps(&labels, &halves).filter(|gaps| gaps.iter().all(|gap| gap.is_finite()))?;
        let threshold = reached_from(early_gap - late_gap, magnitude(&labels, &halves));
        let mut random = stream(seed, "prior test");
        let (mut reached, mut permutations) = (0, 0);
        while permutations < PERMUTATIONS && keep_going() {
            shuffle(&mut labels, &mut random);
            let difference = gaps(&labels, &halves).map(|[early, late]| early - late);
            reached += usize::from(difference.is_some_and(|difference| difference >= threshold));
            permutations += 1;
        }
        let texts = self.slopes.texts as f64;
        let entropy_slope = Some(self.slopes.sum / texts).filter(|slope| slope.is_finite());
        let share_falling = entropy_slope.map(|_| self.slopes.falling as f64 / texts);
        let p_value = permutation_p_value(reached, permutations);
        Some(PriorTest { positions, early_gap, late_gap, p_value, entropy_slope, share_falling })
    }

    fn halves(&self, positions: usize) -> Vec<Halves> {
        let half = positions / 2;
        let mean = |sums: &[f64]| sums.iter().sum::<f64>() / sums.len() as f64;
        let rows = self.sums.chunks_exact(positions).map(|row| row.split_at(half));
        let clusters = self.clusters.iter().map(|cluster| cluster.texts as f64);
        clusters
            .zip(rows)
            .map(|(texts, (early, late))| Halves { texts, early: mean(early), late: mean(late) })
            .collect()
    }
}

/// The positions for which this many clusters leave memory.
fn most_positions(clusters: usize) -> usize {
    let mut most = MOST_POSITIONS;
    while most * clusters > MOST_NUMBERS {
        most /= 2;
    }
    most
}

/// The early and the late gap with these labels of the clusters; `None` if a class is missing.
fn gaps(labels: &[bool], halves: &[Halves]) -> Option<[f64; 2]> {
    let none = Halves { texts: 0.0, early: 0.0, late: 0.0 };
    let mut classes = [none; 2];
    for (&member, cluster) in labels.iter().zip(halves) {
        let class = &mut classes[usize::from(member)];
        class.texts += cluster.texts;
        class.early += cluster.early;
        class.late += cluster.late;
    }
    let [others, members] = classes;
    let gap = |half: fn(&Halves) -> f64| half(&members) / members.texts - half(&others) / others.texts;
    (members.texts > 0.0 && others.texts > 0.0).then(|| [gap(|class| class.early), gap(|class| class.late)])
}

/// The sum of the magnitudes of the terms of the difference between the gaps.
fn magnitude(labels: &[bool], halves: &[Halves]) -> f64 {
    let magnitudes = |cluster: &Halves| cluster.early.abs() + cluster.late.abs();
    let class = |member: bool| {
        let clusters = labels.iter().zip(halves).filter(move |(label, _)| **label == member);
        clusters.fold((0.0, 0.0), |(texts, sum), (_, cluster)| (texts + cluster.texts, sum + magnitudes(cluster)))
    };
    [true, false].into_iter().map(class).filter(|(texts, _)| *texts > 0.0).map(|(texts, sum)| sum / texts).sum()
}

impl Slopes {
    fn add(&mut self, tokens: &[TokenStats]) {
        if let Some(slope) = entropy_slope(tokens).filter(|slope| slope.is_finite()) {
            self.texts += 1;
            self.sum += slope;
            self.falling += usize::from(slope < 0.0);
        }
    }
}

/// The least-squares slope of the entropy by position; `None` for a single token.
fn entropy_slope(tokens: &[TokenStats]) -> Option<f64> {
    let (first, _) = tokens.split_first().filter(|(_, others)| !others.is_empty())?;
    let count = tokens.len() as f64;
    let centre = (count - 1.0) / 2.0;
    // Relative to the first entropy, so that a constant entropy has a slope of exactly 0.
    let products =
        tokens.iter().enumerate().map(|(t, token)| (t as f64 - centre) * (token.entropy() - first.entropy()));
    Some(products.sum::<f64>() / (count * (count * count - 1.0) / 12.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::{assert_exact_level, assert_within, normals};
    use proptest::prelude::*;

    fn token(lp: f64, entropy: f64) -> TokenStats {
        TokenStats { lp, mu: -entropy, var: 1.0, max_lp: -0.5 }
    }

    fn text(lps: &[f64]) -> Vec<TokenStats> {
        lps.iter().map(|&lp| token(lp, 1.0)).collect()
    }

    /// The text at `index` of 60 with 12 to 20 tokens: every third is a member, whose log-probabilities are raised by 1
    /// at the first five positions and by 0.25 after them.
    fn sample(index: usize) -> (bool, Vec<TokenStats>) {
        let member = index.is_multiple_of(3);
        let raised = |t| if member { if t < 5 { 1.0 } else { 0.25 } } else { 0.0 };
        let token = |t| {
            let lp = raised(t) - ((index * 7919 + t * 104_729) % 1009) as f64 / 100.0;
            token(lp, ((index * 31 + t * 57) % 83) as f64 / 10.0)
        };
        (member, (0..12 + index * 7 % 9).map(token).collect())
    }

    fn sums_of_samples(order: &[usize], clusters: usize) -> PriorTestSums {
        let mut sums = PriorTestSums::default();
        for &index in order {
            let (member, tokens) = sample(index);
            sums.add(member, index % clusters, &tokens);
        }
        sums
    }

    fn finish(sums: &PriorTestSums) -> PriorTest {
        sums.finish(0, &|| true).expect("both classes")
    }

    /// Expected: NumPy. The gaps are means over the columns of the matrix of texts by positions, the p-values are of
    /// 100,000 permutations with `numpy.random.default_rng`, compared within four standard errors of 999, and the
    /// slopes are of `numpy.polyfit(positions, entropies, 1)`.
    #[test]
    fn sixty_texts_as_numpy() {
        let order: Vec<usize> = (0..60).collect();
        let test = finish(&sums_of_samples(&order, 60));
        assert_eq!(test.positions, 12);
        assert_within(test.early_gap, 0.7241250000000005, 1e-12);
        assert_within(test.late_gap, 0.22524999999999964, 1e-12);
        assert_within(test.p_value, 0.03912, 0.025);
        assert_within(test.entropy_slope.unwrap(), 0.006466744426883711, 1e-12);
        assert_eq!(test.share_falling, Some(0.6));
        // Sixteen texts join the cluster of an earlier one, some with the other label.
        let joined = finish(&sums_of_samples(&order, 44));
        assert_within(joined.early_gap, 0.5121001221001227, 1e-12);
        assert_within(joined.late_gap, 0.1950793650793655, 1e-12);
        assert_within(joined.p_value, 0.09959, 0.038);
        assert_eq!(joined.entropy_slope, test.entropy_slope);
    }

    #[test]
    fn halves_of_an_odd_number_of_positions() {
        let mut sums = PriorTestSums::default();
        sums.add(true, 0, &text(&[-1.0, -2.0, -4.0, -9.0]));
        sums.add(false, 1, &text(&[-4.0, -3.0, -6.0]));
        let test = finish(&sums);
        // Position 1, and positions 2 and 3. Two clusters have two permutations, of which one reaches the observed T.
        assert_eq!((test.positions, test.early_gap, test.late_gap), (3, 3.0, 1.5));
        assert!((0.43..0.57).contains(&test.p_value), "{}", test.p_value);
        assert_eq!((test.entropy_slope, test.share_falling), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn what_cannot_be_tested() {
        let finish = |texts: &[(bool, &[f64])]| {
            let mut sums = PriorTestSums::default();
            texts.iter().enumerate().for_each(|(index, (member, lps))| sums.add(*member, index, &text(lps)));
            sums.finish(0, &|| true)
        };
        let (two, one): (&[f64], &[f64]) = (&[-1.0, -2.0], &[-1.0]);
        assert_eq!([finish(&[]), finish(&[(true, two)]), finish(&[(false, two), (false, two)])], [None; 3]);
        assert_eq!(finish(&[(true, two), (false, one)]), None);
        // Texts without tokens, and with ones that are not finite, are omitted.
        assert_eq!(finish(&[(true, two), (false, &[]), (false, &[f64::NAN])]), None);
        let test = finish(&[(true, two), (false, two), (false, &[]), (false, &[f64::NEG_INFINITY])]);
        assert_eq!(test.expect("both classes").positions, 2);
    }

    /// Every permutation of equal texts has the same T, whatever its rounding.
    #[test]
    fn equal_texts_have_a_p_value_of_one() {
        let mut sums = PriorTestSums::default();
        (0..30).for_each(|index| sums.add(index % 3 == 0, index, &text(&[-0.1, -0.2, -0.7, -0.3, -0.9])));
        assert_eq!(finish(&sums).p_value, 1.0);
    }

    #[test]
    fn positions_are_bounded() {
        let mut sums = PriorTestSums::default();
        let long = text(&[-1.0; 300]);
        sums.add(true, 0, &long);
        sums.add(false, 1, &long);
        assert_eq!((sums.positions, sums.sums.len()), (Some(256), 512));
        assert_eq!([1, 65_536, 65_537, 131_073, 1 << 24, 1 << 25].map(most_positions), [256, 256, 128, 64, 1, 0]);
        for cluster in 2..65_538 {
            sums.add(false, cluster, &long);
        }
        assert_eq!((sums.positions, sums.sums.len()), (Some(128), 128 * 65_538));
        assert!(sums.sums.iter().all(|sum| *sum == -1.0));
    }

    #[test]
    fn a_stopped_test_has_fewer_permutations() {
        let sums = sums_of_samples(&(0..60).collect::<Vec<_>>(), 60);
        assert_eq!(sums.finish(0, &|| false).expect("both classes").p_value, 1.0);
    }

    #[test]
    fn type_one_error() {
        let mut seed = 0;
        assert_exact_level("prior test", |random| {
            let mut sums = PriorTestSums::default();
            for index in 0..40 {
                // Members differ from non-members, equally at all positions.
                let gap = if index % 2 == 0 { 0.5 } else { 0.0 };
                let lps: Vec<f64> = normals(random, 9).iter().map(|lp| lp + gap).collect();
                sums.add(index % 2 == 0, index, &text(&lps));
            }
            seed += 1;
            sums.finish(seed, &|| true).expect("both classes").p_value
        });
    }

    proptest! {
        #[test]
        fn the_order_of_texts_changes_rounding_at_most(
            order in Just((0..60).collect::<Vec<usize>>()).prop_shuffle()
        ) {
            let (expected, test) = (finish(&sums_of_samples(&(0..60).collect::<Vec<_>>(), 60)), {
                finish(&sums_of_samples(&order, 60))
            });
            prop_assert_eq!(test.positions, expected.positions);
            prop_assert!((test.early_gap - expected.early_gap).abs() < 1e-12);
            prop_assert!((test.late_gap - expected.late_gap).abs() < 1e-12);
            prop_assert!((test.entropy_slope.unwrap() - expected.entropy_slope.unwrap()).abs() < 1e-12);
            prop_assert_eq!(test.share_falling, expected.share_falling);
        }
    }
}
