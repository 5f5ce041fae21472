//! A model whose files are open: what is known of it before a weight is loaded, and how it is loaded.

use super::origin::{Found, OpenError};
use crate::config::Dtype;
use crate::engine::ModelSource;
use crate::models::checkpoint::Checkpoint;
use crate::models::device::ComputeDevice;
use crate::models::files::{ModelFiles, Stamp, digest, joint_digest};
use crate::models::footprint::Workload;
use crate::models::kernels::gemm::instructions;
use crate::models::ops::Form;
use crate::models::{ModelError, precision};
use crate::tokenizer::{self, Tokenizer, Words};
use candle_core::DType;
use std::sync::Arc;

/// A configured model whose files are open.
pub struct Model {
    pub id: String,
    /// All that its numbers depend on.
    pub identity: Arc<str>,
    /// SHA-256 over configuration and weights.
    pub digest: String,
    pub tokenizer_digest: Arc<str>,
    pub tokenizer: Tokenizer,
    /// The most tokens of a text; none where there is no limit.
    pub context: Option<usize>,
    /// The most tokens of a text that can run: its context, or less where the device has no memory for more.
    pub longest: usize,
    /// Outputs of the head.
    pub vocab_size: usize,
    /// Whether it fills gaps of a text instead of continuing it: then it scores nothing, and serves to make neighbours.
    pub masked: bool,
    /// What the tokenizer of a masked model says about words.
    pub words: Option<Arc<Words>>,
    /// Value of `model_type` in the configuration.
    pub architecture: &'static str,
    /// The type it computes in.
    pub dtype: &'static str,
    /// How far its numbers are from those in f32; none in f32.
    pub rounding: Option<precision::Rounding>,
    /// Where it runs: `cpu`, `cuda:0` or, with replicas, all of them.
    pub device: String,
    /// Bytes of the weights once loaded.
    pub weight_bytes: u64,
    /// The commit of a repository on the Hub.
    pub commit: Option<String>,
}

impl Model {
    /// Opens a model's files and prepares its loading to those of the `devices` that `places` index. Reads every byte of
    /// the weights, for the digest.
    ///
    /// # Errors
    /// [`OpenError`] naming the file, key or tensor at fault.
    pub fn open(
        id: &str,
        found: Found,
        wanted: Dtype,
        devices: &Arc<[ComputeDevice]>,
        places: &[usize],
    ) -> Result<(Self, ModelSource), OpenError> {
        let Found { files, commit } = found;
        // Before anything is read: what changes from here on shows at loading.
        let stamp = files.stamp()?;
        let checkpoint = Checkpoint::open(&files)?;
        let (tokenizer, tokenizer_digest) = open_tokenizer(&files, checkpoint.vocab_size())?;
        let words = checkpoint.is_masked().then(|| tokenizer.words()).transpose()?.map(Arc::new);
        let own = || places.iter().filter_map(|&place| devices.get(place));
        let on_cpu = own().all(|device| device.device.is_cpu());
        let dtype = precision::choose(wanted, on_cpu, &checkpoint)?;
        let digest = checkpoint.digest();
        let device = own().map(|device| device.name.as_str()).collect::<Vec<_>>().join(",");
        let forms: Vec<Form> = own().map(|device| checkpoint.form(dtype, &device.device)).collect();
        let paths: Vec<_> = forms.iter().map(|&form| precision::path(form, dtype)).collect();
        // Statistics on disk may have come from another machine.
        let of_a_device = |device: &ComputeDevice| match device.device.is_cpu() {
            true => instructions().to_owned(),
            false => device.hardware(),
        };
        let hardware: Vec<String> = own().map(of_a_device).collect();
        // Where replicas run in several forms, the one that takes most.
        let form =
            forms.iter().copied().find(|form| !form.is_fused()).or(forms.first().copied()).unwrap_or(Form::Plain);
        let threads = own().map(|device| device.threads).max().unwrap_or(1);
        let activation_bytes = checkpoint.activation_bytes(form, dtype, Workload::Batch, threads);
        let of_one_text = checkpoint.activation_bytes(form, dtype, Workload::OneText, threads);
        let weight_bytes = checkpoint.weight_bytes(form, dtype);
        let room = own().map(|device| device.memory.saturating_sub(weight_bytes)).min().unwrap_or(0);
        let model = Self {
            id: id.to_owned(),
            identity: format!("{digest} {} {device} {}", paths.join(","), hardware.join(",")).into(),
            digest,
            tokenizer_digest: tokenizer_digest.into(),
            tokenizer,
            context: checkpoint.context(),
            longest: longest(checkpoint.context(), room, &*of_one_text),
            vocab_size: checkpoint.vocab_size(),
            masked: checkpoint.is_masked(),
            words,
            architecture: checkpoint.model_type(),
            dtype: precision::name(dtype),
            rounding: precision::rounding(form, dtype),
            device,
            weight_bytes,
            commit,
        };
        let source = ModelSource {
            identity: Arc::clone(&model.identity),
            masked: model.masked,
            context: model.context,
            vocab_size: model.vocab_size,
            weight_bytes,
            activation_bytes,
            load: loader(files, stamp, dtype, Arc::clone(devices)),
        };
        Ok((model, source))
    }
}

/// More tokens than any text has that a request may hold.
const MOST_TOKENS: usize = 1 << 32;

/// The most tokens of a text within a context and, by estimate, within the room beside the weights. A model that has no room
/// at all has no such limit: its loading says what it lacks.
fn longest(context: Option<usize>, room: u64, activation_bytes: &dyn Fn(usize) -> u64) -> usize {
    let context = context.unwrap_or(MOST_TOKENS);
    if activation_bytes(1) > room {
        return context;
    }
    let (mut fits, mut beyond) = (1, context.saturating_add(1));
    while beyond - fits > 1 {
        let middle = fits + (beyond - fits) / 2;
        if activation_bytes(middle) <= room { fits = middle } else { beyond = middle }
    }
    fits
}

/// The tokenizer and its digest: that of `tokenizer.json`, or of the files that stand for it.
fn open_tokenizer(files: &ModelFiles, vocab: usize) -> Result<(Tokenizer, String), OpenError> {
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

/// Opens the files anew at every load: an unloaded model holds no map of its weights. They must still be those whose
/// digest the answers name.
fn loader(files: ModelFiles, stamp: Stamp, dtype: DType, devices: Arc<[ComputeDevice]>) -> crate::engine::Load {
    Arc::new(move |place| {
        if files.stamp()? != stamp {
            return Err(files.error("", "files have changed since they were opened; load the model by hand"));
        }
        let device = devices.get(place).ok_or_else(|| ModelError::Device(format!("there is no device {place}")))?;
        let loaded = Checkpoint::open(&files)?.load(dtype, &device.device)?;
        // What loading took for a while, to widen and to reorder.
        device.trim();
        Ok(loaded)
    })
}
