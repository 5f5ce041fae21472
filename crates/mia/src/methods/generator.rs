//! The masked model that generates neighbours.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct Generator {
    /// Id of the masked model.
    #[schema(value_type = String)]
    pub model: Arc<str>,
    /// The most neighbours of a text.
    pub count: usize,
}

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorRequest {
    /// Id of the masked model.
    pub model: String,
    /// The most neighbours of a text; 25 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}
