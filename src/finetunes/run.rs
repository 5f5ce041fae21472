//! A fine-tune from texts to the files of an adapter.

use super::error::FinetuneError;
use super::request::{FEWEST_TEXTS, FinetuneRequest};
use crate::pool::Origin;
use candle_core::Device;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::lora::{TUNED_ON, TunedOn, adapter_digest};
use lm::models::tuning::{StepReport, Tuner, tuning_bytes};
use lm::tokenizer::{self, Tokenizer};
use mia::texts::cluster_digest;
use std::ops::ControlFlow;

/// The model that is tuned.
#[derive(Clone, Debug)]
pub struct TuningBase {
    pub files: ModelFiles,
    /// Where they come from, by which the adapter names it.
    pub origin: Origin,
    pub device: Device,
}

/// Output of a fine-tune.
pub struct Finetuned {
    /// Names and contents of the adapter's files: those that PEFT reads, and the digests of the texts.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// SHA-256 over the files that PEFT reads.
    pub digest: String,
    /// Result of every step.
    pub steps: Vec<StepReport>,
}

/// Observer of a fine-tune, which may end it.
pub trait TuningObserver {
    /// Is called before each part of a step, and may take its time.
    fn before_part(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called after each of `steps` steps.
    fn after_step(&mut self, step: &StepReport, steps: usize);
}

/// Tunes an adapter of the model on the texts.
pub fn run(
    request: &FinetuneRequest,
    base: &TuningBase,
    texts: &[impl AsRef<str>],
    observer: &mut impl TuningObserver,
) -> Result<Finetuned, FinetuneError> {
    let faults = request.faults();
    if !faults.is_empty() {
        return Err(FinetuneError::Settings(faults));
    }
    if texts.len() < FEWEST_TEXTS {
        return Err(FinetuneError::TooFew { found: texts.len(), fewest: FEWEST_TEXTS });
    }
    let files = &base.files;
    let stamp = files.stamp()?;
    let mut tuner = files.read_unchanged(&stamp, || {
        let (tokenizer, _) = tokenizer::from_files(|name| files.find(name).map_err(FinetuneError::Model))?;
        let ids = token_ids(&tokenizer, texts)?;
        let tuner = Tuner::new(&Checkpoint::open(files)?, &base.device, &request.tuning(&base.origin), ids);
        tuner.map_err(FinetuneError::from)
    })?;
    let mut steps = Vec::with_capacity(tuner.steps());
    while let Some(step) = tuner.step(&mut || observer.before_part())? {
        steps.push(step);
        observer.after_step(&step, tuner.steps());
    }
    let [(config, settings), (tensors, content)] = tuner.files()?;
    let digest = adapter_digest(&settings, &content);
    let files = vec![(config, settings), (tensors, content), (TUNED_ON, tuned_on(texts)?)];
    Ok(Finetuned { files, digest, steps })
}

/// Bytes of the device's memory that the fine-tune takes, by estimate.
///
/// # Errors
/// Where the files of the model cannot be used.
pub fn memory(request: &FinetuneRequest, base: &TuningBase) -> Result<u64, FinetuneError> {
    let checkpoint = Checkpoint::open(&base.files)?;
    Ok(tuning_bytes(&checkpoint, &base.device, &request.tuning(&base.origin)))
}

/// The texts in the ids of the model.
fn token_ids(tokenizer: &Tokenizer, texts: &[impl AsRef<str>]) -> Result<Vec<Vec<u32>>, FinetuneError> {
    let encoded = texts.iter().enumerate().map(|(index, text)| {
        let encoded = tokenizer.encode(text.as_ref()).map_err(|error| FinetuneError::Tokenizer { index, error })?;
        match encoded.ids.len() {
            tokens @ 0..=1 => Err(FinetuneError::TooShort { index, tokens }),
            _ => Ok(encoded.ids.to_vec()),
        }
    });
    encoded.collect()
}

/// The file that says which texts an adapter was tuned on, each once and in the order of their digests.
fn tuned_on(texts: &[impl AsRef<str>]) -> Result<Vec<u8>, FinetuneError> {
    let mut digests: Vec<_> = texts.iter().map(|text| cluster_digest(text.as_ref())).collect();
    digests.sort_unstable();
    digests.dedup();
    serde_json::to_vec(&TunedOn { texts: digests }).map_err(|error| FinetuneError::Unwritable(error.to_string()))
}
