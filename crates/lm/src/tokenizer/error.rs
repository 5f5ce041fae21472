//! The errors of tokenizers.

/// A tokenizer's files cannot be used, or it cannot encode a text.
#[derive(Debug, Clone, thiserror::Error)]
#[error("tokenizer: {0}")]
pub struct TokenizerError(pub(super) String);
