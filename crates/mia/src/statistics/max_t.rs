//! Permutation tests of several methods at once, adjusted for their number.

use super::cluster_index::ClusterIndex;
use crate::random::{index_below, stream};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum number of samples: a sum of rank scores is then less than 2^60.
const MOST_SAMPLES: usize = 1 << 30;

/// Permutations that share a stream of random numbers.
const BLOCK: usize = 16;

/// Blocks that are computed at once; between rounds, the caller may cancel.
const ROUND: usize = 16;

/// Standardised statistics of different columns that differ by less are equal but for rounding.
const ROUNDING: f64 = 1e-9;

/// Columns that are summed at once: 64 bytes of each cluster.
const LANES: usize = 8;

/// One-sided permutation p-values of a method: its members score higher than by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PermutationTest {
    /// `(1 + r) / (1 + N)`, with N the permutations and r those with a statistic at least as large: never 0.
    pub p_value: f64,
    /// The p-value adjusted for choosing among the methods tested together, by the largest statistic of each
    /// permutation; at least `p_value`.
    pub p_value_adjusted: f64,
}

/// Tests for each of `columns` whether members score higher, and adjusts for the number of columns by the step-down
/// maxT procedure of Westfall and Young 1993 (as algorithm 4.1 of Ge, Dudoit and Speed 2003).
///
/// `labels` tells which samples are members; a column has a score for each sample, where `None`, or a score that is not
/// finite, is one that the method could not score. Samples are of one cluster if their entries in `clusters` are equal;
/// a sample without an entry is a cluster by itself. A cluster takes part with the label of its first sample, whatever
/// the labels of the others. `permutations` times, these labels are exchanged between the clusters that have a score,
/// in the same way for all columns, so that the dependence between columns is kept.
///
/// The statistic is the sum of the members' mid-ranks, each less the mean rank, among the samples that the column
/// scores: the Mann-Whitney statistic less its mean. Ranks that are not centred would favour permutations in which
/// large clusters are members, for the number of their samples alone. Columns are made comparable by the statistic's
/// exact moments over all permutations. The mean is 0; with K of I clusters labelled as members the variance is
/// `K (I - K) / (I (I - 1)) sum c^2`, with c the sum of centred ranks in a cluster. They hold for clusters of any size,
/// while the textbook variance of a rank sum holds for independent samples, and the moments of the drawn permutations
/// would add noise.
///
/// A column has no test if the clusters that it scores have one label, or if its statistic does not vary. Returns no
/// tests at all for more than 2^30 samples, or once `keep_going` returns false. The seed decides the permutations, on
/// any number of threads. Runs on rayon's pool; O(n log n) for each column, and O(n) for each column and permutation.
pub fn max_t(
    labels: &[bool],
    clusters: &[usize],
    columns: &[&[Option<f64>]],
    permutations: usize,
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Vec<Option<PermutationTest>> {
    let mut tests = vec![None; columns.len()];
    let Some(family) = ColumnFamily::new(labels, clusters, columns) else { return tests };
    let random = stream(seed, "max-t");
    let blocks: Vec<usize> = (0..permutations.div_ceil(BLOCK)).collect();
    let mut exceeded = Exceeded::new(family.tested.len());
    for round in blocks.chunks(ROUND) {
        if !keep_going() {
            return tests;
        }
        let count = |&block: &usize| family.block(block, BLOCK.min(permutations - block * BLOCK), random.clone());
        let counts: Vec<Exceeded> = round.par_iter().map(count).collect();
        counts.iter().for_each(|counts| exceeded.add(counts));
    }
    for (column, test) in family.tests(&exceeded, permutations) {
        tests[column] = Some(test);
    }
    tests
}

/// A column that has a test.
struct Tested {
    /// Its place among the columns.
    column: usize,
    /// The observed sum of the members' centred ranks, doubled.
    observed: i64,
    /// The standard deviation of that sum over all permutations.
    deviation: f64,
}

/// The columns tested together.
struct ColumnFamily {
    /// In ascending order of the standardised observed sum.
    tested: Vec<Tested>,
    /// For each group of columns and each cluster, the sum of centred ranks, doubled, in each of them.
    groups: Vec<Vec<[i64; LANES]>>,
    clusters: usize,
    /// How many clusters a permutation draws: those of the rarer label.
    drawn: usize,
    /// Whether members are the rarer label.
    draws_members: bool,
}

/// How many permutations reach the observed statistic of each tested column.
struct Exceeded {
    /// With the column's own statistic.
    alone: Vec<usize>,
    /// With the largest one of the column and of those with smaller observed statistics.
    largest: Vec<usize>,
}

impl ColumnFamily {
    /// `None` if no column has a test.
    fn new(labels: &[bool], clusters: &[usize], columns: &[&[Option<f64>]]) -> Option<Self> {
        let score =
            |column: &[Option<f64>], sample: usize| column.get(sample).copied().flatten().filter(|s| s.is_finite());
        let scored = |sample: &usize| columns.iter().any(|column| score(column, *sample).is_some());
        let samples: Vec<usize> = (0..labels.len()).filter(scored).collect();
        let index = ClusterIndex::new(clusters, samples.iter().copied());
        let members = cluster_labels(labels, &samples, &index);
        let number = members.iter().filter(|member| **member).count();
        if labels.len() > MOST_SAMPLES || number == 0 || number == index.count {
            return None;
        }
        // Less than 1: the variance of the sum, divided by the sum of squares.
        let share = number as f64 / index.count as f64 * (index.count - number) as f64 / (index.count as f64 - 1.0);
        let mut tested = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let scores: Vec<(f64, usize)> = samples
                .iter()
                .zip(&index.numbers)
                .filter_map(|(&sample, &cluster)| Some((score(column, sample)?, cluster)))
                .collect();
            let both = [true, false].iter().all(|label| scores.iter().any(|(_, cluster)| members[*cluster] == *label));
            let sums = centred_rank_sums(scores, index.count);
            let observed = sums.iter().zip(&members).filter(|(_, member)| **member).map(|(sum, _)| sum).sum();
            let squares: f64 = sums.iter().map(|&sum| (sum as f64).powi(2)).sum();
            if both && squares > 0.0 {
                tested.push((Tested { column: place, observed, deviation: (share * squares).sqrt() }, sums));
            }
        }
        // A stable order, so that equal columns keep theirs.
        tested.sort_by(|(a, _), (b, _)| a.standardised(a.observed).total_cmp(&b.standardised(b.observed)));
        let (tested, sums): (Vec<Tested>, Vec<Vec<i64>>) = tested.into_iter().unzip();
        let drawn = number.min(index.count - number);
        let groups = sums.chunks(LANES).map(|columns| interleaved(columns, index.count)).collect();
        let family = Self { tested, groups, clusters: index.count, drawn, draws_members: drawn == number };
        Some(family).filter(|family| !family.tested.is_empty())
    }

    /// Counts over the permutations of one block, which has its own stream of random numbers.
    fn block(&self, block: usize, permutations: usize, mut random: ChaCha8Rng) -> Exceeded {
        random.set_stream(block as u64);
        let mut chosen = Subset::new(self.clusters, self.drawn);
        let mut exceeded = Exceeded::new(self.tested.len());
        for _ in 0..permutations {
            chosen.draw(&mut random);
            let sums = self.groups.iter().flat_map(|group| chosen.sums(group));
            let mut largest = f64::NEG_INFINITY;
            for (place, (tested, sum)) in self.tested.iter().zip(sums).enumerate() {
                // All centred ranks sum to 0.
                let sum = if self.draws_members { sum } else { -sum };
                largest = largest.max(tested.standardised(sum));
                exceeded.alone[place] += usize::from(sum >= tested.observed);
                exceeded.largest[place] += usize::from(largest >= tested.standardised(tested.observed) - ROUNDING);
            }
        }
        exceeded
    }

    /// Each tested column with its p-values.
    fn tests(&self, exceeded: &Exceeded, permutations: usize) -> Vec<(usize, PermutationTest)> {
        let share = |count: usize| (1 + count) as f64 / (1 + permutations) as f64;
        let counts = exceeded.alone.iter().zip(&exceeded.largest);
        let mut p_value_adjusted = 0.0_f64;
        let test = |(tested, (&alone, &largest)): (&Tested, (&usize, &usize))| {
            // A column with a smaller statistic does not have a smaller p-value.
            p_value_adjusted = p_value_adjusted.max(share(largest));
            (tested.column, PermutationTest { p_value: share(alone), p_value_adjusted })
        };
        self.tested.iter().zip(counts).rev().map(test).collect()
    }
}

