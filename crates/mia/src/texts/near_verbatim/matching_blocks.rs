//! The matching blocks of two sequences, as Python's `difflib` finds them.

use super::grams::{FIRST, Grams, SECOND};
use foldhash::{HashMap, HashSet};
use std::ops::Range;

/// A run of words that both sequences have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MatchingBlock {
    /// Its first word in the first sequence.
    pub first: usize,
    /// Its first word in the second sequence.
    pub second: usize,
    pub length: usize,
}

/// The runs of words that two sequences have in common and in the same order: the longest common run, of several the one that
/// starts earliest in the first sequence and then in the second; and the same again before it and after it. Runs that touch in
/// both sequences are one block. It is `SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()` of Python's
/// `difflib`, without the empty block at its end.
///
/// The runs of the longest length in a region are found in one pass over it, so what is left lies in regions whose longest run
/// is shorter. A chain of such regions within each other holds disjoint runs of different lengths: with n words there are at
/// most `sqrt(2 n)` of them, and the time is O(n sqrt(n) log(n)) however repetitive the texts are.
pub(super) fn matching_blocks(first: &[u32], second: &[u32]) -> Vec<MatchingBlock> {
    let grams = Grams::new(first, second);
    let longest = grams.longest_possible();
    let mut regions = vec![Region { first: 0..first.len(), second: 0..second.len(), longest }];
    let mut blocks = Vec::new();
    while let Some(region) = regions.pop() {
        let Some(length) = region.longest_run(&grams) else { continue };
        let longest = length - 1;
        let (mut first, mut second) = (region.first.start, region.second.start);
        for block in region.runs(&grams, length) {
            regions.push(Region { first: first..block.first, second: second..block.second, longest });
            (first, second) = (block.first + length, block.second + length);
            blocks.push(block);
        }
        regions.push(Region { first: first..region.first.end, second: second..region.second.end, longest });
    }
    blocks.sort_unstable();
    joined(blocks)
}

/// A part of each sequence, in which runs are to be found.
struct Region {
    first: Range<usize>,
    second: Range<usize>,
    /// No common run is longer than this.
    longest: usize,
}

impl Region {
    /// The length of the longest common run; `None` if there is none.
    fn longest_run(&self, grams: &Grams) -> Option<usize> {
        let most = self.longest.min(self.first.len()).min(self.second.len());
        if most == 0 || !self.has_run(grams, 1) {
            return None;
        }
        // Every part of a common run is one: all lengths up to the longest have a run, and none above it.
        let (mut has, mut lacks) = (1, most + 1);
        while lacks - has > 1 {
            let length = (2 * has).min(has + (lacks - has) / 2);
            if self.has_run(grams, length) { has = length } else { lacks = length }
        }
        Some(has)
    }

    fn has_run(&self, grams: &Grams, length: usize) -> bool {
        let (first, second) = (starts(&self.first, length), starts(&self.second, length));
        let (few, many) = if first.len() <= second.len() {
            ((FIRST, first), (SECOND, second))
        } else {
            ((SECOND, second), (FIRST, first))
        };
        let known: HashSet<u64> = few.1.map(|start| grams.run(few.0, start, length)).collect();
        let (sequence, mut places) = many;
        places.any(|start| known.contains(&grams.run(sequence, start, length)))
    }

    /// The common runs of a length, each the earliest in the first sequence and then in the second behind the one before it.
    fn runs(&self, grams: &Grams, length: usize) -> Vec<MatchingBlock> {
        // The first place of each run in the second sequence, and behind each place the next one of the same run.
        let mut place_of: HashMap<u64, usize> = HashMap::default();
        let places = starts(&self.second, length);
        let mut next_place = vec![None; places.len()];
        for place in places.rev() {
            next_place[place - self.second.start] = place_of.insert(grams.run(SECOND, place, length), place);
        }
        let mut blocks = Vec::new();
        let (mut first, mut earliest) = (self.first.start, self.second.start);
        while first + length <= self.first.end {
            let run = grams.run(FIRST, first, length);
            let mut place = place_of.get(&run).copied();
            while let Some(passed) = place.filter(|place| *place < earliest) {
                place = next_place[passed - self.second.start];
            }
            match place {
                Some(second) => {
                    blocks.push(MatchingBlock { first, second, length });
                    place_of.insert(run, second);
                    (first, earliest) = (first + length, second + length);
                }
                None => {
                    place_of.remove(&run);
                    first += 1;
                }
            }
        }
        blocks
    }
}

/// Returns the places at which a run of this length can start within a part of a sequence.
fn starts(part: &Range<usize>, length: usize) -> Range<usize> {
    part.start..(part.end + 1).saturating_sub(length).max(part.start)
}

/// Blocks in order, those that touch in both sequences as one.
fn joined(blocks: Vec<MatchingBlock>) -> Vec<MatchingBlock> {
    let mut joined: Vec<MatchingBlock> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match joined.last_mut() {
            Some(last) if last.first + last.length == block.first && last.second + last.length == block.second => {
                last.length += block.length;
            }
            _ => joined.push(block),
        }
    }
    joined
}
