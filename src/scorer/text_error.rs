//! Why a text has no score.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// Why a text, or one method of it, has no score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextError {
    /// The method concerned; absent when no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Arc<str>>,
    /// `too_short`, `too_long`, `untokenizable`, `zero_denominator`, `zero_weight`, `nothing_selected`, `non_finite`,
    /// `no_neighbors`, `in_prefix`, `tuned_on` or, in an audit, `in_split` or `model_failed`.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

impl TextError {
    /// An error that concerns the whole text.
    pub fn whole(code: &'static str, detail: String) -> Self {
        Self { label: None, code: code.into(), detail }
    }
}
