//! A fine-tune from texts to the files of an adapter.

use super::error::FinetuneError;
use super::request::{FEWEST_TEXTS, FinetuneRequest};
use crate::models::checkpoint::Checkpoint;
use crate::models::files::ModelFiles;
use crate::models::tuning::{StepReport, Tuner};
use crate::tokenizer::{self, Tokenizer};
use candle_core::Device;
use std::ops::ControlFlow;

/// What a fine-tune leaves behind.
pub struct Finetuned {
    /// Names and contents of the adapter's files, as PEFT reads them.
    pub files: [(&'static str, Vec<u8>); 2],
    /// What became of every step.
    pub steps: Vec<StepReport>,
}

/// Tunes an adapter of the model in these files on the texts. `on_step` hears of every step and of how many there are, and may
/// end the fine-tune.
///
/// # Errors
/// [`FinetuneError`]
pub fn run(
    request: &FinetuneRequest,
    base: &ModelFiles,
    device: &Device,
    texts: &[impl AsRef<str>],
    mut on_step: impl FnMut(&StepReport, usize) -> ControlFlow<()>,
) -> Result<Finetuned, FinetuneError> {
    let faults = request.faults();
    if !faults.is_empty() {
        return Err(FinetuneError::Settings(faults));
    }
    if texts.len() < FEWEST_TEXTS {
        return Err(FinetuneError::TooFew { found: texts.len(), fewest: FEWEST_TEXTS });
    }
    let (tokenizer, _) = tokenizer::from_files(|name| base.find(name).map_err(FinetuneError::Model))?;
    let ids = token_ids(&tokenizer, texts)?;
    let checkpoint = Checkpoint::open(base)?;
    let mut tuner = Tuner::new(&checkpoint, device, &request.tuning(), ids)?;
    let mut steps = Vec::with_capacity(tuner.steps());
    while let Some(step) = tuner.step(&mut || ())? {
        steps.push(step);
        if on_step(&step, tuner.steps()).is_break() {
            return Err(FinetuneError::Cancelled);
        }
    }
    Ok(Finetuned { files: tuner.files()?, steps })
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
