//! Weights as a client writes them. Names and ranges are checked when the request is resolved.

use crate::json::by_name;
use crate::methods::grid::Grid;
use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// Weights by position or entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PdrRequest {
    /// Name of the decay, or of an ablation.
    #[schema(examples("linear"))]
    pub decay: String,
    /// `reverse` and `random`: whose weights they reorder; linear if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("linear"))]
    pub family: Option<String>,
    /// Rate at which the weights fall; its range depends on the decay, and ablations by entropy or slope take none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples(1.0))]
    pub alpha: Option<Grid>,
    /// `random`: the same seed gives a text the same order; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Values by which a method selects tokens, if it does: raw (`after`) or weighted (`before`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// Divide by the sum of the weights instead of the number of tokens.
    #[serde(default)]
    pub normalize: bool,
}

/// When a method that selects tokens does so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
pub enum Select {
    /// By the raw values, which are weighted after that: PDR.
    #[default]
    After,
    /// By the weighted values: an ablation.
    Before,
}

impl TryFrom<String> for Select {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name)
    }
}
