//! The share of a reference text that another text gives back near-verbatim: the `nv-recall` of Ahmed, Cooper, Koyejo and Liang,
//! "Extracting books from production language models" (2026), arXiv 2601.02671, Section 3.3.1, Algorithm 1 and Equations 3 to 7.
//!
//! The matching blocks of the two lists of words (Equation 3) are merged with their neighbours where little text is between
//! them and about as much in both texts (Equation 4), and short ones are dropped (Equation 5); then both again, with a wider gap
//! and a larger least length. The gaps within a merged block do not count:
//!
//! `nv-recall = (sum of the matching words of the blocks) / (words of the reference)`
//!
//! Text that is given back in another order, or more than once, counts at most once. The measure is not symmetric: which of
//! several equally long runs is taken depends on the order of the texts, and the share is one of the reference.

mod compared_words;
mod grams;
mod matching_blocks;

#[cfg(test)]
mod tests;

pub use compared_words::ComparedWords;

use foldhash::HashMap;
use matching_blocks::{MatchingBlock, matching_blocks};
use std::ops::Range;

/// A pass over the blocks: neighbours are merged, and then short blocks are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeAndFilter {
    /// The largest number of words between two blocks that are merged, in either text.
    pub gap: usize,
    /// The largest difference between those numbers in the two texts.
    pub alignment: usize,
    /// The least number of matching words of a block that stays.
    pub least: usize,
}

/// The two passes of the paper, for books: blocks of at least 100 words count.
pub const NEAR_VERBATIM_PASSES: [MergeAndFilter; 2] =
    [MergeAndFilter { gap: 2, alignment: 1, least: 20 }, MergeAndFilter { gap: 10, alignment: 3, least: 100 }];

/// A part of the reference that the generation has near-verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearVerbatimBlock {
    /// Its words in the reference, with those between the runs that were merged.
    pub reference: Range<usize>,
    /// The same in the generation.
    pub generation: Range<usize>,
    /// The number of matching words: those of the merged runs.
    pub matching: usize,
    /// Its place in Unicode code points of the reference.
    pub reference_characters: Range<usize>,
    /// The same in the generation.
    pub generation_characters: Range<usize>,
}

/// The near-verbatim blocks of a reference and a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearVerbatim {
    /// In the order of both texts.
    pub blocks: Vec<NearVerbatimBlock>,
    pub reference_words: usize,
    pub generation_words: usize,
}

impl NearVerbatim {
    /// The number of matching words of all blocks (Equation 6).
    #[must_use]
    pub fn matching(&self) -> usize {
        self.blocks.iter().map(|block| block.matching).sum()
    }

    /// The share of the reference's words that the generation gives back (Equation 7); `None` for a reference without words.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        (self.reference_words > 0).then(|| self.matching() as f64 / self.reference_words as f64)
    }
}

/// The blocks that are left after the passes, one after another. Without a pass these are the matching blocks themselves.
///
/// For n words in all, O(n sqrt(n) log(n)) at worst and about O(n log(n)^2) for prose.
#[must_use]
pub fn near_verbatim(reference: &ComparedWords, generation: &ComparedWords, passes: &[MergeAndFilter]) -> NearVerbatim {
    let [first, second] = numbered([reference, generation]);
    let mut blocks: Vec<MergedBlock> = matching_blocks(&first, &second).into_iter().map(MergedBlock::from).collect();
    for pass in passes {
        blocks = merged(blocks, *pass);
        blocks.retain(|block| block.matching >= pass.least);
    }
    let with_places = |block: MergedBlock| NearVerbatimBlock {
        reference_characters: reference.characters(block.first.clone()),
        generation_characters: generation.characters(block.second.clone()),
        reference: block.first,
        generation: block.second,
        matching: block.matching,
    };
    NearVerbatim {
        blocks: blocks.into_iter().map(with_places).collect(),
        reference_words: reference.len(),
        generation_words: generation.len(),
    }
}

/// The words of both texts as numbers, which are equal for equal words.
fn numbered(texts: [&ComparedWords; 2]) -> [Vec<u32>; 2] {
    let mut numbers: HashMap<&str, u32> = HashMap::default();
    texts.map(|text| {
        text.iter()
            .map(|word| {
                let unused = numbers.len() as u32;
                *numbers.entry(word).or_insert(unused)
            })
            .collect()
    })
}

/// A matching block, or several with what is between them.
struct MergedBlock {
    first: Range<usize>,
    second: Range<usize>,
    matching: usize,
}

impl From<MatchingBlock> for MergedBlock {
    fn from(MatchingBlock { first, second, length }: MatchingBlock) -> Self {
        Self { first: first..first + length, second: second..second + length, matching: length }
    }
}

/// The blocks, neighbours merged as far as the pass permits, from the first on.
fn merged(blocks: Vec<MergedBlock>, MergeAndFilter { gap, alignment, .. }: MergeAndFilter) -> Vec<MergedBlock> {
    let mut merged: Vec<MergedBlock> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match merged.last_mut() {
            Some(last) if is_near(last, &block, gap, alignment) => {
                last.first.end = block.first.end;
                last.second.end = block.second.end;
                last.matching += block.matching;
            }
            _ => merged.push(block),
        }
    }
    merged
}

fn is_near(block: &MergedBlock, next: &MergedBlock, gap: usize, alignment: usize) -> bool {
    let (first, second) = (next.first.start - block.first.end, next.second.start - block.second.end);
    first.max(second) <= gap && first.abs_diff(second) <= alignment
}
