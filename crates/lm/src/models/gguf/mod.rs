//! GGUF, the format of llama.cpp: one file that holds a model's configuration, tokenizer and weights, these mostly quantised.
//!
//! The file is another form of what a directory of transformers has: its metadata become `config.json`, `tokenizer.json` and
//! `tokenizer_config.json`, and its tensors are read by the names that it gives them. Everything in it is checked before it is
//! used, and what is not understood is refused by name. Work and memory are bounded by the size of the file.
//!
//! candle's reader is not used: it allocates what counts in the file claim, and lacks IQ4_NL and IQ4_XS.

mod architecture;
mod blocks;
mod config;
mod cursor;
mod error;
mod file;
mod file_type;
mod metadata;
mod tokenizer;
mod tokenizer_rules;
mod vocabulary;

#[cfg(test)]
mod tests;

pub use architecture::Architecture;
pub use blocks::BlockType;
pub use config::ROPE_DIVISORS;
pub use error::GgufError;
pub use file::{GgufFile, GgufTensor, TensorType};
