//! Result of a tuning on a share of an audit's texts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Result of the tuning on one share of an audit's texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SplitOutcome {
    /// Id of the model that was tuned: the one asked about, or the control.
    pub model: String,
    /// The share of the texts that was left out of scoring.
    pub split: f64,
    /// Seed of the split and of the tuning.
    pub seed: u64,
    /// SHA-256 of the adapter.
    pub adapter: String,
    /// Samples that were left out of scoring.
    pub left_out: usize,
    /// Texts that the model was tuned on: the non-members among those, each once.
    pub tuned_on: usize,
    /// Steps of the tuning.
    pub steps: usize,
    /// Loss of the first step.
    pub first_loss: f64,
    /// Loss of the last step.
    pub last_loss: f64,
}
