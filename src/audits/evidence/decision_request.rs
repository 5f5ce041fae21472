//! Request options for p-values and for the list of texts.

use mia::statistics::Procedure;
use serde::{Deserialize, Deserializer, Serialize};
use serde_untagged::UntaggedEnumVisitor;
use std::sync::Arc;
use utoipa::ToSchema;

/// Source of the scores of known non-members.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum CalibrationSource {
    /// Id of a calibration; on the command line the file that it was made of.
    Stored(String),
    /// A share of the audit's own non-members, which then get no p-values.
    Share(CalibrationShare),
}

/// A share of an audit's non-members.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CalibrationShare {
    /// The share of the clusters of non-members.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0)]
    pub share: f64,
    /// Seed of the choice; 0 if left out.
    #[serde(default)]
    #[schema(required = false)]
    pub seed: u64,
}

/// A list of texts at a false discovery rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// Label of the method that decides.
    #[schema(value_type = String)]
    pub method: Arc<str>,
    /// The false discovery rate: the expected share of non-members among the texts listed.
    pub fdr: f64,
    pub procedure: Procedure,
}

impl<'de> Deserialize<'de> for CalibrationSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("the id of a calibration, or an object with `share`")
            .string(|id| Ok(Self::Stored(id.to_owned())))
            .map(|share| share.deserialize().map(Self::Share))
            .deserialize(deserializer)
    }
}
