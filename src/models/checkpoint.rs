//! A model as saved: configuration, weights and digest, opened without loading a weight.

use super::arch::Arch;
use super::assembly::Assembly;
use super::decoder::{Decoder, TensorSource};
use super::families::{Described, Network, Storage, read_config};
use super::files::{FileBytes, ModelFiles, joint_digest};
use super::footprint::{self, Load};
use super::json::standard_json;
use super::kernels::packed::Products;
use super::mamba::Mamba;
use super::masked::Encoder;
use super::ops::{Form, Multiply};
use super::weights::Weights;
use super::{CausalLm, Loaded, ModelError};
use candle_core::{DType, Device, Tensor};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The opened files of one model.
pub struct Checkpoint {
    pub described: Described,
    pub weights: Weights,
    config: FileBytes,
}

impl Checkpoint {
    /// Opens the files: reads the configuration and the headers of the weights.
    ///
    /// # Errors
    /// Names the file or key that is missing or wrong.
    pub fn open(files: &ModelFiles) -> Result<Self, ModelError> {
        const CONFIG: &str = "config.json";
        let config = files.open(CONFIG)?;
        let value: Value = serde_json::from_slice(&standard_json(&config)).map_err(|e| files.fault(CONFIG, e))?;
        let object = value.as_object().ok_or_else(|| files.fault(CONFIG, "not a JSON object"))?;
        Ok(Self { described: read_config(object)?, weights: Weights::open(files)?, config })
    }

    /// The value of `model_type` in the configuration.
    pub fn model_type(&self) -> &'static str {
        self.described.model_type
    }

    /// Outputs of the head.
    pub fn vocab_size(&self) -> usize {
        self.described.network.vocab_size()
    }

    /// The most tokens of a text; none where there is no limit.
    pub fn context(&self) -> Option<usize> {
        self.described.network.context()
    }

    /// Whether it is a masked model, which fills gaps of a text instead of continuing it.
    pub fn is_masked(&self) -> bool {
        matches!(self.described.network, Network::Masked(_))
    }

    /// Whether it can be loaded in f16 and bf16.
    pub fn has_half_precision(&self) -> bool {
        matches!(self.described.network, Network::Decoder(..))
    }

    /// The form in which [`Checkpoint::load`] loads it.
    pub fn form(&self, dtype: DType, device: &Device) -> Form {
        if self.is_masked() { Form::Plain } else { Form::inference(device, dtype) }
    }

    /// Bytes of the weights once loaded.
    pub fn weight_bytes(&self, form: Form, dtype: DType) -> u64 {
        footprint::of_weights(&self.described.network, &self.weights, form, dtype)
    }

    /// Estimates from above what so many tokens take beside the weights, in bytes.
    pub fn activation_bytes(&self, form: Form, dtype: DType, load: Load) -> Arc<dyn Fn(usize) -> u64 + Send + Sync> {
        footprint::of(&self.described.network, form, dtype, load)
    }

    /// SHA-256 over configuration and weights, see [`joint_digest`]. Reads every byte.
    pub fn digest(&self) -> String {
        let mut contents: Vec<(&str, &[u8])> = self.weights.contents().collect();
        contents.push(("config.json", &self.config));
        joint_digest(&mut contents)
    }

    /// Loads the weights in a type to a device, in the fastest form for inference there.
    ///
    /// # Errors
    /// As [`Checkpoint::load_in`].
    pub fn load(&self, dtype: DType, device: &Device) -> Result<Loaded, ModelError> {
        self.load_in(self.form(dtype, device), dtype, device)
    }

    /// Loads the weights in a type to a device, in a given form. Masked models have but one, in f32.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] naming a tensor that is missing, has another shape, a type that is not supported, or is no
    /// part of the model.
    pub fn load_in(&self, form: Form, dtype: DType, device: &Device) -> Result<Loaded, ModelError> {
        let model: Box<dyn CausalLm> = match &self.described.network {
            Network::Decoder(arch, storage) => self.causal(storage, Some(arch), form, dtype, device, |source| {
                Ok(Box::new(Decoder::new(arch.clone(), form, device, source)?))
            })?,
            Network::Mamba(arch, storage) => self.causal(storage, None, form, dtype, device, |source| {
                Ok(Box::new(Mamba::new(arch.clone(), form, device, source)?))
            })?,
            Network::Masked(blueprint) => {
                return Ok(Loaded::Masked(Box::new(Encoder::new(blueprint, &self.weights, device)?)));
            }
        };
        Ok(Loaded::Causal(model))
    }

    /// Builds a model from the tensors, all of which it must ask for. `arch` is that of a decoder.
    fn causal(
        &self,
        storage: &Storage,
        arch: Option<&Arch>,
        form: Form,
        dtype: DType,
        device: &Device,
        build: impl FnOnce(TensorSource<'_>) -> Result<Box<dyn CausalLm>, ModelError>,
    ) -> Result<Box<dyn CausalLm>, ModelError> {
        let mut assembly = Assembly::new(&self.weights, storage, arch);
        let mut source = |canonical: &str, shape: &[usize]| {
            let dtype = match form {
                // Norms are taken in f32 whatever the type, and are too small to matter.
                Form::Plain if canonical.contains("norm") => DType::F32,
                Form::Plain => dtype,
                Form::Fused(Multiply::Packed(products, _)) if Storage::is_matrix(canonical, shape) => match products {
                    // In the type they are stored in, which takes no more memory and rounds nothing.
                    Products::F32 => assembly.half_type(canonical).unwrap_or(DType::F32),
                    Products::Bf16 => DType::BF16,
                },
                Form::Fused(_) => DType::F32,
            };
            let tensor = match assembly.as_stored(canonical, shape, dtype)? {
                Some(tensor) => tensor,
                None => Tensor::from_vec(assembly.values(canonical, shape)?, shape, &Device::Cpu)?,
            };
            Ok(tensor.to_dtype(dtype)?.to_device(device)?)
        };
        let model = build(&mut source)?;
        self.refuse_strangers(assembly.used())?;
        Ok(model)
    }

    /// A tensor that nothing read means that the configuration and the weights tell of different models.
    fn refuse_strangers(&self, used: &BTreeSet<String>) -> Result<(), ModelError> {
        let network = &self.described.network;
        let mut strangers = self.weights.names().filter(|name| !used.contains(*name) && !network.ignores(name));
        let Some(first) = strangers.next() else { return Ok(()) };
        let reason =
            format!("not part of the model that config.json describes ({} such tensors)", 1 + strangers.count());
        Err(ModelError::Tensor { name: first.to_owned(), reason })
    }
}
