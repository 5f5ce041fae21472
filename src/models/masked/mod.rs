//! Masked language models, which tell what could stand at a place of a text instead of what does: BERT and ModernBERT, as
//! candle-transformers runs them, from what transformers saves.

pub mod bert;
mod blank;
pub mod modernbert;
#[cfg(test)]
mod tests;
mod weights;

pub use blank::{Blank, Choice, Filled};

use super::config_reader::ConfigReader;
use super::kernels::gemm::fewest_rows;
use super::weights::Weights;
use super::{MaskedLm, ModelError};
use candle_core::{Device, IndexOp, Tensor};
use candle_nn::VarBuilder;
use weights::Source;

/// The most numbers that one forward pass may hold at a time in its largest tensor, if one sequence needs no more.
const MOST_NUMBERS: usize = 1 << 26;

/// A masked language model that is loaded: an encoder of texts with the head it was pre-trained with.
pub struct Encoder {
    network: Box<dyn Network>,
    shape: Shape,
    device: Device,
}

/// What a configuration tells of inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    vocab_size: usize,
    heads: usize,
    /// The most positions.
    context: usize,
    /// The fewest outputs of a projection.
    narrowest: usize,
}

impl Shape {
    /// Bytes that a batch of so many tokens takes beside the weights, whatever the lengths of its sequences.
    pub(super) fn activation_bytes(self, tokens: usize) -> u64 {
        let longest = tokens.min(self.context);
        let all = tokens.saturating_mul(self.widest(longest));
        // A few of the largest tensors at a time, in f32.
        all.min(MOST_NUMBERS.max(self.largest(longest))) as u64 * 4 * 4
    }

    /// How many sequences of a length run at once.
    fn copies_at_a_time(self, length: usize) -> usize {
        (MOST_NUMBERS / self.largest(length).max(1)).max(1)
    }

    /// Numbers in the largest tensor of one sequence.
    fn largest(self, length: usize) -> usize {
        length.saturating_mul(self.widest(length))
    }

    /// The same for one of its tokens: the logits, or the scores of the attention.
    fn widest(self, length: usize) -> usize {
        self.vocab_size.max(self.heads.saturating_mul(length))
    }
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

    /// What the configuration tells of inputs and outputs.
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }
}

impl Encoder {
    /// Loads the weights as f32 to a device.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] naming what is missing, has another shape or type, or is no part of the model.
    pub fn new(blueprint: &Blueprint, weights: &Weights, device: &Device) -> Result<Self, ModelError> {
        let network = Source::new(weights, blueprint).build(device)?;
        Ok(Self { network, shape: blueprint.shape, device: device.clone() })
    }

    /// One forward pass over copies of one length, each with its mask: the logits of the vocabulary at each mask.
    fn logits(&self, blanks: &[&Blank]) -> Result<Vec<Vec<f32>>, ModelError> {
        let length = blanks.first().map_or(0, |blank| blank.ids.len());
        // Products of few rows are summed in another order than others, so some copies may have to run again.
        let copies = blanks.len().max(fewest_rows(self.shape.narrowest).div_ceil(length.max(1)));
        let masked = blanks.iter().cycle().take(copies).flat_map(|blank| blank.masked());
        let masked = Tensor::from_vec(masked.collect(), (copies, length), &self.device)?;
        let logits = self.network.logits(&masked)?;
        let rows = blanks.iter().enumerate().map(|(row, blank)| logits.i((row, blank.position)));
        Ok(Tensor::stack(&rows.collect::<candle_core::Result<Vec<_>>>()?, 0)?.to_vec2()?)
    }

    fn check(&self, blank: &Blank) -> Result<(), ModelError> {
        let Shape { vocab_size, context, .. } = self.shape;
        let (length, position) = (blank.ids.len(), blank.position);
        if length > context {
            return Err(ModelError::Forward(format!("{length} tokens are more than the model's {context} positions")));
        }
        let mut ids = blank.ids.iter().chain([&blank.choice.mask]);
        if let Some(id) = ids.find(|id| **id as usize >= vocab_size) {
            return Err(ModelError::Forward(format!("id {id} is outside the vocabulary of {vocab_size}")));
        }
        if position >= length {
            return Err(ModelError::Forward(format!("position {position} is outside the {length} tokens")));
        }
        Ok(())
    }
}

impl MaskedLm for Encoder {
    fn fill(&self, blanks: &[&Blank]) -> Result<Vec<Filled>, ModelError> {
        blanks.iter().try_for_each(|blank| self.check(blank))?;
        let length = |place: &usize| blanks[*place].ids.len();
        let mut places: Vec<usize> = (0..blanks.len()).collect();
        places.sort_by_key(length);
        let mut filled = Vec::with_capacity(blanks.len());
        // Nothing is padded: only sequences of one length run together.
        for places in places.chunk_by(|a, b| length(a) == length(b)) {
            for places in places.chunks(self.shape.copies_at_a_time(length(&places[0]))) {
                let part: Vec<&Blank> = places.iter().map(|&place| blanks[place]).collect();
                let choices = self.logits(&part)?.into_iter().zip(part).map(|(logits, blank)| blank.choose(&logits));
                filled.extend(places.iter().zip(choices));
            }
        }
        filled.sort_by_key(|(place, _)| **place);
        Ok(filled.into_iter().map(|(_, filled)| filled).collect())
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
