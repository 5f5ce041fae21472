//! Converts text to token ids, exactly as the model's own files specify, special tokens included.

mod charsmap;
mod checked_normalizer;
mod encode;
mod files;
mod fingerprint;
mod pre_tokenizer;
mod special;
mod words;

#[cfg(test)]
mod tests;

pub use encode::{Encoded, Tokenizer};
pub use files::{TokenizerFiles, from_files, from_vocab_and_merges};
pub use special::SpecialTokens;
pub use words::Words;

use crate::panics::caught;

/// A tokenizer's files cannot be used, or it cannot encode a text.
#[derive(Debug, Clone, thiserror::Error)]
#[error("tokenizer: {0}")]
pub struct TokenizerError(String);

/// Returns the result of a call of the `tokenizers` library, which panics on some files where it should return an error. After
/// a panic the tokenizer can still be used: the library only reads it, and gives up the caches that it was writing to.
fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, TokenizerError> {
    caught(call).map_err(|panic| TokenizerError(format!("the library that reads tokenizers failed: {panic}")))
}
