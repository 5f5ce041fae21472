//! A loaded masked model, and how it runs batches.

use super::blueprint::{Blueprint, MaskedNetwork};
use super::shape::EncoderShape;
use super::weights::CheckpointSource;
use crate::models::error::ModelError;
use crate::models::masked_position::{Filled, MaskedPosition};
use crate::models::model::MaskedLm;
use crate::models::weights::Weights;
use candle_core::{Device, IndexOp, Tensor};
use kernels::gemm::fewest_rows;

/// A loaded masked language model: an encoder with the head it was pre-trained with.
pub struct Encoder {
    network: Box<dyn MaskedNetwork>,
    shape: EncoderShape,
    device: Device,
}

impl Encoder {
    /// Loads the weights as f32 onto a device.
    pub fn new(blueprint: &Blueprint, weights: &Weights, device: &Device) -> Result<Self, ModelError> {
        let network = CheckpointSource::new(weights, blueprint).build(device)?;
        Ok(Self { network, shape: blueprint.shape, device: device.clone() })
    }

    /// Runs one forward pass over copies of one length, each with its mask: the logits of the vocabulary at each masked
    /// position.
    fn logits(&self, positions: &[&MaskedPosition]) -> Result<Vec<Vec<f32>>, ModelError> {
        let length = positions.first().map_or(0, |masked| masked.ids.len());
        // Products with few rows are summed in a different order, so some copies may have to be repeated.
        let copies = positions.len().max(fewest_rows(self.shape.narrowest).div_ceil(length.max(1)));
        let masked = positions.iter().cycle().take(copies).flat_map(|masked| masked.masked_ids());
        let masked = Tensor::from_vec(masked.collect(), (copies, length), &self.device)?;
        let logits = self.network.logits(&masked)?;
        let rows = positions.iter().enumerate().map(|(row, masked)| logits.i((row, masked.position)));
        Ok(Tensor::stack(&rows.collect::<candle_core::Result<Vec<_>>>()?, 0)?.to_vec2()?)
    }

    /// Refuses ids and positions outside the model's range.
    fn check(&self, masked: &MaskedPosition) -> Result<(), ModelError> {
        let EncoderShape { vocab_size, context, .. } = self.shape;
        let (length, position) = (masked.ids.len(), masked.position);
        if length > context {
            return Err(ModelError::Forward(format!("{length} tokens exceed the model's {context} positions")));
        }
        let mut ids = masked.ids.iter().chain([&masked.candidates.mask]);
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
    fn fill(&self, positions: &[&MaskedPosition]) -> Result<Vec<Filled>, ModelError> {
        positions.iter().try_for_each(|masked| self.check(masked))?;
        let length = |place: &usize| positions[*place].ids.len();
        let mut places: Vec<usize> = (0..positions.len()).collect();
        places.sort_by_key(length);
        let mut filled = Vec::with_capacity(positions.len());
        // Nothing is padded: only sequences of the same length run together.
        for places in places.chunk_by(|a, b| length(a) == length(b)) {
            for places in places.chunks(self.shape.copies_at_a_time(length(&places[0]))) {
                let part: Vec<&MaskedPosition> = places.iter().map(|&place| positions[place]).collect();
                let predictions =
                    self.logits(&part)?.into_iter().zip(part).map(|(logits, masked)| masked.rank(&logits));
                filled.extend(places.iter().zip(predictions));
            }
        }
        filled.sort_by_key(|(place, _)| **place);
        Ok(filled.into_iter().map(|(_, filled)| filled).collect())
    }
}
