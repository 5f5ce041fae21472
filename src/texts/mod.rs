//! When two texts are the same: digests, and the form in which texts are compared.

mod cluster;
mod digest;

pub use cluster::cluster_digest;
pub use digest::{TextDigest, sha256_address};
