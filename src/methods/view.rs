//! What of a text runs through a model: the text itself, and what some methods make of it.

use super::texts::Texts;
use crate::token_stats::TokenStats;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct Generator {
    /// Id of the masked model.
    #[schema(value_type = String)]
    pub model: Arc<str>,
    /// The most neighbours of a text.
    pub count: usize,
}

/// One of the things that methods look at, beside the text itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The lower-cased text, by the target model.
    Lowercase,
    /// The target's ids, by the reference model of this id.
    Reference(Arc<str>),
    /// The text by the reference model of this id, in that model's own ids.
    OwnReference(Arc<str>),
    /// The text's neighbours by the target model, one or more: those that came with it, or generated ones.
    Neighbors(Option<Generator>),
    /// The text's tokens given texts before it, by the target model.
    After(Texts),
}

/// Why a view of a text has no statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The code that clients see.
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

/// A view's statistics: of one sequence, or of each neighbour.
pub type Seen = Result<Vec<Arc<[TokenStats]>>, Unseen>;
