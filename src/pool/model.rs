//! A model whose files are open: what is known of it before a weight is loaded, and how it is loaded.

use super::declaration::LocatedFiles;
use super::declaration::{Declaration, adapted_id, base_id, open_chat_template};
use super::error::OpenError;
use crate::config::LayersChoice;
use crate::served::{BackendInfo, ServedDescription};
use candle_core::DType;
use kernels::gemm::instructions;
use lm::chat::{ChatError, ChatTemplate};
use lm::models::checkpoint::Checkpoint;
use lm::models::device::ComputeDevice;
use lm::models::files::{ModelFiles, digest, joint_digest};
use lm::models::footprint::Workload;
use lm::models::layers::LayerPlacement;
use lm::models::lora::Adapter;
use lm::models::ops::Form;
use lm::models::precision::Rounding;
use lm::models::stamp::Stamp;
use lm::models::{LoadedModel, ModelError, precision};
use lm::tokenizer::{self, Tokenizer, Words};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;

/// Loads a model to the device of this index. Called on that device's thread, again for every attempt.
pub type Loader = Arc<dyn Fn(usize) -> Result<LoadedModel, ModelError> + Send + Sync>;

/// Estimates the bytes that a batch of the given number of tokens takes beside the weights. Never less for more tokens.
pub type ActivationBytes = Arc<dyn Fn(usize) -> u64 + Send + Sync>;

/// The model that scored, and how: what answers, audits and reports say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ModelEcho)]
pub struct ModelInfo {
    /// The id by which requests name it.
    pub id: String,
    /// SHA-256 over configuration and weights; where `backend` says that nobody attests those, over what its server says instead.
    pub digest: String,
    /// SHA-256 of the tokenizer.
    pub tokenizer_digest: String,
    /// The type it computes in.
    pub dtype: String,
    /// Possible deviation of its numbers from those in f32, by checkpoints that were tested on the CPU; absent if they are f32's
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,
    /// What its weights are quantised to, as in `Q4_K_M`; absent if they are not quantised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("Q4_K_M"))]
    pub quantization: Option<String>,
    /// Device that runs it: `cpu`, `cuda:0` or, with replicas, all of them; `served` if a server does.
    pub device: String,
    /// The commit of a model from the Hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Server that runs it, if it is served elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendInfo>,
    /// SHA-256 over the files of the adapter, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Adapted {
    pub adapter: Arc<Adapter>,
    /// The identity of the base without it.
    pub base: Arc<str>,
}

/// The local part of a model that runs here.
#[derive(Clone)]
pub struct LocalModel {
    pub place: ComputeDevice,
    pub files: ModelFiles,
    /// The files as they were when they were opened.
    pub stamp: Stamp,
}

#[derive(Clone)]
pub struct Model {
    pub info: ModelInfo,
    /// All that its numbers depend on (digest, numeric path, device, instructions): its part of the key of every cache.
    pub identity: Arc<str>,
    pub tokenizer: Tokenizer,
    pub tokenizer_digest: Arc<str>,
    /// Its chat template, or why conversations cannot be rendered.
    pub chat: Result<Arc<ChatTemplate>, ChatError>,
    /// Maximum number of tokens of a text; `None` if there is no limit.
    pub context: Option<usize>,
    /// Maximum number of tokens of a text that can run: its context, or less if the device has no memory for more.
    pub longest: usize,
    /// Outputs of the head; every id below is one of its tokens.
    pub vocab_size: usize,
    /// The ids that end a text which it writes, or why it continues no texts.
    pub ends: Result<Arc<[u32]>, String>,
    /// True if it is a masked model, which makes neighbours, instead of a causal one, which scores texts.
    pub masked: bool,
    /// Word information from the tokenizer of a masked model.
    pub words: Option<Arc<Words>>,
    /// Value of `model_type` in the configuration; `None` if it is served elsewhere.
    pub architecture: Option<&'static str>,
    /// Where its layers are while it runs; `None` if it is served elsewhere.
    pub layers: Option<LayerPlacement>,
    /// Bytes of its weights that are in memory at most.
    pub weight_bytes: u64,
    /// Estimate of what a batch takes beside them.
    pub activation_bytes: ActivationBytes,
    pub load: Loader,
    pub devices: Vec<usize>,
    /// Description by its server, if it is served elsewhere.
    pub served: Option<Arc<ServedDescription>>,
    pub local: Option<LocalModel>,
    pub adapted: Option<Adapted>,
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Model")
            .field("info", &self.info)
            .field("identity", &self.identity)
            .field("weight_bytes", &self.weight_bytes)
            .finish_non_exhaustive()
    }
}

impl Model {
    pub fn id(&self) -> &str {
        &self.info.id
    }

    /// The id of the model whose weights it runs on: its own, or that of its base.
    pub fn base_id(&self) -> &str {
        base_id(self.id())
    }

    /// Returns true if every forward pass reads its layers from disk.
    pub fn is_streamed(&self) -> bool {
        self.layers == Some(LayerPlacement::Streamed)
    }

