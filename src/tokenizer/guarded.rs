//! Calls of the `tokenizers` library, which panics on some files where it should return an error.

use super::error::TokenizerError;
use crate::telemetry::panic_message;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call of the library returns. Nothing that a panic leaves behind is used again: the library only reads a tokenizer, and gives
/// up the caches that it was writing to.
///
/// # Errors
/// The message of a panic.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, TokenizerError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        TokenizerError(format!("the library that reads tokenizers failed: {}", panic_message(&*panic)))
    })
}
