//! Forward passes beside the one over the text itself, over what some methods compare the text with.

use super::range::Fraction;
use super::word_swaps::WordSwaps;
use crate::TokenStats;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use utoipa::ToSchema;

/// A forward pass that methods need beside the one over the text itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AuxiliaryPass {
    /// The lower-cased text, by the target model.
    Lowercase,
    /// The target's ids, by the reference model of this id.
    Reference(Arc<str>),
    /// The target's ids, by the target under the adapter of this id, which was not tuned on the text.
    Tuned(Arc<str>),
    /// The target's ids, by the target tuned on a share of the audit's texts, which the text is not in.
    Split(Split),
    /// The text by the reference model of this id, in that model's own ids.
    ReferenceTokenization(Arc<str>),
    /// The text's neighbours by the target model, one or more: those that came with it, or generated ones.
    Neighbors(Option<Generator>),
    /// Copies of the text with swapped words, by the target model.
    Swapped(WordSwaps),
    /// The text's tokens after these texts, by the target model.
    Prefixed(Texts),
}

impl AuxiliaryPass {
    /// True if it runs texts that are made of the text, in which places of the text are not known.
    pub fn rewrites_text(&self) -> bool {
        matches!(self, Self::Lowercase | Self::Neighbors(_) | Self::Swapped(_))
    }
}

/// Why an auxiliary pass of a text has no statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuxiliaryPassError {
    /// The code that clients see.
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

/// The statistics of an auxiliary pass: of one sequence, or of each neighbour or copy.
pub type AuxiliaryStats = Result<Vec<Arc<[TokenStats]>>, AuxiliaryPassError>;

/// Which texts of an audit the model is tuned on, and how: with everything else as FSD was published with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// The share of the texts that is left out of scoring; the model is tuned on the non-members among them.
    pub share: Fraction,
    /// Seed of the split and of the tuning.
    pub seed: u64,
}

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Generator {
    /// Id of the masked model.
    #[schema(value_type = String)]
    pub model: Arc<str>,
    /// Maximum number of neighbours of a text.
    pub count: usize,
}

/// A list of texts, cheap to clone and to compare.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Texts {
    texts: Arc<[String]>,
    digest: [u8; 32],
}

impl From<Vec<String>> for Texts {
    fn from(texts: Vec<String>) -> Texts {
        let mut digest = Sha256::new();
        for text in &texts {
            // With its length, so that no other division into texts gives the same.
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        Texts { texts: texts.into(), digest: digest.finalize().into() }
    }
}

impl Texts {
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