impl Tested {
    fn standardised(&self, sum: i64) -> f64 {
        sum as f64 / self.deviation
    }
}

impl Exceeded {
    fn new(columns: usize) -> Self {
        Self { alone: vec![0; columns], largest: vec![0; columns] }
    }

    fn add(&mut self, other: &Self) {
        self.alone.iter_mut().zip(&other.alone).for_each(|(sum, count)| *sum += count);
        self.largest.iter_mut().zip(&other.largest).for_each(|(sum, count)| *sum += count);
    }
}

/// The label of each cluster: that of its first sample.
fn cluster_labels(labels: &[bool], samples: &[usize], index: &ClusterIndex) -> Vec<bool> {
    let mut members = vec![false; index.count];
    for (&sample, &cluster) in samples.iter().zip(&index.numbers).rev() {
        members[cluster] = labels[sample];
    }
    members
}

/// For each cluster, the sum over its scores of twice the mid-rank less twice the mean rank. For one score that is the
/// number of scores below it less the number above it, an integer.
fn centred_rank_sums(mut scores: Vec<(f64, usize)>, clusters: usize) -> Vec<i64> {
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut sums = vec![0; clusters];
    let (mut below, mut above) = (0, scores.len() as i64);
    for tie in scores.chunk_by(|a, b| a.0 == b.0) {
        above -= tie.len() as i64;
        tie.iter().for_each(|&(_, cluster)| sums[cluster] += below - above);
        below += tie.len() as i64;
    }
    sums
}

