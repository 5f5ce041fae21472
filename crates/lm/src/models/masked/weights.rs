//! Provides the tensors of a checkpoint to candle's own architectures, and records which were requested.

use super::blueprint::{Blueprint, MaskedNetwork};
use crate::models::error::ModelError;
use crate::models::weights::Weights;
use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::VarBuilder;
use candle_nn::var_builder::SimpleBackend;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    pub(super) fn build(&self, device: &Device) -> std::result::Result<Box<dyn MaskedNetwork>, ModelError> {
        let Blueprint { build, ignored, .. } = self.blueprint;
        let network = build(VarBuilder::from_backend(Box::new(self), DType::F32, device.clone()));
        let log = std::mem::take(&mut *self.log());
        let network = network.map_err(|error| log.error.unwrap_or_else(|| error.into()))?;
        let mut unused = self.weights.names().filter(|name| !log.used.contains(*name) && !ignored(name));
        match unused.next() {
            None => Ok(network),
            Some(name) => Err(error(name, "not part of the model that config.json describes")),
        }
    }

    /// The name in the files of a tensor that candle requests.
    fn find(&self, name: &str) -> Option<String> {
        (self.blueprint.names)(name).into_iter().find(|name| self.weights.shape(name).is_some())
    }

    fn load(&self, name: &str, shape: Option<&Shape>, device: &Device) -> std::result::Result<Tensor, ModelError> {
        let tensor = self.find(name).and_then(|name| self.weights.find(&name).map(|stored| (name, stored)));
        let (name, stored) = tensor.ok_or_else(|| error(name, "missing"))?;
        if let Some(shape) = shape.filter(|shape| shape.dims() != stored.shape) {
            return Err(error(&name, format!("shape {:?}, but config.json requires {:?}", stored.shape, shape.dims())));
        }
        let mut values = Vec::new();
        if !stored.widen_into(&mut values) {
            return Err(error(
                &name,
                format!("type {:?} is not supported; supported types are F32, F16 and BF16", stored.dtype),
            ));
        }
        self.weights.release(&name);
        let tensor = Tensor::from_vec(values, stored.shape, &Device::Cpu)?.to_device(device)?;
        self.log().used.insert(name);
        Ok(tensor)
    }

    fn get(&self, name: &str, shape: Option<&Shape>, device: &Device) -> Result<Tensor> {
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
    fn get(&self, shape: Shape, name: &str, _: candle_nn::Init, _: DType, device: &Device) -> Result<Tensor> {
        CheckpointSource::get(self, name, Some(&shape), device)
    }

    fn get_unchecked(&self, name: &str, _: DType, device: &Device) -> Result<Tensor> {
        CheckpointSource::get(self, name, None, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

fn error(name: &str, reason: impl Into<String>) -> ModelError {
    ModelError::Tensor { name: name.to_owned(), reason: reason.into() }
}
