//! Converts text to token ids, exactly as the model's own files specify, special tokens included.

mod charsmap;
mod checked_normalizer;
mod encode;
mod error;
mod files;
mod fingerprint;
mod guarded;
mod pre_tokenizer;
mod special;
mod words;

#[cfg(test)]
mod tests;

pub use encode::{Encoded, Tokenizer};
pub use error::TokenizerError;
pub use files::{TokenizerFiles, from_files, from_vocab_and_merges};
pub use words::Words;
