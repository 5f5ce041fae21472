//! Settings for scoring texts.

use mia::json::by_name;
use mia::methods::{LabelledMethod, Split};
use mia::texts::TextDigest;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

#[derive(Clone)]
pub struct Plan {
    /// Id of the model whose training data is asked about.
    pub model: String,
    pub methods: Arc<[LabelledMethod]>,
    pub overflow: Overflow,
    /// True if each result lists its tokens.
    pub tokens: bool,
    /// The target tuned on shares of an audit's texts, for the methods that name such shares.
    pub splits: Arc<[TunedSplit]>,
}

/// The target tuned on a share of an audit's texts.
#[derive(Clone, Debug)]
pub struct TunedSplit {
    pub split: Split,
    /// Id of the model under the adapter.
    pub adapter: Arc<str>,
    /// The clusters of texts that are not scored.
    pub left_out: Arc<HashSet<TextDigest>>,
}

/// Treatment of a text that is longer than the model's context.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
pub enum Overflow {
    /// The text fails with `too_long`.
    #[default]
    Error,
    /// The first tokens that fit are scored, special tokens counted, and the result says `truncated`.
    Truncate,
    /// The text is read in windows of the context, each starting half a window later; every token is scored once, with
    /// the most context that a window gives it, and positions run on over the whole text.
    Window,
}

impl TryFrom<String> for Overflow {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name)
    }
}
