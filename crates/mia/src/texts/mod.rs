//! When two texts are the same or nearly so: digests, the form in which texts are compared, and their words.

mod cluster;
mod digest;
mod hash;
mod near_duplicates;
mod words;

pub use cluster::cluster_digest;
pub use digest::{TextDigest, hexadecimal, sha256_address};
pub use hash::hash_bytes;
pub use near_duplicates::{NearDuplicateSearch, Shingles, TextSketch, clusters};
pub use words::words;
