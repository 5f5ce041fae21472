//! From the files of a language model and a text to [`mia::TokenStats`]: checkpoints and forward passes on candle
//! ([`models`]), text to token ids ([`tokenizer`]), conversations to text ([`chat`]), and downloads from the Hugging Face Hub ([`hub`]).

pub mod chat;
pub mod hub;
pub mod models;
pub mod panics;
pub mod tokenizer;

/// Names the code that the numbers of a model come from: the sources of the forward pass, its libraries, the compiler and
/// its flags. Statistics that are kept are valid for the same name only.
pub const NUMERICS: &str = env!("NUMERICS");
