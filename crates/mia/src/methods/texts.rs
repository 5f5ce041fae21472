//! Texts that a request gives to a method, such as those that stand before the text to score.

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A list of texts, cheap to clone and to compare.
#[derive(Clone, Debug)]
pub struct Texts {
    texts: Arc<[String]>,
    digest: [u8; 32],
}

impl Texts {
    pub fn new(texts: Vec<String>) -> Texts {
        let mut digest = Sha256::new();
        for text in &texts {
            // With its length, so that no other division into texts gives the same.
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        Texts { texts: texts.into(), digest: digest.finalize().into() }
    }

    pub fn as_slice(&self) -> &[String] {
        &self.texts
    }

    /// Returns the total size in bytes.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(String::len).sum()
    }

    /// The beginning of their digest, which stands for them in labels.
    pub fn short_digest(&self) -> String {
        self.digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl PartialEq for Texts {
    fn eq(&self, other: &Texts) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Texts {}

impl Hash for Texts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.texts.serialize(serializer)
    }
}
