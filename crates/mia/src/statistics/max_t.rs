//! Permutation tests of several methods at once, within groups, adjusted for their number.

use crate::random::{index_below, stream};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The maximum number of clusters: a sum of ranks is then less than 2^61.
const MOST_CLUSTERS: usize = 1 << 30;

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

/// Contribution of each cluster to the statistic of a method if it is a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankColumn {
    /// Twice the mid-rank among the clusters of its stratum less twice their mean rank, an integer; of a difference that of
    /// the one score less that of the other. 0 for a cluster without a score.
    ranks: Vec<i64>,
    /// True for each cluster that has a score.
    scored: Vec<bool>,
}

impl RankColumn {
    /// The ranks of the clusters' scores within strata. `None` stands for a cluster that the method could not score.
    #[must_use]
    pub fn new(scores: &[Option<f64>], strata: &[usize]) -> Self {
        Self { ranks: centred_ranks(scores, strata), scored: scores.iter().map(Option::is_some).collect() }
    }

    /// The ranks of one score less those of another, on the clusters that have both.
    #[must_use]
    pub fn difference(first: &[Option<f64>], second: &[Option<f64>], strata: &[usize]) -> Self {
        let both = |a: &[Option<f64>], b: &[Option<f64>]| -> Vec<Option<f64>> {
            a.iter().zip(b).map(|(a, b)| a.filter(|_| b.is_some())).collect()
        };
        let (mut first, second) = (Self::new(&both(first, second), strata), Self::new(&both(second, first), strata));
        first.ranks.iter_mut().zip(&second.ranks).for_each(|(rank, other)| *rank -= other);
        first
    }
}

