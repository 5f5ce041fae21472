//! When tokens are selected: before or after they are weighted.

use crate::json::by_name;
use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

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
