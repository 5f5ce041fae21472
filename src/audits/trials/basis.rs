//! What the verdict of a test is based on, and the reasons that it can have.

use super::commitment::Commitment;
use super::kind::TrialKind;
use crate::audits::evidence::{ControlFindings, Effect, VerdictModel};
use mia::statistics::Comparability;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// Why the verdict of a test is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestReason)]
pub enum TrialReason {
    /// The p-value is at most 0.01.
    LowPValue,
    /// It is not.
    HighPValue,
    /// So few texts cannot give a p-value of at most 0.01.
    NoPower,
    /// There is no p-value: there are no scores to compare.
    NotScored,
    /// The test is not the one that the client committed to.
    CommitmentMismatch,
    /// AUROC is above what the lists' differences could explain, and so is the difference to the control above chance.
    AboveControl,
    /// The p-value of the same test under the control is at most 0.01 as well: if the control was not trained on the texts, they
    /// explain it.
    UnderControlAsWell,
    /// AUROC is above what the lists' differences could explain; there is no control.
    AboveDifferences,
    /// The p-value of the difference to the control is above 0.01, or there is none.
    NotAboveControl,
    /// AUROC is not above what the lists' differences could explain.
    NotAboveDifferences,
    /// The lists differ in what can be computed without the model.
    ListsDiffer,
    /// The lists are too short to show that they are comparable.
    TooFewToCompare,
}

/// What a verdict is based on.
#[derive(Clone, Debug)]
pub struct TrialBasis<'a> {
    pub kind: TrialKind,
    pub model: &'a VerdictModel,
    /// Label of the primary method.
    pub primary: &'a Arc<str>,
    /// Clusters, documents, canaries or shards that are compared.
    pub tested: usize,
    pub p_value: Option<f64>,
    pub smallest_p_value: Option<f64>,
    pub commitment: Option<&'a Commitment>,
    /// Of the other kinds than `dataset`, where there is a control: the p-value of the same test beyond it, if there is one.
    pub beyond_control: Option<Option<f64>>,
    /// The p-value of the same test under the control.
    pub under_control: Option<f64>,
    /// Of a test of kind `dataset`.
    pub texts: Option<TextControls<'a>>,
}

/// What tells the training from the texts.
#[derive(Clone, Copy, Debug)]
pub struct TextControls<'a> {
    /// None where there are too few texts to find out.
    pub comparability: Option<&'a Comparability>,
    pub effect: Option<Effect>,
    /// Whether there is a control model.
    pub controlled: bool,
    pub control: Option<&'a ControlFindings>,
}