    /// Returns its local part.
    pub fn local(&self) -> Result<&LocalModel, ModelError> {
        self.local.as_ref().ok_or(ModelError::NoWeights)
    }

    /// Bytes of its weights, and of a batch of the given number of tokens.
    pub(crate) fn footprint(&self) -> (u64, &dyn Fn(usize) -> u64) {
        (self.weight_bytes, &*self.activation_bytes)
    }

    /// This model under an adapter. It has the weights of its base, and takes no memory of a device but that.
    pub(super) fn under(&self, name: &str, adapter: Adapter) -> Self {
        let mut adapted = self.clone();
        adapted.info.id = adapted_id(self.id(), name);
        adapted.info.adapter = Some(adapter.digest.clone());
        adapted.identity = format!("{} adapter {}", self.identity, adapter.digest).into();
        adapted.adapted = Some(Adapted { adapter: Arc::new(adapter), base: Arc::clone(&self.identity) });
        adapted
    }

    /// Opens a model's files and prepares its loading to those of the `devices` that the declaration names. Reads every byte
    /// of the weights, for the digest; where the files are those of `previous`, by their stamps, nothing
    /// is read and the same model is given again.
    pub fn open(
        declaration: &Declaration,
        located: LocatedFiles,
        devices: &Arc<[ComputeDevice]>,
        previous: Option<Arc<Self>>,
    ) -> Result<Arc<Self>, OpenError> {
        let LocatedFiles { files, commit } = located;
        // Before anything is read: what changes from here on shows at loading.
        let stamp = files.stamp()?;
        let is_same = |previous: &Arc<Self>| previous.local.as_ref().is_some_and(|local| local.stamp == stamp);
        if let Some(same) = previous.filter(is_same) {
            return Ok(same);
        }
        let read = || -> Result<_, OpenError> {
            let checkpoint = Checkpoint::open(&files)?;
            let tokenizer = open_tokenizer(&files, checkpoint.vocab_size())?;
            let digest = checkpoint.digest()?;
            Ok((checkpoint, tokenizer, open_chat_template(&files), digest))
        };
        let (checkpoint, (tokenizer, tokenizer_digest), chat, digest) = files.read_unchanged(&stamp, read)?;
        let words = checkpoint.is_masked().then(|| tokenizer.words()).transpose()?.map(Arc::new);
        let places: Vec<&ComputeDevice> =
            declaration.devices.iter().filter_map(|&device| devices.get(device)).collect();
        let on_cpu = places.iter().all(|device| device.device.is_cpu());
        let dtype = precision::choose(declaration.dtype, on_cpu, &checkpoint)?;
        let device = places.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(",");
        let forms: Vec<Form> =
            places.iter().map(|device| checkpoint.form(dtype, &device.device)).collect::<Result<_, _>>()?;
        let paths: Vec<_> = forms.iter().map(|&form| precision::path(form, dtype).name()).collect();
        let hardware: Vec<String> = places.iter().map(|device| hardware(device)).collect();
        // Where replicas run in several forms, the one that takes most.
        let form =
            forms.iter().copied().find(|form| !form.is_fused()).or(forms.first().copied()).unwrap_or(Form::Plain);
        let threads = places.iter().map(|device| device.threads).max().unwrap_or(1);
        let activation_bytes = |layers, workload| checkpoint.activation_bytes(form, dtype, layers, workload, threads);
        let weight_bytes = |layers| checkpoint.weight_bytes(form, dtype, layers);
        let memory = places.iter().map(|device| device.memory).min().unwrap_or(0);
        let fits = |layers| {
            let activation = activation_bytes(layers, Workload::OneText)(1);
            weight_bytes(layers).saturating_add(activation) <= memory
        };
        let refusal = places.iter().find_map(|place| checkpoint.why_not_streamed(&place.device));
        let layers = place_layers(declaration, refusal, fits)?;
        let weight_bytes = weight_bytes(layers);
        let one_text = activation_bytes(layers, Workload::OneText);
        Ok(Arc::new(Self {
            identity: format!("{digest} {} {device} {}", paths.join(","), hardware.join(",")).into(),
            info: ModelInfo {
                id: declaration.id.clone(),
                digest,
                tokenizer_digest: tokenizer_digest.clone(),
                dtype: precision::name(dtype).to_owned(),
                rounding: precision::rounding(form, dtype),
                quantization: checkpoint.quantization().map(str::to_owned),
                device,
                commit,
                backend: None,
                adapter: None,
            },
            tokenizer,
            tokenizer_digest: tokenizer_digest.into(),
            chat,
            context: checkpoint.context(),
            longest: longest(checkpoint.context(), memory.saturating_sub(weight_bytes), &*one_text),
            vocab_size: checkpoint.vocab_size(),
            ends: checkpoint.ends().clone(),
            masked: checkpoint.is_masked(),
            words,
            architecture: Some(checkpoint.model_type()),
            layers: Some(layers),
            weight_bytes,
            activation_bytes: activation_bytes(layers, Workload::Batch),
            load: loader(files.clone(), stamp.clone(), dtype, layers, Arc::clone(devices)),
            devices: declaration.devices.clone(),
            served: None,
            local: Some(LocalModel {
                place: places.first().map(|&place| place.clone()).ok_or_else(no_place)?,
                files,
                stamp,
            }),
            adapted: None,
        }))
    }
}

