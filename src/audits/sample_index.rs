//! A first look at all samples: a row for each, which texts repeat, and the digest of the whole.

use super::error::AuditFailure;
use super::results::SampleScores;
use crate::datasets::Sample;
use crate::datasets::SampleBlocks;
use crate::texts::{TextDigest, sha256_address};
use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::pin::pin;

/// What is known of samples before they are scored.
pub struct SampleIndex {
    /// A row for each sample, without scores.
    pub rows: Vec<SampleScores>,
    /// For each sample whether an earlier one has the same text and neighbours.
    pub is_copy: Vec<bool>,
    /// The copies of samples that have some.
    pub copies: HashMap<usize, Vec<usize>>,
    /// SHA-256 over the samples in order: of each its label (`1`, `0` or `-`), the bytes of its text as 64 bits
    /// (little-endian), and the text.
    pub digest: String,
}

impl SampleIndex {
    /// Reads all samples; their rows have a place for each of so many columns.
    ///
    /// # Errors
    /// [`AuditFailure`] where they cannot be read.
    pub async fn read(samples: &SampleBlocks, columns: usize) -> Result<Self, AuditFailure> {
        let mut index = Self { rows: Vec::new(), is_copy: Vec::new(), copies: HashMap::new(), digest: String::new() };
        let (mut digest, mut firsts) = (Sha256::new(), HashMap::new());
        let mut samples = pin!(samples.samples());
        while let Some((row, sample)) = samples.try_next().await? {
            add_to_digest(&mut digest, &sample);
            let neighbors = sample.neighbors.iter().flatten().map(String::as_str);
            let first =
                *firsts.entry(TextDigest::of_parts(std::iter::once(&*sample.text).chain(neighbors))).or_insert(row);
            if first != row {
                index.copies.entry(first).or_default().push(row);
            }
            index.is_copy.push(first != row);
            index.rows.push(SampleScores::unknown(&sample, columns));
        }
        index.digest = sha256_address(digest);
        Ok(index)
    }
}

fn add_to_digest(digest: &mut Sha256, sample: &Sample) {
    digest.update(match sample.is_member() {
        Some(true) => b"1",
        Some(false) => b"0",
        None => b"-",
    });
    digest.update((sample.text.len() as u64).to_le_bytes());
    digest.update(&sample.text);
}
