//! A model as saved: configuration, weights and digest, opened without loading any weight.

use super::arch::{Arch, Positions};
use super::assembly::Assembly;
use super::config_reader::standard_json;
use super::cuda::{self, Scans};
use super::decoder::Decoder;
use super::end_tokens::end_tokens;
use super::error::ModelError;
use super::families::{ModelDescription, Network, read_config};
use super::files::{FileBytes, GgufFiles, ModelFiles, joint_file_digest};
use super::footprint::{self, Workload};
use super::gguf::{GgufError, GgufFile, ROPE_DIVISORS};
use super::lora::Adapter;
use super::mamba::Mamba;
use super::masked::Encoder;
use super::model::{CausalLm, LoadedModel};
use super::ops::{Form, Multiply, ProvideTensors, TensorSource};
use super::rotary::RotaryScaling;
use super::storage::Storage;
use super::weights::Weights;
use candle_core::{DType, Device, Tensor};
use kernels::packed::{Packed, Products};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The opened files of one model.
pub struct Checkpoint {
    pub description: ModelDescription,
    pub weights: Weights,
    /// `config.json`; `None` if the file of the weights has the configuration, too.
    config: Option<FileBytes>,
    quantization: Option<String>,
    ends: Result<Arc<[u32]>, String>,
}

impl Checkpoint {
    /// Opens the files: reads the configuration and the headers of the weights.
    pub fn open(files: &ModelFiles) -> Result<Self, ModelError> {
        const CONFIG: &str = "config.json";
        let (description, config, quantization) = if let ModelFiles::Gguf(gguf) = files {
            let (description, quantization) = describe(files, gguf)?;
            (description, None, quantization)
        } else {
            let config = files.open(CONFIG)?;
            let value: Value = serde_json::from_slice(&standard_json(&config)).map_err(|e| files.error(CONFIG, e))?;
            let object = value.as_object().ok_or_else(|| files.error(CONFIG, "expected a JSON object"))?;
            (read_config(object)?, Some(config), None)
        };
        Ok(Self {
            description,
            weights: Weights::open(files)?,
            config,
            quantization,
            ends: end_tokens(files).map_err(|error| error.to_string()),
        })
    }

    /// What the weights are quantised to, as in `Q4_K_M`; `None` if they are as they were trained.
    pub fn quantization(&self) -> Option<&str> {
        self.quantization.as_deref()
    }

    /// The ids that end a text which the model writes, or why they are not known: scoring does without them.
    pub fn ends(&self) -> &Result<Arc<[u32]>, String> {
        &self.ends
    }

