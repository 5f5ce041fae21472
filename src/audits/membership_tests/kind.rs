//! The kinds of tests that need no threshold.

use mia::json::by_name;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

/// Kind of comparison.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestKind)]
pub enum TestKind {
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

/// The kinds of tests that count documents, canaries or shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TestUnitKind)]
pub enum UnitKind {
    /// Documents: a published text with private rewrites.
    Paired,
    /// Canaries with their twins.
    Rank,
    /// Shards in their published order and in random orders.
    Order,
}

impl TestKind {
    /// None for `dataset`, which counts clusters of texts.
    #[must_use]
    pub fn units(self) -> Option<UnitKind> {
        match self {
            Self::Dataset => None,
            Self::Paired => Some(UnitKind::Paired),
            Self::Rank => Some(UnitKind::Rank),
            Self::Order => Some(UnitKind::Order),
        }
    }
}

impl TryFrom<String> for TestKind {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name)
    }
}
