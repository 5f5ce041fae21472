//! Forward passes beside the one over the text itself: what some methods compare the text with.

use super::range::Fraction;
use super::texts::Texts;
use crate::TokenStats;
use serde::Serialize;
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
    /// The text's tokens after these texts, by the target model.
    Prefixed(Texts),
}

/// Why an auxiliary pass of a text has no statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuxiliaryPassError {
    /// The code that clients see.
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

/// The statistics of an auxiliary pass: of one sequence, or of each neighbour.
pub type AuxiliaryStats = Result<Vec<Arc<[TokenStats]>>, AuxiliaryPassError>;

/// Which texts of an audit the model is tuned on, and how: with everything else as FSD was published with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// The share of the texts that is left out of scoring; the model is tuned on the non-members among them.
    pub share: Fraction,
    /// Seed of the split and of the tuning.
    pub seed: u64,
}

// A share is a number.
impl Eq for Split {}

impl Hash for Split {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.share.get().to_bits().hash(state);
        self.seed.hash(state);
    }
}

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct Generator {
    /// Id of the masked model.
    #[schema(value_type = String)]
    pub model: Arc<str>,
    /// Maximum number of neighbours of a text.
    pub count: usize,
}
