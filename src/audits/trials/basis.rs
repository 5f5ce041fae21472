//! What the verdict of a test is based on, and the reasons that it can have.

use super::commitment::Commitment;
use super::kind::TrialKind;
use crate::audits::evidence::ControlFindings;
use mia::statistics::Shift;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// The p-value below which a test counts.
pub const LEVEL: f64 = 0.01;

/// Why the verdict of a test is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestReason)]
pub enum TrialReason {
    /// The p-value is below 0.01.
    LowPValue,
    /// It is not.
    HighPValue,
    /// So few texts cannot give a p-value below 0.01.
    NoPower,
    /// There is no p-value: there are no scores to compare.
    NotScored,
    /// The private texts are not those that the client committed to.
    CommitmentMismatch,
    /// The lower 95 % bound of the difference to the control is above 0.
    AboveControl,
    /// It is not.
    NotAboveControl,
    /// The difference to the control has no standard error.
    ControlUnknown,
    /// The method tells groups of held-out texts apart by more than the control does.
    PlaceboFailed,
    /// The words do not tell suspects from held-out texts.
    WordsAlike,
    /// The words do to some degree, and the lower 95 % bound of AUROC minus that of the words is above 0.
    AboveWords,
    /// The words do as well as the method, or nearly.
    NotAboveWords,
    /// The words do with an AUROC of 0.9 or more.
    TotalShift,
    /// Whether the words do could not be found out.
    WordsUnknown,
}

/// What a verdict is based on.
#[derive(Clone, Debug)]
pub struct TrialBasis<'a> {
    pub kind: TrialKind,
    /// Label of the primary method.
    pub primary: &'a Arc<str>,
    /// Clusters, documents, canaries or shards that are compared.
    pub tested: usize,
    pub p_value: Option<f64>,
    pub smallest_p_value: Option<f64>,
    pub commitment: Option<&'a Commitment>,
    /// Of a test of kind `dataset`.
    pub texts: Option<TextControls<'a>>,
}

/// What tells the training from the texts.
#[derive(Clone, Copy, Debug)]
pub struct TextControls<'a> {
    pub control: Option<&'a ControlFindings>,
    /// What the words show.
    pub shift: Option<Shift>,
    /// Whether the lower 95 % bound of AUROC minus that of the words is above 0.
    pub above_words: bool,
}
