//! Calls of the `tokenizers` library, which panics on some files where it should return an error.

use super::error::TokenizerError;
use crate::panics::caught;

/// Returns the result of a call of the library. After a panic the tokenizer can still be used: the library only reads it, and
/// gives up the caches that it was writing to.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, TokenizerError> {
    caught(call).map_err(|panic| TokenizerError(format!("the library that reads tokenizers failed: {panic}")))
}
