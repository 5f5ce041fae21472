//! Inputs of methods.

use serde::Serialize;
use utoipa::ToSchema;

/// An input of a method: an output of the model, or other texts, models or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The text itself.
    Text,
    /// The log-probability of each token that came.
    LogProbabilities,
    /// The log-probability of the model's first choice at each position.
    FirstChoice,
    /// The model's whole distribution at each position, reduced to its moments.
    FullLogits,
    /// A second model.
    ReferenceModel,
    /// The model under an adapter that was tuned on texts that it has not seen.
    Adapter,
    /// Neighbours of the text, or a masked model that makes them.
    Neighbors,
    /// Texts that are known to be, or not to be, members.
    KnownTexts,
    /// Token counts of a reference corpus.
    TokenCounts,
}