/// Tests for each of `columns` whether members score higher, and adjusts for the number of columns by the step-down
/// maxT procedure of Westfall and Young 1993 (as algorithm 4.1 of Ge, Dudoit and Speed 2003).
///
/// `labels` tells which clusters are members, `strata` within which clusters they are exchangeable; every column has a
/// place for each cluster. `permutations` times, the labels are exchanged between the clusters of each stratum that have a
/// score in any column, in the same way for all columns, so that the dependence between columns is kept.
///
/// The statistic is the sum of the members' centred mid-ranks, which is `2 sum_g m_g n_g (AUROC_g - 1/2)` over the strata:
/// an increasing function of the AUROC within strata, and of the difference between two for a column of differences.
/// Columns are made comparable by the statistic's exact moments over all permutations. The mean is 0; with K of I clusters
/// of a stratum labelled as members the variance is the sum over strata of `K (I - K) / (I (I - 1)) sum c^2`, with c the
/// centred ranks. The moments of the drawn permutations would add noise.
///
/// A column has no test if no stratum has both labels among the clusters that it scores, or if its statistic does not
/// vary. Returns no tests at all for more than 2^30 clusters, or once `keep_going` returns false. The seed decides the
/// permutations, on any number of threads. Runs on rayon's pool; O(n) for each column and permutation.
pub fn max_t(
    labels: &[bool],
    strata: &[usize],
    columns: &[RankColumn],
    permutations: usize,
    seed: u64,
    keep_going: &dyn Fn() -> bool,
) -> Vec<Option<PermutationTest>> {
    let mut tests = vec![None; columns.len()];
    let Some(family) = ColumnFamily::new(labels, strata, columns) else { return tests };
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

/// The clusters that are exchangeable with each other.
struct Stratum {
    /// Their places in the groups of columns.
    clusters: std::ops::Range<usize>,
    /// Number of clusters that a permutation draws: those of the rarer label.
    drawn: usize,
    /// True if members are the rarer label.
    draws_members: bool,
}

/// The columns tested together.
struct ColumnFamily {
    /// In ascending order of the standardised observed sum.
    tested: Vec<Tested>,
    /// For each group of columns and each cluster, in the order of the strata, its ranks in each of them.
    groups: Vec<Vec<[i64; LANES]>>,
    /// Those with both labels.
    strata: Vec<Stratum>,
}

/// Number of permutations that reach the observed statistic of each tested column.
struct Exceeded {
    /// With the column's own statistic.
    alone: Vec<usize>,
    /// With the largest one of the column and of those with smaller observed statistics.
    largest: Vec<usize>,
}

impl ColumnFamily {
    /// `None` if no column has a test.
    fn new(labels: &[bool], strata: &[usize], columns: &[RankColumn]) -> Option<Self> {
        let is_scored = |cluster: &usize| columns.iter().any(|column| column.scored[*cluster]);
        let mut clusters: Vec<usize> = (0..labels.len()).filter(is_scored).collect();
        clusters.sort_by_key(|&cluster| strata[cluster]);
        let (mut kept, mut exchangeable) = (Vec::<usize>::new(), Vec::<Stratum>::new());
        for stratum in clusters.chunk_by(|a, b| strata[*a] == strata[*b]) {
            let members = stratum.iter().filter(|cluster| labels[**cluster]).count();
            let drawn = members.min(stratum.len() - members);
            if drawn > 0 {
                let range = kept.len()..kept.len() + stratum.len();
                exchangeable.push(Stratum { clusters: range, drawn, draws_members: drawn == members });
                kept.extend(stratum);
            }
        }
        if labels.len() > MOST_CLUSTERS {
            return None;
        }
        let mut tested = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let ranks: Vec<i64> = kept.iter().map(|&cluster| column.ranks[cluster]).collect();
            let has_label = |stratum: &Stratum, label: bool| {
                kept[stratum.clusters.clone()].iter().any(|&cluster| column.scored[cluster] && labels[cluster] == label)
            };
            let is_compared = exchangeable.iter().any(|stratum| has_label(stratum, true) && has_label(stratum, false));
            let observed = kept.iter().zip(&ranks).filter(|(cluster, _)| labels[**cluster]).map(|(_, rank)| rank).sum();
            let deviation = exchangeable.iter().map(|stratum| stratum.variance(&ranks)).sum::<f64>().sqrt();
            if is_compared && deviation > 0.0 {
                tested.push((Tested { column: place, observed, deviation }, ranks));
            }
        }
        // A stable order, so that equal columns keep theirs.
        tested.sort_by(|(a, _), (b, _)| a.standardised(a.observed).total_cmp(&b.standardised(b.observed)));
        let (tested, ranks): (Vec<Tested>, Vec<Vec<i64>>) = tested.into_iter().unzip();
        let groups = ranks.chunks(LANES).map(|columns| interleaved(columns, kept.len())).collect();
        Some(Self { tested, groups, strata: exchangeable }).filter(|family| !family.tested.is_empty())
    }

    /// Counts over the permutations of one block, which has its own stream of random numbers.
    fn block(&self, block: usize, permutations: usize, mut random: ChaCha8Rng) -> Exceeded {
        random.set_stream(block as u64);
        let mut chosen: Vec<Subset> =
            self.strata.iter().map(|stratum| Subset::new(stratum.clusters.len(), stratum.drawn)).collect();
        let mut exceeded = Exceeded::new(self.tested.len());
        let mut sums = vec![[0; LANES]; self.groups.len()];
        for _ in 0..permutations {
            sums.fill([0; LANES]);
            for (stratum, chosen) in self.strata.iter().zip(&mut chosen) {
                chosen.draw(&mut random);
                // All centred ranks of a stratum sum to 0.
                let sign = if stratum.draws_members { 1 } else { -1 };
                for (sums, group) in sums.iter_mut().zip(&self.groups) {
                    let drawn = chosen.sums(&group[stratum.clusters.clone()]);
                    sums.iter_mut().zip(drawn).for_each(|(sum, drawn)| *sum += sign * drawn);
                }
            }
            let mut largest = f64::NEG_INFINITY;
            for (place, (tested, &sum)) in self.tested.iter().zip(sums.iter().flatten()).enumerate() {
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

impl Stratum {
    /// The variance over all permutations of the sum of the members' ranks.
    fn variance(&self, ranks: &[i64]) -> f64 {
        let (all, drawn) = (self.clusters.len() as f64, self.drawn as f64);
        let squares: f64 = ranks[self.clusters.clone()].iter().map(|&rank| (rank as f64).powi(2)).sum();
        drawn * (all - drawn) / (all * (all - 1.0)) * squares
    }
}

/// For each cluster, twice its mid-rank among the scores of its stratum less twice the mean rank: the number of scores
/// below its own less the number above it. 0 without a score.
fn centred_ranks(scores: &[Option<f64>], strata: &[usize]) -> Vec<i64> {
    let mut known: Vec<(usize, f64, usize)> =
        (0..).zip(scores).filter_map(|(cluster, score)| Some((strata[cluster], (*score)?, cluster))).collect();
    known.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut ranks = vec![0; scores.len()];
    for stratum in known.chunk_by(|a, b| a.0 == b.0) {
        let (mut below, mut above) = (0, stratum.len() as i64);
        for tie in stratum.chunk_by(|a, b| a.1 == b.1) {
            above -= tie.len() as i64;
            tie.iter().for_each(|&(_, _, cluster)| ranks[cluster] = below - above);
            below += tie.len() as i64;
        }
    }
    ranks
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
    /// A bit is first set with probability `2^-halvings`; `None` if few are chosen.
    halvings: Option<u32>,
}

impl Subset {
    /// A subset of `count` of the clusters, at most half of them; none is chosen yet.
    fn new(clusters: usize, count: usize) -> Self {
        let excess = |halvings: &u32| (clusters >> halvings).abs_diff(count);
        // Drawing few clusters one by one is faster than visiting each cluster.
        let halvings = (1..=4).min_by_key(excess).filter(|_| count >= clusters / 16);
        Self { words: vec![0; clusters.div_ceil(64)], clusters, count, halvings }
    }

    /// Chooses uniformly among all subsets of that size: each cluster by itself, or none of them, and then others are added, or
    /// chosen ones removed, one at a time, until `count` are chosen. Subsets of one size are equally probable after each
    /// step, since no step tells one cluster from another.
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

    type Column = Vec<Option<f64>>;

    /// The tests of clusters in a single stratum.
    fn test(labels: &[bool], columns: &[Column]) -> Vec<Option<PermutationTest>> {
        let strata = vec![0; labels.len()];
        let columns: Vec<RankColumn> = columns.iter().map(|column| RankColumn::new(column, &strata)).collect();
        max_t(labels, &strata, &columns, 199, 0, &|| true)
    }

    /// About normal, with variance 1.
    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| f64::from(random.next_u32()) / 4_294_967_296.0).sum::<f64>() - 6.0
    }

    /// Twice the wins less the losses of members against non-members of their stratum, by definition.
    fn pairs_won(column: &[Option<f64>], strata: &[usize], members: &[bool]) -> f64 {
        let mut sum = 0.0;
        for (a, score) in column.iter().enumerate().filter(|(a, _)| members[*a]) {
            let others = (0..column.len()).filter(|&b| !members[b] && strata[b] == strata[a]);
            for other in others.map(|b| &column[b]) {
                if let (Some(score), Some(other)) = (score, other) {
                    sum += f64::from(i8::from(score > other) - i8::from(score < other));
                }
            }
        }
        sum
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

    /// Eleven clusters in two strata, two members of six and two of five, and three columns, one with missing scores and
    /// ties, one a difference. All 150 permutations within strata, standardised by their own mean and deviation, give the
    /// exact p-values.
    #[test]
    fn p_values_are_near_those_of_all_permutations_within_strata() {
        let strata = [0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0];
        let labels = [true, true, true, false, true, false, false, false, false, false, false];
        let scores: [Column; 4] = [
            [3.0, 9.0, 8.0, 4.0, 7.0, 1.0, 2.0, 5.0, 6.0, 0.0, 3.5].map(Some).to_vec(),
            [0.5, 2.0, 2.0, 2.0, 1.0, 0.0, 1.0, f64::NAN, 0.5, 0.0, 2.5]
                .map(|s: f64| Some(s).filter(|s| !s.is_nan()))
                .to_vec(),
            [5.0, 1.0, 3.0, 2.0, 4.0, 9.0, 8.0, 7.0, 6.0, 0.0, 2.5].map(Some).to_vec(),
            [5.0, 6.0, 3.0, 2.0, 4.0, 3.0, 8.0, 1.0, 6.0, 0.0, 7.0].map(Some).to_vec(),
        ];
        let won = |members: &[bool]| {
            let [a, b, c, d] = scores.each_ref().map(|column| pairs_won(column, &strata, members));
            [a, b, c - d]
        };
        let permutations: Vec<Vec<bool>> = (0..2048_usize)
            .map(|bits| (0..11).map(|cluster| bits >> cluster & 1 == 1).collect::<Vec<bool>>())
            .filter(|members| {
                let drawn = |stratum| (0..11).filter(|&c| members[c] && strata[c] == stratum).count();
                drawn(0) == 2 && drawn(1) == 2
            })
            .collect();
        assert_eq!(permutations.len(), 150);
        let statistics: Vec<[f64; 3]> = permutations.iter().map(|members| won(members)).collect();
        let deviation: [f64; 3] = std::array::from_fn(|column| {
            let squares: f64 = statistics.iter().map(|sums| sums[column] * sums[column]).sum();
            (squares / 150.0).sqrt()
        });
        let standardised = |sums: &[f64; 3]| -> [f64; 3] { std::array::from_fn(|c| sums[c] / deviation[c]) };
        let statistics: Vec<[f64; 3]> = statistics.iter().map(standardised).collect();
        let observed = standardised(&won(&labels));
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
        let columns = [
            RankColumn::new(&scores[0], &strata),
            RankColumn::new(&scores[1], &strata),
            RankColumn::difference(&scores[2], &scores[3], &strata),
        ];
        let tests = max_t(&labels, &strata, &columns, 50_000, 3, &|| true);
        let mut adjusted = 0.0_f64;
        for (place, &column) in order.iter().enumerate() {
            let share = |among: &[usize]| {
                let reached = |sums: &&[f64; 3]| among.iter().any(|&other| sums[other] >= observed[column] - 1e-9);
                statistics.iter().filter(reached).count() as f64 / 150.0
            };
            adjusted = adjusted.max(share(&order[place..]));
            let test = tests[column].expect("a test");
            // Five standard errors of a share among 50,000.
            assert!((test.p_value - share(&[column])).abs() < 0.0112, "{test:?}");
            assert!((test.p_value_adjusted - adjusted).abs() < 0.0112, "{test:?} {adjusted}");
        }
    }

    /// With two of each in a stratum, the p-value of members on top in all of k strata is 6^-k.
    #[test]
    fn strata_are_permuted_by_themselves() {
        let strata: Vec<usize> = (0..12).map(|cluster| cluster / 4).collect();
        let labels: Vec<bool> = (0..12).map(|cluster| cluster % 4 < 2).collect();
        let scores: Column = (0..12).map(|cluster| Some(f64::from(100 * (cluster / 4) - cluster % 4))).collect();
        let tests = max_t(&labels, &strata, &[RankColumn::new(&scores, &strata)], 99_999, 0, &|| true);
        let p_value = tests[0].expect("a test").p_value;
        assert!((p_value - 1.0 / 216.0).abs() < 0.0011, "{p_value}");
        // Without strata nothing stands out.
        assert!(test(&labels, &[scores])[0].expect("a test").p_value > 0.1);
    }

    /// Six methods that share half of their variance, on samples that are all of one kind.
    #[test]
    fn the_best_of_six_methods_is_rarely_found_by_chance() {
        let mut random = stream(7, "null methods");
        let labels: Vec<bool> = (0..60).map(|sample| sample % 2 == 0).collect();
        let (mut unadjusted, mut adjusted) = (0, 0);
        for seed in 0..400 {
            let common: Vec<f64> = labels.iter().map(|_| normal(&mut random)).collect();
            let column = |_| -> RankColumn {
                let scores: Column = common.iter().map(|shared| Some(shared + normal(&mut random))).collect();
                RankColumn::new(&scores, &[0; 60])
            };
            let columns: Vec<RankColumn> = (0..6).map(column).collect();
            let tests = max_t(&labels, &[0; 60], &columns, 199, seed, &|| true);
            unadjusted += usize::from(tests.iter().flatten().any(|test| test.p_value <= 0.05));
            adjusted += usize::from(tests.iter().flatten().any(|test| test.p_value_adjusted <= 0.05));
        }
        // 20 of 400 are expected, with a standard deviation of 4.4.
        assert!((7..=33).contains(&adjusted), "{adjusted} of 400");
        assert!(unadjusted > 50, "{unadjusted} of 400");
    }

    #[test]
    fn what_has_no_test() {
        let labels = [true, true, false, false];
        let (constant, one_class) = (vec![Some(1.0); 4], vec![Some(1.0), Some(2.0), None, None]);
        let scores: Column = [4.0, 3.0, 2.0, 1.0].map(Some).to_vec();
        let tests = test(&labels, &[constant, one_class, scores.clone(), vec![None; 4]]);
        assert_eq!(tests.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(test(&[true; 4], std::slice::from_ref(&scores)), [None]);
        assert_eq!((test(&labels, &[]), test(&[], &[vec![]])), (vec![], vec![None]));
        // Each stratum of one label.
        let column = [RankColumn::new(&scores, &[0, 0, 1, 1])];
        assert_eq!(max_t(&labels, &[0, 0, 1, 1], &column, 99, 0, &|| true), [None]);
        let column = [RankColumn::new(&scores, &[0; 4])];
        assert_eq!(max_t(&labels, &[0; 4], &column, 99, 0, &|| false), [None]);
        let without = max_t(&labels, &[0; 4], &column, 0, 0, &|| true);
        assert_eq!(without, [Some(PermutationTest { p_value: 1.0, p_value_adjusted: 1.0 })]);
    }

    #[test]
    fn a_score_less_itself_has_no_test() {
        let scores: Column = [4.0, 3.0, 2.0, 1.0].map(Some).to_vec();
        let column = [RankColumn::difference(&scores, &scores, &[0; 4])];
        assert_eq!(max_t(&[true, true, false, false], &[0; 4], &column, 99, 0, &|| true), [None]);
    }

    /// Some permutations give both columns the same standardised statistic, but for the rounding of their deviations.
    #[test]
    fn equal_statistics_of_different_columns_are_ties() {
        let columns = [[Some(0.0), Some(1.0), Some(2.0), Some(0.0)], [None, Some(1.0), Some(0.0), None]];
        let tests = test(&[false, false, true, false], &columns.map(|column| column.to_vec()));
        assert!(tests[0].is_some_and(|test| test.p_value_adjusted > test.p_value + 0.1));
    }

    #[test]
    fn threads_do_not_matter() {
        let labels: Vec<bool> = (0..101).map(|i| i % 3 == 0).collect();
        let columns: Vec<Vec<Option<f64>>> =
            (0..11).map(|c| (0..101).map(|i| Some(f64::from((i * 31 + c * c * 7) % 50))).collect()).collect();
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| test(&labels, &columns))
        };
        assert_eq!(on(1), on(4));
    }

    proptest! {
        #[test]
        fn monotone_functions_change_nothing(
            rows in prop::collection::vec((any::<bool>(), -4_i32..4, prop::option::weighted(0.8, -9_i32..9)), 1..40),
        ) {
            let labels: Vec<bool> = rows.iter().map(|row| row.0).collect();
            let columns = [
                rows.iter().map(|row| Some(f64::from(row.1))).collect::<Vec<_>>(),
                rows.iter().map(|row| row.2.map(f64::from)).collect(),
            ];
            let tests = test(&labels, &columns);
            for test in tests.iter().flatten() {
                prop_assert!(0.0 < test.p_value && test.p_value <= test.p_value_adjusted);
                prop_assert!(test.p_value_adjusted <= 1.0);
            }
            let cubed = columns.each_ref().map(|column| column.iter().map(|s| s.map(|s| s.powi(3))).collect());
            prop_assert_eq!(test(&labels, &cubed), tests);
        }
    }
}
