//! Masked language models, which predict a masked token of a text from the tokens on both sides: BERT and ModernBERT,
//! run by candle-transformers from checkpoints saved by transformers.

pub mod bert;
mod encoder;
pub mod modernbert;

#[cfg(test)]
mod tests;

pub use super::model::{Candidates, Filled, MaskedPosition};
pub use encoder::Encoder;

use super::config_reader::ConfigReader;
use super::error::ModelError;
use candle_core::Tensor;
use candle_nn::VarBuilder;

/// The maximum number of elements in the largest tensor of a forward pass, unless a single sequence needs more.
const MOST_ELEMENTS: usize = 1 << 26;

/// The forward pass of a network: logits `[batch, positions, vocabulary]` of ids `[batch, positions]`, all of the same
/// length.
type ForwardPass = Box<dyn Fn(&Tensor) -> candle_core::Result<Tensor> + Send>;

/// Builds the network from a source of tensors.
type BuildNetwork = Box<dyn Fn(VarBuilder) -> candle_core::Result<ForwardPass> + Send + Sync>;

/// A masked model as described by its configuration, before it is loaded.
pub struct Blueprint {
    pub shape: EncoderShape,
    /// Maps a tensor name that candle requests to the names under which a file may contain it.
    names: fn(&str) -> Vec<String>,
    /// Returns true for a tensor on disk that the forward pass does not use.
    pub ignores: fn(&str) -> bool,
    build: BuildNetwork,
}

/// The hidden size and the number of heads, which must divide it.
fn widths(config: &mut ConfigReader) -> Result<(usize, usize), ModelError> {
    let (hidden, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    if !hidden.is_multiple_of(heads) {
        return Err(config.error("num_attention_heads", format!("{heads} does not divide hidden_size {hidden}")));
    }
    Ok((hidden, heads))
}

/// The sizes of a masked model that determine its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderShape {
    pub vocab_size: usize,
    pub heads: usize,
    /// The maximum number of positions.
    pub context: usize,
    /// The smallest output width of any projection.
    pub narrowest: usize,
}

impl EncoderShape {
    /// Bytes that a batch of `tokens` tokens takes in addition to the weights, whatever the lengths of its sequences.
    pub fn activation_bytes(self, tokens: usize) -> u64 {
        let longest = tokens.min(self.context);
        let all = tokens.saturating_mul(self.widest(longest));
        // A few of the largest tensors at a time, in f32.
        all.min(MOST_ELEMENTS.max(self.largest(longest))) as u64 * 4 * 4
    }

    /// The number of sequences of a length that run at once.
    pub fn copies_at_a_time(self, length: usize) -> usize {
        (MOST_ELEMENTS / self.largest(length).max(1)).max(1)
    }

    /// Elements of the largest tensor for one sequence.
    fn largest(self, length: usize) -> usize {
        length.saturating_mul(self.widest(length))
    }

    /// The same per token: the logits, or the attention scores.
    fn widest(self, length: usize) -> usize {
        self.vocab_size.max(self.heads.saturating_mul(length))
    }
}
