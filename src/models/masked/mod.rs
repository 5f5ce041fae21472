//! Masked language models, which tell what could stand at a place of a text instead of what does: BERT and ModernBERT, as
//! candle-transformers runs them, from what transformers saves.

pub mod bert;
pub mod modernbert;
#[cfg(test)]
mod tests;
mod weights;

use super::ModelError;
use super::config_reader::ConfigReader;
use super::weights::Weights;
use candle_core::{D, Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use weights::Source;

/// The most numbers that one forward pass may hold at a time in its largest tensor, if one sequence needs no more.
const MOST_NUMBERS: usize = 1 << 26;

/// A masked language model that is loaded and can run.
pub struct MaskedLm {
    network: Box<dyn Network>,
    shape: Shape,
    device: Device,
}

/// What a configuration tells of inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    vocab_size: usize,
    heads: usize,
    /// The most positions.
    context: usize,
}

/// The forward pass of one architecture.
trait Network: Send {
    /// Logits `[batch, positions, vocabulary]` of ids `[batch, positions]`, all of one length.
    fn logits(&self, ids: &Tensor) -> candle_core::Result<Tensor>;
}

/// A masked model as its configuration describes it.
pub struct Blueprint {
    shape: Shape,
    /// The names under which a file may hold what candle asks for by a name.
    names: fn(&str) -> Vec<String>,
    /// Tensors that the forward pass has no use for.
    ignored: fn(&str) -> bool,
    build: Build,
}

type Build = Box<dyn Fn(VarBuilder) -> candle_core::Result<Box<dyn Network>> + Send + Sync>;

impl Blueprint {
    /// Outputs of the head.
    pub fn vocab_size(&self) -> usize {
        self.shape.vocab_size
    }

    /// The most tokens of a text.
    pub fn context(&self) -> usize {
        self.shape.context
    }

    /// Whether a tensor on disk is no part of the forward pass.
    pub fn ignores(&self, name: &str) -> bool {
        (self.ignored)(name)
    }

    /// Bytes of the largest tensor of a forward pass over so many tokens.
    pub fn activation_bytes(&self, tokens: usize) -> u64 {
        let numbers = tokens.saturating_mul(self.shape.vocab_size.max(self.shape.heads.saturating_mul(tokens)));
        // A few of them at a time.
        numbers.clamp(1, MOST_NUMBERS) as u64 * 4 * 4
    }
}

impl MaskedLm {
    /// Loads the weights as f32 to a device.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] naming what is missing, has another shape or type, or is no part of the model.
    pub fn new(blueprint: &Blueprint, weights: &Weights, device: &Device) -> Result<Self, ModelError> {
        let network = Source::new(weights, blueprint).build(device)?;
        Ok(Self { network, shape: blueprint.shape, device: device.clone() })
    }

    /// For each of the positions, the probability of every token of the vocabulary there when the token that is there is
    /// replaced by `mask`, alone.
    ///
    /// # Errors
    /// [`ModelError::Forward`] where ids or positions are outside the model's range; else what the device says.
    pub fn probabilities(&self, ids: &[u32], positions: &[usize], mask: u32) -> Result<Vec<Vec<f32>>, ModelError> {
        self.check(ids, positions)?;
        self.check(&[mask], &[])?;
        let largest = ids.len().max(1) * self.shape.vocab_size.max(self.shape.heads * ids.len());
        let batch = (MOST_NUMBERS / largest).max(1);
        let mut probabilities = Vec::with_capacity(positions.len());
        for positions in positions.chunks(batch) {
            probabilities.extend(self.batch(ids, positions, mask)?);
        }
        Ok(probabilities)
    }

    /// One forward pass over as many copies of the ids as there are positions.
    fn batch(&self, ids: &[u32], positions: &[usize], mask: u32) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut masked = ids.repeat(positions.len());
        for (row, position) in masked.chunks_mut(ids.len()).zip(positions) {
            row[*position] = mask;
        }
        let masked = Tensor::from_vec(masked, (positions.len(), ids.len()), &self.device)?;
        let logits = self.network.logits(&masked)?;
        let rows = positions.iter().enumerate().map(|(row, position)| logits.i((row, *position)));
        let rows = Tensor::stack(&rows.collect::<candle_core::Result<Vec<_>>>()?, 0)?;
        Ok(candle_nn::ops::softmax(&rows, D::Minus1)?.to_vec2()?)
    }

    fn check(&self, ids: &[u32], positions: &[usize]) -> Result<(), ModelError> {
        let Shape { vocab_size, context, .. } = self.shape;
        let length = ids.len();
        if length > context {
            return Err(ModelError::Forward(format!("{length} tokens are more than the model's {context} positions")));
        }
        if let Some(id) = ids.iter().find(|id| **id as usize >= vocab_size) {
            return Err(ModelError::Forward(format!("id {id} is outside the vocabulary of {vocab_size}")));
        }
        match positions.iter().find(|position| **position >= length) {
            None => Ok(()),
            Some(position) => Err(ModelError::Forward(format!("position {position} is outside the {length} tokens"))),
        }
    }
}

/// The hidden size and the number of heads, which divides it.
fn widths(config: &mut ConfigReader) -> Result<(usize, usize), ModelError> {
    let (hidden, heads) = (config.count("hidden_size")?, config.count("num_attention_heads")?);
    if !hidden.is_multiple_of(heads) {
        return Err(config.fault("num_attention_heads", format!("{heads} does not divide hidden_size {hidden}")));
    }
    Ok((hidden, heads))
}
