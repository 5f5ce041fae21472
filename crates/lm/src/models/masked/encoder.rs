//! A loaded masked model: how its tensors are found, and how it runs batches.

use super::{Blueprint, EncoderShape, ForwardPass};
use crate::models::error::ModelError;
use crate::models::model::MaskedLm;
use crate::models::model::{Filled, MaskedPosition};
use crate::models::weights::Weights;
use candle_core::{DType, Device, Error, IndexOp, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use kernels::gemm::fewest_rows;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A loaded masked language model: an encoder with the head it was pre-trained with.
pub struct Encoder {
    network: ForwardPass,
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
        let logits = (self.network)(&masked)?;
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

/// The tensors of a checkpoint, under the names that candle uses.
pub struct CheckpointSource<'a> {
    weights: &'a Weights,
    blueprint: &'a Blueprint,
    log: Mutex<ReadLog>,
}

/// The tensors that have been read, and the error if reading failed.
#[derive(Default)]
struct ReadLog {
    used: BTreeSet<String>,
    /// Why the last tensor that could not be read failed: candle's error would not contain all of it.
    error: Option<ModelError>,
}

impl<'a> CheckpointSource<'a> {
    pub fn new(weights: &'a Weights, blueprint: &'a Blueprint) -> Self {
        Self { weights, blueprint, log: Mutex::default() }
    }

    /// Builds a network from all tensors except those that may be ignored.
    pub(super) fn build(&self, device: &Device) -> Result<ForwardPass, ModelError> {
        let Blueprint { build, ignores, .. } = self.blueprint;
        let network = build(VarBuilder::from_backend(Box::new(self), DType::F32, device.clone()));
        let log = std::mem::take(&mut *self.log());
        let network = network.map_err(|error| log.error.unwrap_or_else(|| error.into()))?;
        let mut unused = self.weights.names().filter(|name| !log.used.contains(*name) && !ignores(name));
        match unused.next() {
            None => Ok(network),
            Some(name) => Err(error(name, "not part of the model that config.json describes")),
        }
    }

    /// The name in the files of a tensor that candle requests.
    fn find(&self, name: &str) -> Option<String> {
        (self.blueprint.names)(name).into_iter().find(|name| self.weights.shape(name).is_some())
    }

    fn load(&self, name: &str, shape: Option<&Shape>, device: &Device) -> Result<Tensor, ModelError> {
        let tensor = self.find(name).and_then(|name| self.weights.find(&name).map(|stored| (name, stored)));
        let (name, stored) = tensor.ok_or_else(|| error(name, "missing"))?;
        if let Some(shape) = shape.filter(|shape| shape.dims() != stored.shape) {
            return Err(error(
                &name,
                format!("shape {:?}, but the configuration requires {:?}", stored.shape, shape.dims()),
            ));
        }
        let mut values = Vec::new();
        stored.widen_into(&mut values)?;
        let tensor = Tensor::from_vec(values, stored.shape, &Device::Cpu)?.to_device(device)?;
        self.log().used.insert(name);
        Ok(tensor)
    }

    fn get(&self, name: &str, shape: Option<&Shape>, device: &Device) -> candle_core::Result<Tensor> {
        self.load(name, shape, device).map_err(|cause| {
            let error = Error::msg(cause.to_string());
            self.log().error = Some(cause);
            error
        })
    }

    fn log(&self) -> MutexGuard<'_, ReadLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimpleBackend for &CheckpointSource<'_> {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: candle_nn::Init,
        _: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        CheckpointSource::get(self, name, Some(&shape), device)
    }

    fn get_unchecked(&self, name: &str, _: DType, device: &Device) -> candle_core::Result<Tensor> {
        CheckpointSource::get(self, name, None, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

fn error(name: &str, reason: impl Into<String>) -> ModelError {
    ModelError::Tensor { name: name.to_owned(), reason: reason.into() }
}
