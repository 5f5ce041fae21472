//! Which texts are one cluster: those of the same document, those that are equal but for case and white space, and
//! those that share most of their runs of five words (`methods.md`, "Unit: the cluster").
//!
//! A search reads the texts twice. From the first pass it keeps a [`TextSketch`] of 144 bytes for each text, and tells
//! from the sketches which texts may be similar to another one; from the second pass it keeps the [`Shingles`] of those
//! alone, and decides each pair by them.

mod components;
mod search;
mod shingles;
mod sketch;

pub use search::NearDuplicateSearch;
pub use shingles::Shingles;
pub use sketch::TextSketch;

use rayon::prelude::*;

/// The cluster of each of `texts`, from 0 by first appearance: [`NearDuplicateSearch`] for texts that are in memory.
#[must_use]
pub fn clusters(texts: &[&str]) -> Vec<usize> {
    let sketches = texts.par_iter().map(|text| TextSketch::new(text)).collect();
    let mut search = NearDuplicateSearch::new(sketches, &[], &|| true);
    for (row, text) in texts.iter().enumerate() {
        if search.needs(row) {
            search.add(row, Shingles::new(text));
        }
    }
    search.clusters(&|| true)
}
