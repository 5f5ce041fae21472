//! The kinds of tests that need no threshold.

use mia::json::by_name;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

/// What is compared with what.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestKind)]
pub enum TrialKind {
    /// Texts that may have been trained on with texts of the same source that were not.
    #[default]
    Dataset,
    /// Published texts with private rewrites of the same time.
    Paired,
    /// Published canaries with their twins, which were made in the same way and never published.
    Rank,
    /// The published order of a dataset with random orders.
    Order,
}

impl TryFrom<String> for TrialKind {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name)
    }
}