/// For each cluster, the sums of up to [`LANES`] columns side by side.
fn interleaved(columns: &[Vec<i64>], clusters: usize) -> Vec<[i64; LANES]> {
    let mut rows = vec![[0; LANES]; clusters];
    for (lane, column) in columns.iter().enumerate() {
        rows.iter_mut().zip(column).for_each(|(row, &sum)| row[lane] = sum);
    }
    rows
}

/// Clusters chosen at random, a bit for each.
struct Subset {
    words: Vec<u64>,
    clusters: usize,
    count: usize,
    /// A bit is first set with the probability of so many fair ones all being set; none where few are chosen.
    halvings: Option<u32>,
}

impl Subset {
    /// For `count` of so many clusters, at most half of them; none is chosen yet.
    fn new(clusters: usize, count: usize) -> Self {
        let excess = |halvings: &u32| (clusters >> halvings).abs_diff(count);
        // To draw few one by one is faster than to look at each cluster.
        let halvings = (1..=4).min_by_key(excess).filter(|_| count >= clusters / 16);
        Self { words: vec![0; clusters.div_ceil(64)], clusters, count, halvings }
    }

    /// Chooses uniformly among all subsets of that size: each cluster by itself, or none of them, and then others are added, or
    /// chosen ones removed, one at a time, until it is so many. Subsets of one size are equally probable after each step,
    /// since no step tells one cluster from another.
    fn draw(&mut self, random: &mut ChaCha8Rng) {
        let mut chosen = 0;
        for (place, word) in self.words.iter_mut().enumerate() {
            let there = self.clusters - 64 * place;
            let mask = if there < 64 { (1 << there) - 1 } else { u64::MAX };
            *word = match self.halvings {
                Some(halvings) => (0..halvings).fold(mask, |bits, _| bits & random.next_u64()),
                None => 0,
            };
            chosen += word.count_ones() as usize;
        }
        while chosen != self.count {
            let cluster = index_below(random, self.clusters as u32) as usize;
            let (word, bit) = (&mut self.words[cluster / 64], 1 << (cluster % 64));
            let (is_chosen, too_many) = (*word & bit != 0, chosen > self.count);
            if is_chosen == too_many {
                *word ^= bit;
                chosen = if too_many { chosen - 1 } else { chosen + 1 };
            }
        }
    }

