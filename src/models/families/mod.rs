//! The table of model families: what `config.json` and the tensors on disk mean, for each `model_type`.

pub mod gpt_neox;

use super::ModelError;
use super::arch::Arch;
use super::config_reader::ConfigReader;
use candle_core::{Result, Tensor};
use serde_json::{Map, Value};

/// How one family is stored.
pub struct Family {
    /// The value of `model_type` in `config.json`.
    pub model_type: &'static str,
    /// Reads the architecture; every key that matters must be read.
    arch: fn(&mut ConfigReader) -> std::result::Result<Arch, ModelError>,
    /// The names that a canonical tensor may have on disk, first choice first.
    pub hub_names: fn(&str) -> Vec<String>,
    /// Brings a tensor, as stored, into its canonical shape and order.
    pub from_hub: fn(&Arch, &str, Tensor) -> Result<Tensor>,
    /// Whether a tensor on disk is no part of the model.
    pub ignored: fn(&Arch, &str) -> bool,
}

const FAMILIES: &[Family] = &[gpt_neox::FAMILY];

/// Finds the family of a configuration and reads its architecture.
///
/// # Errors
/// [`ModelError::Config`] naming the key that is missing, wrong or not understood.
pub fn read_config(config: &Map<String, Value>) -> std::result::Result<(&'static Family, Arch), ModelError> {
    let mut reader = ConfigReader::new(config);
    let model_type = reader.text_or("model_type", "")?;
    let Some(family) = FAMILIES.iter().find(|f| f.model_type == model_type) else {
        let known: Vec<_> = FAMILIES.iter().map(|f| f.model_type).collect();
        return Err(
            reader.fault("model_type", format!("`{model_type}` is not supported; supported: {}", known.join(", ")))
        );
    };
    let arch = (family.arch)(&mut reader)?;
    reader.finish()?;
    Ok((family, arch))
}
