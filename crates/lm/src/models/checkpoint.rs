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
use super::layer::DecoderLayer;
use super::layers::{LayerPlacement, LayerStream, Layers};
use super::lora::Adapter;
use super::mamba::Mamba;
use super::masked::Encoder;
use super::model::{CausalLm, LoadedModel};
use super::ops::{Form, ProvideTensors, TensorSource};
use super::rotary::RotaryScaling;
use super::stamp::Stamp;
use super::storage::Storage;
use super::weights::Weights;
use candle_core::{DType, Device, Tensor};
use kernels::packed::Packed;
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

    /// Quantisation of the weights, such as `Q4_K_M`; `None` if they are not quantised.
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

    /// Bytes of the weights that are in memory at most once the model is loaded.
    pub fn weight_bytes(&self, form: Form, dtype: DType, layers: LayerPlacement) -> u64 {
        footprint::weight_bytes(&self.description.network, &self.weights, form, dtype, layers)
    }

    /// An upper estimate of the bytes that a number of tokens takes in addition to the weights, on a device that runs
    /// `threads` threads.
    pub fn activation_bytes(
        &self,
        form: Form,
        dtype: DType,
        layers: LayerPlacement,
        workload: Workload,
        threads: usize,
    ) -> Arc<dyn Fn(usize) -> u64 + Send + Sync> {
        footprint::activation_bytes(&self.description.network, form, dtype, layers, workload, threads)
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

    /// Returns why the layers of the model cannot be streamed on a device; `None` if they can.
    pub fn why_not_streamed(&self, device: &Device) -> Option<String> {
        match self.description.network {
            Network::Decoder(..) if device.is_cpu() => None,
            Network::Decoder(..) => Some("layers are streamed on the CPU only".to_owned()),
            Network::Mamba(..) | Network::Masked(_) => {
                Some(format!("the layers of models of type `{}` are not streamed", self.model_type()))
            }
        }
    }

    /// Loads all but the layers, which every forward pass reads from the files as long as these match the stamp. The first layer
    /// is read now, the others are only looked up.
    pub fn stream(
        mut self,
        form: Form,
        dtype: DType,
        device: &Device,
        files: ModelFiles,
        stamp: Stamp,
    ) -> Result<LoadedModel, ModelError> {
        if let Some(reason) = self.why_not_streamed(device) {
            return Err(ModelError::Forward(reason));
        }
        self.weights.bypass_cache();
        let checkpoint = Arc::new(self);
        let Network::Decoder(arch, storage) = &checkpoint.description.network else {
            return Err(ModelError::Forward("only decoders have layers to stream".to_owned()));
        };
        let mut assembly = Assembly::new(&checkpoint.weights, storage, Some(arch));
        let mut first = RecordedTensors { source: assembly.source(form, dtype, device), tensors: Vec::new() };
        DecoderLayer::new(arch, 0, form, &mut first)?;
        let tensors = first.tensors;
        for index in 1..arch.sizes.layers {
            let name = |name: &str| name.replacen("layers.0.", &format!("layers.{index}."), 1);
            tensors.iter().try_for_each(|(first, shape)| assembly.check(&name(first), shape))?;
        }
        let layers = LayerStream::new(arch.sizes.layers, {
            let (checkpoint, arch, storage, device) = (Arc::clone(&checkpoint), arch.clone(), *storage, device.clone());
            Box::new(move |index, memory| {
                files.read_unchanged(&stamp, || {
                    let mut assembly = Assembly::new(&checkpoint.weights, &storage, Some(&arch));
                    assembly.reuse(memory);
                    DecoderLayer::new(&arch, index, form, &mut assembly.source(form, dtype, &device))
                })
            })
        })?;
        let mut source = assembly.source(form, dtype, device);
        let decoder = Decoder::with_layers(arch.clone(), Layers::Streamed(layers), form, device, &mut source)?;
        checkpoint.refuse_unused(assembly.used())?;
        Ok(LoadedModel::Causal(Box::new(decoder)))
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
        let mut assembly = Assembly::new(&self.weights, storage, arch);
        let model = build(&mut assembly.source(form, dtype, device))?;
        self.refuse_unused(assembly.used())?;
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

/// Tensors from a source, with the names and shapes of those that were provided.
struct RecordedTensors<S> {
    source: S,
    tensors: Vec<(String, Vec<usize>)>,
}

impl<S: ProvideTensors> ProvideTensors for RecordedTensors<S> {
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Tensor, ModelError> {
        self.tensors.push((name.to_owned(), shape.to_owned()));
        self.source.tensor(name, shape)
    }

    fn packed(&mut self, name: &str, shape: [usize; 2]) -> Result<Option<Vec<Packed>>, ModelError> {
        let packed = self.source.packed(name, shape)?;
        if packed.is_some() {
            self.tensors.push((name.to_owned(), shape.to_vec()));
        }
        Ok(packed)
    }
}

/// Reads the model that a GGUF file describes, and the quantisation of its weights.
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
