//! Names of the runs of words of two sequences, so that runs are compared in constant time.

use foldhash::HashMap;

/// Index of the first sequence of a pair in [`Grams`], and of the second.
pub(super) const FIRST: usize = 0;
pub(super) const SECOND: usize = 1;

/// The names of the runs of 1, 2, 4, 8 ... words of two sequences: two runs of one length are equal if and only if their names
/// are (Karp, Miller and Rosenberg 1972). No hash stands for a run, so no two runs can be confused.
///
/// Takes O(n) time and 4 bytes a word for each length up to that of the longest run that both sequences have.
pub(super) struct Grams {
    /// By the binary logarithm of the length, the names by sequence and first word.
    levels: Vec<[Vec<u32>; 2]>,
}

impl Grams {
    /// The names for two sequences of words, in which equal words are equal numbers.
    pub(super) fn new(first: &[u32], second: &[u32]) -> Self {
        let mut levels = Vec::new();
        let words = [first.to_vec(), second.to_vec()];
        let mut next = Some(words).filter(has_shared_name);
        while let Some(level) = next {
            next = Some(doubled(&level, 1 << levels.len())).filter(has_shared_name);
            levels.push(level);
        }
        Self { levels }
    }

    /// No run that both sequences have is longer than this.
    pub(super) fn longest_possible(&self) -> usize {
        (1 << self.levels.len()) - 1
    }

    /// A number that the runs of `length` words share with exactly those runs that are equal: the names of two halves that may
    /// overlap. The length is from 1 to [`Self::longest_possible`], and the run lies within the sequence.
    pub(super) fn run(&self, sequence: usize, start: usize, length: usize) -> u64 {
        let level = length.ilog2() as usize;
        let names = &self.levels[level][sequence];
        pair(names[start], names[start + length - (1 << level)])
    }
}

fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

/// The names of the runs of twice `length` words, from those of `length` words.
fn doubled(level: &[Vec<u32>; 2], length: usize) -> [Vec<u32>; 2] {
    let mut names: HashMap<u64, u32> = HashMap::default();
    let mut name_all = |halves: &Vec<u32>| -> Vec<u32> {
        let second_halves = halves.iter().skip(length);
        let runs = halves.iter().zip(second_halves).map(|(first, second)| pair(*first, *second));
        runs.map(|run| {
            let unused = names.len() as u32;
            *names.entry(run).or_insert(unused)
        })
        .collect()
    };
    [name_all(&level[FIRST]), name_all(&level[SECOND])]
}

/// Returns true if some run is in both sequences.
fn has_shared_name([first, second]: &[Vec<u32>; 2]) -> bool {
    let mut is_in_first = vec![false; first.iter().max().map_or(0, |largest| *largest as usize + 1)];
    first.iter().for_each(|name| is_in_first[*name as usize] = true);
    second.iter().any(|name| is_in_first.get(*name as usize) == Some(&true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_possible_run_bounds_the_longest() {
        for (first, second, bound) in [
            (&[][..], &[][..], 0),
            (&[0, 1], &[2, 3], 0),
            (&[0, 1], &[1, 0], 1),
            (&[0, 1, 2], &[0, 1, 2], 3),
            (&[0, 0, 0, 0], &[0, 0, 0, 0, 0], 7),
        ] {
            assert_eq!(Grams::new(first, second).longest_possible(), bound, "{first:?} {second:?}");
        }
    }

    proptest! {
        #[test]
        fn names_are_equal_where_runs_are(
            first in prop::collection::vec(0_u32..3, 0..20),
            second in prop::collection::vec(0_u32..3, 0..20),
        ) {
            let grams = Grams::new(&first, &second);
            for length in 1..=grams.longest_possible().min(first.len()).min(second.len()) {
                for (i, one) in first.windows(length).enumerate() {
                    for (j, other) in second.windows(length).enumerate() {
                        let same = grams.run(FIRST, i, length) == grams.run(SECOND, j, length);
                        prop_assert_eq!(same, one == other);
                    }
                }
            }
        }
    }
}
