//! When two texts are the same or nearly so: digests, the form in which texts are compared, and their words;
//! and how much of one text another gives back.

mod digest;
mod near_duplicates;
mod near_verbatim;
mod ngrams;
mod shingles;
mod words;

pub use digest::{TextDigest, cluster_digest, hexadecimal, sha256_address};
pub use near_duplicates::{NearDuplicateSearch, clusters};
pub use near_verbatim::{
    ComparedWords, MergeAndFilter, NEAR_VERBATIM_PASSES, NearVerbatim, NearVerbatimBlock, near_verbatim,
};
pub use ngrams::{NGRAM_WORDS, NgramSamples, ngram_hashes, word_hashes, words_of_run};
pub use shingles::{Shingles, TextSketch, hash_bytes};
pub use words::words;