/// Chooses where the layers of a model are. `refusal` says why they cannot be streamed, and `fits` whether the model fits in the
/// memory of its devices.
fn place_layers(
    declaration: &Declaration,
    refusal: Option<String>,
    fits: impl Fn(LayerPlacement) -> bool,
) -> Result<LayerPlacement, OpenError> {
    match (declaration.layers, refusal) {
        (LayersChoice::Stream, Some(reason)) => Err(OpenError::Layers(reason)),
        (LayersChoice::Stream, None) => Ok(LayerPlacement::Streamed),
        (LayersChoice::Auto, None) if !fits(LayerPlacement::Resident) && fits(LayerPlacement::Streamed) => {
            let model = &declaration.id;
            tracing::warn!(model, "the model does not fit in memory, so every forward pass reads its layers from disk");
            Ok(LayerPlacement::Streamed)
        }
        (LayersChoice::Auto | LayersChoice::Resident, _) => Ok(LayerPlacement::Resident),
    }
}

fn no_place() -> ModelError {
    ModelError::Device("the model has no device".to_owned())
}

/// Returns the hardware that the numbers depend on: statistics on disk may have come from another machine.
fn hardware(device: &ComputeDevice) -> String {
    if device.device.is_cpu() { instructions().to_owned() } else { device.hardware() }
}

/// More tokens than any text has that a request may hold.
pub(super) const MOST_TOKENS: usize = 1 << 32;

/// Returns the maximum number of tokens of a text within a context and, by estimate, within the room beside the weights. A model
/// that has no room at all has no such limit: its loading says what it lacks.
fn longest(context: Option<usize>, room: u64, activation_bytes: &dyn Fn(usize) -> u64) -> usize {
    let context = context.unwrap_or(MOST_TOKENS);
    if activation_bytes(1) > room { context } else { largest_batch(activation_bytes, room, context) }
}

/// Returns the bytes that models with these weights and activations take together: all of the weights, and one batch of `tokens`
/// tokens of the model that takes most.
pub(crate) fn working_bytes<'a>(
    models: impl Iterator<Item = (u64, &'a (dyn Fn(usize) -> u64 + 'a))>,
    tokens: usize,
) -> u64 {
    let (weights, activation) = models.fold((0_u64, 0), |(weights, activation), (bytes, of_batch)| {
        (weights.saturating_add(bytes), activation.max(of_batch(tokens)))
    });
    weights.saturating_add(activation)
}

/// The largest number of tokens, of at most `most` and at least one, whose activations fit in `room` bytes.
pub(crate) fn largest_batch(activation: &dyn Fn(usize) -> u64, room: u64, most: usize) -> usize {
    if activation(most) <= room {
        return most.max(1);
    }
    let (mut fits, mut too_much) = (1, most.max(1));
    while too_much - fits > 1 {
        let middle = fits + (too_much - fits) / 2;
        if activation(middle) <= room { fits = middle } else { too_much = middle }
    }
    fits
}

/// The tokenizer and its digest: that of `tokenizer.json`, or of the files that stand for it.
pub(super) fn open_tokenizer(files: &ModelFiles, vocab: usize) -> Result<(Tokenizer, String), OpenError> {
    let (tokenizer, from) = tokenizer::from_files(|name| files.find(name).map_err(OpenError::Model))?;
    let bound = tokenizer.id_bound();
    if bound > vocab {
        let reason = format!("gives ids up to {}, but the model has {vocab} outputs", bound - 1);
        return Err(files.error(from.first().map_or("", |(name, _)| name), reason).into());
    }
    let digest = match from.as_slice() {
        [(_, json)] => digest(json),
        parts => joint_digest(&mut parts.iter().map(|(name, bytes)| (*name, &**bytes)).collect::<Vec<_>>()),
    };
    Ok((tokenizer, digest))
}

/// Opens the files anew at every load: an unloaded model holds no map of its weights, and a loaded one only copies. Before and
/// after that they must be those whose digest the answers name.
fn loader(
    files: ModelFiles,
    stamp: Stamp,
    dtype: DType,
    layers: LayerPlacement,
    devices: Arc<[ComputeDevice]>,
) -> Loader {
    Arc::new(move |place| {
        let device = devices.get(place).ok_or_else(|| ModelError::Device(format!("there is no device {place}")))?;
        let load = || {
            let (checkpoint, device) = (Checkpoint::open(&files)?, &device.device);
            match layers {
                LayerPlacement::Resident => checkpoint.load(dtype, device),
                LayerPlacement::Streamed => {
                    let form = checkpoint.form(dtype, device)?;
                    checkpoint.stream(form, dtype, device, files.clone(), stamp.clone())
                }
            }
        };
        let loaded = files.read_unchanged(&stamp, load)?;
        // Frees what loading took for a while, to widen and to reorder.
        device.trim();
        Ok(loaded)
    })
}