    /// The sums of a group's rows that are chosen.
    fn sums(&self, group: &[[i64; LANES]]) -> [i64; LANES] {
        let mut sums = [0; LANES];
        for (word, rows) in self.words.iter().zip(group.chunks(64)) {
            let mut bits = *word;
            while bits != 0 {
                let row = &rows[bits.trailing_zeros() as usize];
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                bits &= bits - 1;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn test(labels: &[bool], clusters: &[usize], columns: &[Vec<Option<f64>>]) -> Vec<Option<PermutationTest>> {
        let columns: Vec<&[Option<f64>]> = columns.iter().map(Vec::as_slice).collect();
        max_t(labels, clusters, &columns, 199, 0, &|| true)
    }

    /// About normal, with variance 1.
    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| f64::from(random.next_u32()) / 4_294_967_296.0).sum::<f64>() - 6.0
    }

    /// The sum of centred mid-ranks of the clusters in `chosen`, by definition; 0 for what has no score.
    fn sum_by_definition(column: &[Option<f64>], clusters: &[usize], chosen: &[usize]) -> f64 {
        let scores: Vec<f64> = column.iter().flatten().copied().collect();
        let rank = |score: f64| {
            let below = scores.iter().filter(|other| **other < score).count() as f64;
            below + (scores.iter().filter(|other| **other == score).count() as f64 + 1.0) / 2.0
        };
        let mean = (scores.len() as f64 + 1.0) / 2.0;
        let samples = column.iter().zip(clusters).filter(|(_, cluster)| chosen.contains(cluster));
        samples.filter_map(|(score, _)| Some(rank((*score)?) - mean)).sum()
    }

    /// All subsets of a size are equally frequent: chi-squared with 55 degrees of freedom exceeds 93.2, and with 69 exceeds 111.1,
    /// in one of a thousand draws.
    #[test]
    fn every_subset_of_a_size_is_drawn_alike() {
        for (count, subsets, critical, singly) in [(3, 56, 93.2, false), (4, 70, 111.1, false), (3, 56, 93.2, true)] {
            let (mut random, mut counts) = (stream(1, "subsets"), vec![0_u32; 256]);
            let mut subset = Subset::new(8, count);
            subset.halvings = subset.halvings.filter(|_| !singly);
            for _ in 0..1_000 * subsets {
                subset.draw(&mut random);
                counts[subset.words[0] as usize] += 1;
            }
            let drawn = || counts.iter().enumerate().filter(|(_, times)| **times > 0);
            assert!(drawn().all(|(bits, _)| bits.count_ones() as usize == count));
            let excess = |times: &u32| (f64::from(*times) - 1_000.0).powi(2) / 1_000.0;
            let chi_squared: f64 = drawn().map(|(_, times)| excess(times)).sum();
            assert!(drawn().count() == subsets && chi_squared < critical, "{count}: {chi_squared}");
        }
    }

    #[test]
    fn subsets_of_all_sizes_have_their_size_and_their_sums() {
        let mut random = stream(2, "subsets");
        for clusters in [2, 63, 64, 65, 1_000] {
            let rows: Vec<[i64; LANES]> = (0..clusters).map(|row| [row as i64; LANES]).collect();
            for count in [1, clusters / 10, clusters / 4, clusters / 2] {
                let mut subset = Subset::new(clusters, count);
                subset.draw(&mut random);
                let is_chosen = |cluster: &usize| subset.words[cluster / 64] >> (cluster % 64) & 1 == 1;
                let chosen: Vec<usize> = (0..64 * subset.words.len()).filter(is_chosen).collect();
                assert!(chosen.len() == count && chosen.iter().all(|cluster| *cluster < clusters));
                assert_eq!(subset.sums(&rows), [chosen.iter().sum::<usize>() as i64; LANES]);
            }
        }
    }

    /// Eleven samples in eight clusters, three of them members, and three columns, one with missing scores and ties.
    /// All 56 choices of three clusters, standardised by their own mean and deviation, give the exact p-values.
    #[test]
    fn p_values_are_near_those_of_all_permutations() {
        let clusters = [0, 1, 1, 2, 3, 4, 4, 4, 5, 6, 7];
        let labels = [true, true, true, false, true, false, false, false, false, false, false];
        let columns = [
            [3.0, 9.0, 8.0, 4.0, 7.0, 1.0, 2.0, 5.0, 6.0, 0.0, 3.5].map(Some),
            [0.5, 2.0, 2.0, 2.0, 1.0, 0.0, 1.0, f64::NAN, 0.5, 0.0, 2.5].map(|s: f64| Some(s).filter(|s| !s.is_nan())),
            [5.0, 1.0, 3.0, 2.0, 4.0, 9.0, 8.0, 7.0, 6.0, 0.0, 2.5].map(Some),
        ];
        let subsets: Vec<Vec<usize>> = (0..256_usize)
            .filter(|bits| bits.count_ones() == 3)
            .map(|bits| (0..8).filter(|cluster| bits >> cluster & 1 == 1).collect())
            .collect();
        let standardised = columns.each_ref().map(|column| {
            let sums: Vec<f64> = subsets.iter().map(|chosen| sum_by_definition(column, &clusters, chosen)).collect();
            let mean = sums.iter().sum::<f64>() / 56.0;
            let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / 56.0;
            sums.iter().map(|sum| (sum - mean) / variance.sqrt()).collect::<Vec<f64>>()
        });
        let observed_place = subsets.iter().position(|chosen| chosen == &[0, 1, 3]).expect("a subset");
        let observed = standardised.each_ref().map(|values| values[observed_place]);
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
        let columns: Vec<&[Option<f64>]> = columns.iter().map(<[_; 11]>::as_slice).collect();
        let tests = max_t(&labels, &clusters, &columns, 50_000, 3, &|| true);
        let mut adjusted = 0.0_f64;
        for (place, &column) in order.iter().enumerate() {
            let share = |among: &[usize]| {
                let reached =
                    |subset: &usize| among.iter().any(|&other| standardised[other][*subset] >= observed[column] - 1e-9);
                (0..56).filter(reached).count() as f64 / 56.0
            };
            adjusted = adjusted.max(share(&order[place..]));
            let test = tests[column].expect("a test");
            // Five standard errors of a share among 50,000.
            assert!((test.p_value - share(&[column])).abs() < 0.0112, "{test:?}");
            assert!((test.p_value_adjusted - adjusted).abs() < 0.0112, "{test:?} {adjusted}");
        }
    }

    /// Six methods that share half of their variance, on samples that are all of one kind.
    #[test]
    fn the_best_of_six_methods_is_rarely_found_by_chance() {
        let mut random = stream(7, "null methods");
        let labels: Vec<bool> = (0..60).map(|sample| sample % 2 == 0).collect();
        let (mut unadjusted, mut adjusted) = (0, 0);
        for seed in 0..400 {
            let common: Vec<f64> = labels.iter().map(|_| normal(&mut random)).collect();
            let columns: Vec<Vec<Option<f64>>> =
                (0..6).map(|_| common.iter().map(|shared| Some(shared + normal(&mut random))).collect()).collect();
            let columns: Vec<&[Option<f64>]> = columns.iter().map(Vec::as_slice).collect();
            let tests = max_t(&labels, &[], &columns, 199, seed, &|| true);
            unadjusted += usize::from(tests.iter().flatten().any(|test| test.p_value <= 0.05));
            adjusted += usize::from(tests.iter().flatten().any(|test| test.p_value_adjusted <= 0.05));
        }
        // 20 of 400 are expected, with a standard deviation of 4.4.
        assert!((7..=33).contains(&adjusted), "{adjusted} of 400");
        assert!(unadjusted > 50, "{unadjusted} of 400");
    }

    #[test]
    fn repeated_samples_give_no_evidence_as_a_cluster() {
        let mut random = stream(8, "repeated");
        let labels: Vec<bool> = (0..150).map(|sample| sample / 5 % 2 == 0).collect();
        let clusters: Vec<usize> = (0..150).map(|sample| sample / 5).collect();
        let (mut clustered, mut independent) = (0, 0);
        for _ in 0..400 {
            let scores: Vec<f64> = (0..30).map(|_| normal(&mut random)).collect();
            let column: Vec<Option<f64>> = clusters.iter().map(|&cluster| Some(scores[cluster])).collect();
            let alarms = |clusters: &[usize]| {
                let tests = test(&labels, clusters, std::slice::from_ref(&column));
                usize::from(tests.iter().flatten().any(|test| test.p_value <= 0.05))
            };
            clustered += alarms(&clusters);
            independent += alarms(&[]);
        }
        assert!((7..=33).contains(&clustered), "{clustered} of 400");
        assert!(independent > 70, "{independent} of 400");
    }

    #[test]
    fn what_has_no_test() {
        let labels = [true, true, false, false];
        let constant = vec![Some(1.0); 4];
        let one_class = vec![Some(1.0), Some(2.0), None, Some(f64::INFINITY)];
        let scores: Vec<Option<f64>> = [4.0, 3.0, 2.0, 1.0].map(Some).to_vec();
        let tests = test(&labels, &[], &[constant, one_class, scores.clone(), vec![]]);
        assert_eq!(tests.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
        // All of one cluster, or of one label.
        assert_eq!(test(&labels, &[5; 4], std::slice::from_ref(&scores)), [None]);
        assert_eq!(test(&[true; 4], &[], std::slice::from_ref(&scores)), [None]);
        assert_eq!((test(&labels, &[], &[]), test(&[], &[], std::slice::from_ref(&scores))), (vec![], vec![None]));
        assert_eq!(max_t(&labels, &[], &[&scores], 99, 0, &|| false), [None]);
        let without = max_t(&labels, &[], &[&scores], 0, 0, &|| true);
        assert_eq!(without, [Some(PermutationTest { p_value: 1.0, p_value_adjusted: 1.0 })]);
    }

    #[test]
    fn a_cluster_has_the_label_of_its_first_sample() {
        let columns = [[1.0, 9.0, 2.0, 8.0, 3.0, 4.0].map(Some).to_vec()];
        let clusters = [0, 0, 1, 1, 2, 3];
        let mixed = test(&[true, false, false, true, true, false], &clusters, &columns);
        assert!(mixed[0].is_some());
        assert_eq!(mixed, test(&[true, true, false, false, true, false], &clusters, &columns));
    }

    /// Some permutations give both columns the same standardised statistic, but for the rounding of their deviations.
    #[test]
    fn equal_statistics_of_different_columns_are_ties() {
        let columns = [[Some(0.0), Some(1.0), Some(2.0), Some(0.0)], [None, Some(1.0), Some(0.0), None]];
        let clusters: Vec<usize> = (0..12).map(|place| place / 3).collect();
        let thrice = columns.map(|column| clusters.iter().map(|&place| column[place]).collect());
        let labels: Vec<bool> = clusters.iter().map(|&place| place == 2).collect();
        let tests = test(&[false, false, true, false], &[], &columns.map(|column| column.to_vec()));
        assert!(tests[0].is_some_and(|test| test.p_value_adjusted > test.p_value + 0.1));
        assert_eq!(test(&labels, &clusters, &thrice), tests);
    }

    #[test]
    fn threads_do_not_matter() {
        let labels: Vec<bool> = (0..101).map(|i| i % 3 == 0).collect();
        let columns: Vec<Vec<Option<f64>>> =
            (0..11).map(|c| (0..101).map(|i| Some(f64::from((i * 31 + c * c * 7) % 50))).collect()).collect();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| test(&labels, &[], &columns))
        };
        assert_eq!(on(1), on(4));
    }

