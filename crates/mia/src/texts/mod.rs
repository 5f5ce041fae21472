//! When two texts are the same or nearly so: digests, the form in which texts are compared, and their words.

mod digest;
mod near_duplicates;
mod ngrams;
mod shingles;
mod words;

pub use digest::{TextDigest, cluster_digest, hexadecimal, sha256_address};
pub use near_duplicates::{NearDuplicateSearch, clusters};
pub use ngrams::{NGRAM_WORDS, NgramSamples, ngram_hashes, word_hashes, words_of_run};
pub use shingles::{Shingles, TextSketch, hash_bytes};
pub use words::words;
