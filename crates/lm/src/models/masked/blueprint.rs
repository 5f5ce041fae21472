//! A masked model as described by its configuration, before it is loaded.

use super::shape::EncoderShape;
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use candle_core::Tensor;
use candle_nn::VarBuilder;

/// The forward pass of one architecture.
pub trait MaskedNetwork: Send {
    /// Logits `[batch, positions, vocabulary]` of ids `[batch, positions]`, all of the same length.
    fn logits(&self, ids: &Tensor) -> candle_core::Result<Tensor>;
}

/// A masked model as described by its configuration.
pub struct Blueprint {
    pub(super) shape: EncoderShape,
    /// Maps a tensor name that candle requests to the names under which a file may contain it.
    pub(super) names: fn(&str) -> Vec<String>,
    /// Tensors that the forward pass does not use.
    pub(super) ignored: fn(&str) -> bool,
    pub(super) build: BuildNetwork,
}

/// Builds the network from a source of tensors.
type BuildNetwork = Box<dyn Fn(VarBuilder) -> candle_core::Result<Box<dyn MaskedNetwork>> + Send + Sync>;

impl Blueprint {
    /// The number of outputs of the head.
    pub fn vocab_size(&self) -> usize {
        self.shape.vocab_size
    }

    /// The maximum number of tokens in a text.
    pub fn context(&self) -> usize {
        self.shape.context
    }

    /// Returns true if a tensor on disk is not part of the forward pass.
    pub fn ignores(&self, name: &str) -> bool {
        (self.ignored)(name)
    }

    /// The sizes that determine memory.
    pub fn shape(&self) -> EncoderShape {
        self.shape
    }
}

/// The hidden size and the number of heads, which must divide it.
pub fn widths(config: &mut ConfigReader) -> Result<(usize, usize), ModelError> {
    let (hidden, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    if !hidden.is_multiple_of(heads) {
        return Err(config.error("num_attention_heads", format!("{heads} does not divide hidden_size {hidden}")));
    }
    Ok((hidden, heads))
}
