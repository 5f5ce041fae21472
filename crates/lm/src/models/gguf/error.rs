//! Why a GGUF file cannot be used.

use crate::models::torch_bin::escaped;
use std::fmt::Display;

/// Why a GGUF file cannot be used; the message names the metadata key or the tensor at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GgufError(String);

impl GgufError {
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// A fault of the value under a metadata key.
    pub fn key(key: &str, reason: impl Display) -> Self {
        Self(format!("metadata key `{}`: {reason}", escaped(key)))
    }

    /// A fault of a tensor.
    pub fn tensor(name: &str, reason: impl Display) -> Self {
        Self(format!("tensor `{}`: {reason}", escaped(name)))
    }
}