    pub fn model_type(&self) -> &'static str {
        self.description.model_type
    }

    /// The number of outputs of the head.
    pub fn vocab_size(&self) -> usize {
        self.description.network.vocab_size()
    }

    /// The maximum number of tokens in a text; `None` if there is no limit.
    pub fn context(&self) -> Option<usize> {
        self.description.network.context()
    }

    /// Returns true if this is a masked model, which predicts masked tokens of a text instead of the next token.
    pub fn is_masked(&self) -> bool {
        match self.description.network {
            Network::Masked(_) => true,
            Network::Decoder(..) | Network::Mamba(..) => false,
        }
    }

    /// Returns true if the model can be loaded in f16 and bf16.
    pub fn has_half_precision(&self) -> bool {
        match self.description.network {
            Network::Decoder(..) => true,
            Network::Mamba(..) | Network::Masked(_) => false,
        }
    }

    /// The form in which [`Checkpoint::load`] loads the model: on a GPU, that of its kernels if all of them compile.
    pub fn form(&self, dtype: DType, device: &Device) -> Result<Form, ModelError> {
        let has_kernels = match &self.description.network {
            Network::Masked(_) => return Ok(Form::Plain),
            Network::Decoder(arch, _) => {
                cuda::has_kernels(device, arch.norm, arch.activation, arch.sizes.head_dim, dtype)?
            }
            Network::Mamba(arch, _) => Scans::new(device, arch.scan_shape())?.is_some(),
        };
        Ok(if has_kernels { Form::Gpu(dtype) } else { Form::inference(device, dtype) })
    }

    /// Bytes of the weights once loaded.
    pub fn weight_bytes(&self, form: Form, dtype: DType) -> u64 {
        footprint::weight_bytes(&self.description.network, &self.weights, form, dtype)
    }

    /// An upper estimate of the bytes that a number of tokens takes in addition to the weights, on a device that runs
    /// `threads` threads.
    pub fn activation_bytes(
        &self,
        form: Form,
        dtype: DType,
        workload: Workload,
        threads: usize,
    ) -> Arc<dyn Fn(usize) -> u64 + Send + Sync> {
        footprint::activation_bytes(&self.description.network, form, dtype, workload, threads)
    }

    /// SHA-256 over configuration and weights, see [`joint_digest`](super::files::joint_digest); that of the file, if one has
    /// both. Reads every byte.
    pub fn digest(&self) -> Result<String, ModelError> {
        let mut contents: Vec<(&str, &FileBytes)> = self.weights.contents().collect();
        match (&self.config, contents.as_slice()) {
            (None, [(_, file)]) => file.digest(),
            (config, _) => {
                contents.extend(config.iter().map(|config| ("config.json", config)));
                joint_file_digest(&mut contents)
            }
        }
    }

    /// Loads the weights in a type onto a device, in the fastest form for inference on it.
    pub fn load(&self, dtype: DType, device: &Device) -> Result<LoadedModel, ModelError> {
        self.load_in(self.form(dtype, device)?, dtype, device)
    }

    /// Loads the weights in a type onto a device, in the given form. Masked models have only one form, in f32.
    pub fn load_in(&self, form: Form, dtype: DType, device: &Device) -> Result<LoadedModel, ModelError> {
        let model: Box<dyn CausalLm> = match &self.description.network {
            Network::Decoder(arch, storage) => self.build(storage, Some(arch), form, dtype, device, |source| {
                Ok(Box::new(Decoder::new(arch.clone(), form, device, source)?))
            })?,
            Network::Mamba(arch, storage) => self.build(storage, None, form, dtype, device, |source| {
                Ok(Box::new(Mamba::new(arch.clone(), form, device, source)?))
            })?,
            Network::Masked(blueprint) => {
                return Ok(LoadedModel::Masked(Box::new(Encoder::new(blueprint, &self.weights, device)?)));
            }
        };
        Ok(LoadedModel::Causal(model))
    }

    /// Reads a LoRA adapter of this model.
    pub fn adapter(&self, files: &ModelFiles) -> Result<Adapter, ModelError> {
        self.refuse_gguf()?;
        match &self.description.network {
            Network::Decoder(arch, storage) => Adapter::open(files, arch, storage, &self.weights),
            Network::Mamba(..) | Network::Masked(_) => {
                Err(ModelError::Forward(format!("models of type `{}` take no adapters", self.model_type())))
            }
        }
    }

    /// Loads a decoder in differentiable operations and in f32, for tuning.
    pub fn differentiable(&self, device: &Device) -> Result<Decoder, ModelError> {
        self.refuse_gguf()?;
        let Network::Decoder(arch, storage) = &self.description.network else {
            return Err(ModelError::Forward(format!("models of type `{}` are not tuned", self.model_type())));
        };
        self.build(storage, Some(arch), Form::Plain, DType::F32, device, |source| {
            Decoder::new(arch.clone(), Form::Plain, device, source)
        })
    }

    /// Refuses adapters of a model that is one GGUF file: they are of the original's modules, and trained on its weights.
    fn refuse_gguf(&self) -> Result<(), ModelError> {
        match self.config {
            Some(_) => Ok(()),
            None => Err(ModelError::Forward(
                "models in GGUF take no adapters and are not tuned; use the original, as transformers saves it"
                    .to_owned(),
            )),
        }
    }

    /// Builds a model from the tensors, all of which it must request. `arch` is the architecture of a decoder.
    fn build<M>(
        &self,
        storage: &Storage,
        arch: Option<&Arch>,
        form: Form,
        dtype: DType,
        device: &Device,
        build: impl FnOnce(TensorSource<'_>) -> Result<M, ModelError>,
    ) -> Result<M, ModelError> {
        let assembly = Assembly::new(&self.weights, storage, arch);
        let mut source = AssembledTensors { assembly, form, dtype, device };
        let model = build(&mut source)?;
        self.refuse_unused(source.assembly.used())?;
        Ok(model)
    }

    /// Refuses tensors that were not used: the configuration and the weights then describe different models.
    fn refuse_unused(&self, used: &BTreeSet<String>) -> Result<(), ModelError> {
        let network = &self.description.network;
        let mut unused = self.weights.names().filter(|name| !used.contains(*name) && !network.ignores(name));
        let Some(first) = unused.next() else { return Ok(()) };
        let reason = format!("not part of the model that config.json describes ({} such tensors)", 1 + unused.count());
        Err(ModelError::Tensor { name: first.to_owned(), reason })
    }
}

