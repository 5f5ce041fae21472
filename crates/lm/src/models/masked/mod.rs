//! Masked language models, which predict a masked token of a text from the tokens on both sides: BERT and ModernBERT,
//! run by candle-transformers from checkpoints saved by transformers.

pub mod bert;
mod blueprint;
mod encoder;
pub mod modernbert;
mod shape;
mod weights;

#[cfg(test)]
mod tests;

pub use super::masked_position::{Candidates, Filled, MaskedPosition};
pub use blueprint::Blueprint;
pub use encoder::Encoder;