    proptest! {
        #[test]
        fn monotone_functions_and_repetition_change_nothing(
            rows in prop::collection::vec((any::<bool>(), -4_i32..4, prop::option::weighted(0.8, -9_i32..9)), 1..40),
        ) {
            let labels: Vec<bool> = rows.iter().map(|row| row.0).collect();
            let columns = [
                rows.iter().map(|row| Some(f64::from(row.1))).collect::<Vec<_>>(),
                rows.iter().map(|row| row.2.map(f64::from)).collect(),
            ];
            let tests = test(&labels, &[], &columns);
            for test in tests.iter().flatten() {
                prop_assert!(0.0 < test.p_value && test.p_value <= test.p_value_adjusted);
                prop_assert!(test.p_value_adjusted <= 1.0);
            }
            let cubed = columns.each_ref().map(|column| column.iter().map(|s| s.map(|s| s.powi(3))).collect());
            prop_assert_eq!(&test(&labels, &[], &cubed), &tests);
            // Every sample three times, as a cluster.
            let thrice = |places: usize| (0..3 * places).map(|place| place / 3);
            let clusters: Vec<usize> = thrice(rows.len()).collect();
            let labels: Vec<bool> = clusters.iter().map(|&place| labels[place]).collect();
            let columns = columns.map(|column| thrice(rows.len()).map(|place| column[place]).collect());
            prop_assert_eq!(test(&labels, &clusters, &columns), tests);
        }
    }
}