/// The tensors on disk, in the types that a form computes with.
struct AssembledTensors<'a> {
    assembly: Assembly<'a>,
    form: Form,
    dtype: DType,
    device: &'a Device,
}

impl AssembledTensors<'_> {
    /// The type of a tensor in memory.
    fn dtype(&self, canonical: &str, shape: &[usize]) -> DType {
        match self.form {
            // Norms are computed in f32 in any case, and are too small to matter.
            Form::Plain | Form::Gpu(_) if canonical.contains("norm") => DType::F32,
            // As kernels read them, whatever the type of what they are added to.
            Form::Gpu(_) if canonical.ends_with(".bias") => DType::F32,
            Form::Plain | Form::Gpu(_) => self.dtype,
            Form::Fused(Multiply::Packed(products, _)) if Storage::is_matrix(canonical, shape) => match products {
                // In the type they are stored in, which takes no more memory and rounds nothing.
                Products::F32 => self.assembly.half_type(canonical).unwrap_or(DType::F32),
                Products::Bf16 => DType::BF16,
            },
            Form::Fused(_) => DType::F32,
        }
    }
}

impl ProvideTensors for AssembledTensors<'_> {
    fn tensor(&mut self, canonical: &str, shape: &[usize]) -> Result<Tensor, ModelError> {
        let dtype = self.dtype(canonical, shape);
        let tensor = match self.assembly.as_stored(canonical, shape, dtype)? {
            Some(tensor) => tensor,
            None => Tensor::from_vec(self.assembly.values(canonical, shape)?, shape, &Device::Cpu)?,
        };
        Ok(tensor.to_dtype(dtype)?.to_device(self.device)?)
    }

    fn blocks(&mut self, canonical: &str, shape: [usize; 2]) -> Result<Option<Vec<Packed>>, ModelError> {
        self.form.isa_for_blocks().map_or(Ok(None), |isa| self.assembly.as_blocks(canonical, shape, isa))
    }
}

/// What a GGUF file describes, and what its weights are quantised to. Its tensors have names and an order of their own.
fn describe(files: &ModelFiles, gguf: &GgufFiles) -> Result<(ModelDescription, Option<String>), ModelError> {
    let bytes = gguf.among.open_weights(&gguf.name)?;
    let error = |fault: GgufError| files.error(&gguf.name, fault);
    let file = GgufFile::read(&bytes).map_err(error)?;
    let architecture = file.architecture().map_err(error)?;
    let description = read_config(&file.config().map_err(error)?).map_err(|fault| match fault {
        ModelError::Config { key, reason } => match architecture.key(&key) {
            Some(key) => error(GgufError::key(&key, reason)),
            None => ModelError::Config { key, reason },
        },
        other => other,
    })?;
    let Network::Decoder(mut arch, _) = description.network else {
        return Err(files.error(&gguf.name, "the model is no decoder"));
    };
    if let (Some(divisors), Positions::Rotary(rotary)) = (file.rope_divisors().map_err(error)?, &mut arch.positions) {
        let pairs = rotary.dims / 2;
        if divisors.len() != pairs {
            let reason = format!("has {} elements, but {pairs} pairs of elements are rotated", divisors.len());
            return Err(error(GgufError::tensor(ROPE_DIVISORS, reason)));
        }
        if rotary.scaling != RotaryScaling::None {
            return Err(error(GgufError::tensor(ROPE_DIVISORS, "the metadata scale positions as well")));
        }
        rotary.scaling = RotaryScaling::Divided(divisors);
    }
    let quantization = file.quantization().map_err(error)?;
    let network = Network::Decoder(arch, architecture.storage);
    Ok((ModelDescription { model_type: description.model_type, network }, quantization))
}
