//! Options for reports besides each method's own numbers.

use mia::json::object_or_null;
use serde::{Deserialize, Deserializer, Serialize};
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

pub const MOST_POSITIONS: usize = 4096;
pub const MOST_GROUP_POSITIONS: usize = 1024;

/// Over what the numbers of a method are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AverageOver {
    /// The groups that the samples name.
    Group,
}

/// Texts and positions of the position profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileOptions {
    /// If true, each group has a profile as well.
    pub by_group: bool,
    /// Last position, from 1. Only texts with at least this many scored tokens count, so that every position is a mean over the
    /// same texts. Null for every position, each over the texts that reach it.
    #[schema(minimum = 1, maximum = 4096)]
    pub positions: Option<usize>,
}

/// Reads [`ProfileOptions`] as an object; null is the default.
///
/// # Errors
/// Where it is anything else, and those of the object.
pub fn profile_options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProfileOptions, D::Error> {
    object_or_null(deserializer).map(Option::unwrap_or_default)
}
