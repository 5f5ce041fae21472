//! The score that `fsd` compares, as a request names it.

use super::pdr::PdrRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A score of a text under one model, as a request names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TunedScoreRequest {
    /// `loss`, `min_k` or `min_k_plus_plus`.
    #[schema(examples("min_k"))]
    pub name: String,
    /// Share of tokens to select, in (0, 1]; 0.2 if left out. Not for `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<f64>,
    /// Weights by position or entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdr: Option<PdrRequest>,
}
