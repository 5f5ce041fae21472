//! Hands the tensors of a checkpoint to candle's own architectures, and remembers which were asked for.

use super::{Blueprint, Network};
use crate::models::ModelError;
use crate::models::weights::Weights;
use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The tensors of a checkpoint, under the names that candle has for them.
pub struct Source<'a> {
    weights: &'a Weights,
    blueprint: &'a Blueprint,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    used: BTreeSet<String>,
    /// Why the last tensor that could not be had was not: candle's error would not tell all of it.
    fault: Option<ModelError>,
}

impl<'a> Source<'a> {
    pub fn new(weights: &'a Weights, blueprint: &'a Blueprint) -> Self {
        Self { weights, blueprint, seen: Mutex::default() }
    }

    /// Builds a network of all tensors but those that may be ignored.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] naming what is missing, has another shape or type, or is no part of the model.
    pub(super) fn build(&self, device: &Device) -> std::result::Result<Box<dyn Network>, ModelError> {
        let Blueprint { build, ignored, .. } = self.blueprint;
        let network = build(VarBuilder::from_backend(Box::new(self), DType::F32, device.clone()));
        let seen = std::mem::take(&mut *self.seen());
        let network = network.map_err(|error| seen.fault.unwrap_or_else(|| error.into()))?;
        let mut strangers = self.weights.names().filter(|name| !seen.used.contains(*name) && !ignored(name));
        match strangers.next() {
            None => Ok(network),
            Some(name) => Err(fault(name, "not part of the model that config.json describes")),
        }
    }

    /// The name in the files of a tensor that candle asks for.
    fn find(&self, name: &str) -> Option<String> {
        (self.blueprint.names)(name).into_iter().find(|name| self.weights.shape(name).is_some())
    }

    fn load(&self, name: &str, shape: Option<&Shape>, device: &Device) -> std::result::Result<Tensor, ModelError> {
        let found = self.find(name).and_then(|name| self.weights.find(&name).map(|stored| (name, stored)));
        let (name, stored) = found.ok_or_else(|| fault(name, "missing"))?;
        if let Some(shape) = shape.filter(|shape| shape.dims() != stored.shape) {
            return Err(fault(&name, format!("shape {:?}, but config.json asks for {:?}", stored.shape, shape.dims())));
        }
        let mut values = Vec::new();
        if !stored.widen_into(&mut values) {
            return Err(fault(&name, format!("type {:?}; supported are F32, F16 and BF16", stored.dtype)));
        }
        self.weights.let_go(&name);
        let tensor = Tensor::from_vec(values, stored.shape, &Device::Cpu)?.to_device(device)?;
        self.seen().used.insert(name);
        Ok(tensor)
    }

    fn get(&self, name: &str, shape: Option<&Shape>, device: &Device) -> Result<Tensor> {
        self.load(name, shape, device).map_err(|fault| {
            let error = Error::msg(fault.to_string());
            self.seen().fault = Some(fault);
            error
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimpleBackend for &Source<'_> {
    fn get(&self, shape: Shape, name: &str, _: candle_nn::Init, _: DType, device: &Device) -> Result<Tensor> {
        Source::get(self, name, Some(&shape), device)
    }

    fn get_unchecked(&self, name: &str, _: DType, device: &Device) -> Result<Tensor> {
        Source::get(self, name, None, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

fn fault(name: &str, reason: impl Into<String>) -> ModelError {
    ModelError::Tensor { name: name.to_owned(), reason: reason.into() }
}
