//! What a verdict is based on, and the reasons that it can have.

use super::control::ControlFindings;
use mia::statistics::{PairedDeLong, Shift};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// The fewest clusters of each class that a verdict is based on.
pub const FEWEST_CLUSTERS: usize = 20;

/// Why the verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum VerdictReason {
    /// The lower 95 % bound of the difference to the control is above 0.
    AboveControl,
    /// It is not.
    NotAboveControl,
    /// The method tells groups of non-members apart by more than the control does.
    PlaceboFailed,
    /// The lower 95 % bound of AUROC is above one half, and the words of the texts do not tell the classes apart.
    AboveChance,
    /// It is not above one half.
    NotAboveChance,
    /// The words tell the classes apart, and the lower 95 % bound of AUROC minus that of the words is above 0.
    AboveWords,
    /// The words tell the classes apart as well as the method does, or nearly.
    NotAboveWords,
    /// The words tell the classes apart with an AUROC of 0.9 or more, and there is no control.
    TotalShift,
    /// A class has fewer than 20 clusters of texts.
    NoPower,
    /// The method has no AUROC, or no standard error of it: it could not score the texts.
    NotScored,
    /// Whether the words tell the classes apart could not be found out.
    WordsUnknown,
    /// Texts without labels: there are texts on the list.
    Listed,
    /// Texts without labels: together they score higher than the known non-members, with p below 0.01.
    DatasetTest,
    /// Texts without labels: neither.
    NothingListed,
    /// Texts without labels: their words differ from those of the known non-members.
    OtherTexts,
}

/// What a verdict on labelled texts is based on.
#[derive(Clone, Debug)]
pub struct VerdictBasis<'a> {
    /// Label of the primary method.
    pub primary: &'a Arc<str>,
    /// Clusters with a scored member, and with a scored non-member.
    pub clusters: [usize; 2],
    /// Of the primary method, with its 95 % interval.
    pub auroc: Option<Estimate>,
    pub control: Option<&'a ControlFindings>,
    /// What the words show.
    pub shift: Option<Shift>,
    /// AUROC of the primary method minus that of the words.
    pub over_words: Option<PairedDeLong>,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub interval: [f64; 2],
}
