//! The basis of a verdict on documents, canaries or shards.

use super::kind::UnitKind;
use super::measure::Measured;
use crate::audits::evidence::VerdictModel;
use serde::Serialize;
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// The reason for the verdict on documents, canaries or shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestReason)]
pub enum TestReason {
    /// The p-value is at most the level; there is no control.
    LowPValue,
    /// The p-value is above the level.
    HighPValue,
    /// So few documents, canaries or shards cannot give a p-value of at most the level.
    NoPower,
    /// A p-value is missing, of the test or beside the control: scores are missing, or canaries have more twins than an
    /// exact p-value is computed for.
    NotScored,
    /// The test is not the one that the client committed to.
    CommitmentMismatch,
    /// The p-value is at most the level, and so is that of the same test beyond the control.
    AboveControl,
    /// The p-value of the same test under the control is at most the level as well, so that the texts may be the reason.
    UnderControlAsWell,
    /// The p-value of the test beyond the control is above the level.
    NotAboveControl,
}

/// The measurements that a verdict is based on.
#[derive(Clone, Debug)]
pub struct TestBasis<'a> {
    pub kind: UnitKind,
    pub model: VerdictModel,
    /// Label of the primary method.
    pub primary: &'a Arc<str>,
    pub measured: &'a Measured,
    /// True if the test is the one that was committed to; `None` without a commitment.
    pub committed: Option<bool>,
    pub control: Option<UnitControl>,
}

/// The same test beside the control model.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestControl)]
pub struct UnitControl {
    pub model: String,
    pub digest: String,
    /// Of the test of each text's score less the one that it has under the control; absent where there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_beyond: Option<f64>,
    /// Of the test under the control alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_alone: Option<f64>,
}
