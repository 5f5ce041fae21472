//! Seals: digests that rows keep of what must not change, so that a row that was altered is not believed.

use super::error::StoreError;
use mia::texts::{hexadecimal, sha256_address};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::any::AnyRow;
use std::fmt::Display;

/// Returns the SHA-256, in hexadecimal digits, over the JSON of `fields`, a line break and `content`. The key of the row is among the
/// fields, so that a row that takes the place of another one is noticed as well.
pub fn seal(fields: &impl Serialize, content: impl AsRef<[u8]>) -> Result<String, StoreError> {
    let json = serde_json::to_string(fields).map_err(|error| StoreError::Failed(error.to_string()))?;
    let mut hash = Sha256::new_with_prefix(json);
    hash.update(b"\n");
    hash.update(content);
    Ok(hexadecimal(&hash.finalize()))
}

/// Compares the seal in a column of a row with the one that the row should have. Rows of versions without seals have none.
///
/// # Errors
/// [`StoreError::Damaged`], naming `subject`, where they differ.
pub fn check_seal(row: &AnyRow, column: &str, seal: &str, subject: impl Display) -> Result<(), StoreError> {
    match row.try_get::<Option<String>, _>(column) {
        Ok(Some(kept)) if kept != seal => Err(StoreError::Damaged(format!("{subject} differs from its digest"))),
        // The tables of a store that is only read may be those of an earlier version.
        Ok(_) | Err(sqlx::Error::ColumnNotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Compares samples, which are added block by block, with the digest by which their dataset or job names them.
#[derive(Clone)]
pub struct ContentCheck {
    hash: Sha256,
    /// `sha256:` and hexadecimal digits.
    expected: Option<String>,
}

impl ContentCheck {
    /// Begins before the first block. Without `expected`, which jobs of old versions lack, everything passes.
    #[must_use]
    pub fn new(expected: Option<String>) -> Self {
        Self { hash: Sha256::new(), expected }
    }

    pub fn add(&mut self, block: &str) {
        if self.expected.is_some() {
            self.hash.update(block);
        }
    }

    /// Compares the digest after the last block.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where it is another one.
    pub fn finish(self) -> Result<(), StoreError> {
        let Some(expected) = self.expected else { return Ok(()) };
        if sha256_address(self.hash) == expected {
            Ok(())
        } else {
            Err(StoreError::Damaged(format!("the samples of {expected} have another digest")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_move_from_one_field_to_the_next_change_a_seal() {
        let whole = seal(&("a", 1), "b").unwrap();
        // printf '["a",1]\nb' | sha256sum
        assert_eq!(whole, "a3040a948badcffe1a7c62da9c150f2d5a27458070f156f571c04ff79c41c1cc");
        for other in [seal(&("a", 2), "b"), seal(&("a\n", 1), "b"), seal(&("a", 1), "\nb"), seal(&("a", 1), "")] {
            assert_ne!(other.unwrap(), whole);
        }
    }

    #[test]
    fn samples_are_compared_as_a_whole() {
        let check = |expected: Option<&str>, blocks: &[&str]| {
            let mut check = ContentCheck::new(expected.map(str::to_owned));
            blocks.iter().for_each(|block| check.add(block));
            check.finish()
        };
        // printf 'one\ntwo\n' | sha256sum
        let digest = "sha256:c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8";
        assert!(check(Some(digest), &["one\n", "two\n"]).is_ok() && check(None, &["anything"]).is_ok());
        for blocks in [&["one\n"][..], &["two\n", "one\n"], &["one\n", "two\n", "three\n"], &[]] {
            assert!(matches!(check(Some(digest), blocks), Err(StoreError::Damaged(_))));
        }
    }
}
