//! Handling of a text that is longer than the context of the model.

use mia::json::by_name;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

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
