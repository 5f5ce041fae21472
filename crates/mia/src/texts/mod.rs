//! When two texts are the same or nearly so: digests, the form in which texts are compared, and their words.

mod digest;
mod near_duplicates;
mod shingles;
mod words;

pub use digest::{TextDigest, cluster_digest, hexadecimal, sha256_address};
pub use near_duplicates::{NearDuplicateSearch, clusters};
pub use shingles::{Shingles, TextSketch, hash_bytes};
pub use words::words;
