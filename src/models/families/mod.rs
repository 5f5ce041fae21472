//! The table of model families: what `config.json` and the tensors on disk mean, for each `model_type`.

mod gpt2;
mod gpt_neo;
pub mod gpt_neox;
mod gptj;
mod llama;
mod opt;
mod rope;
mod shape;
mod storage;
mod windows;

pub use storage::Storage;

use super::ModelError;
use super::arch::Arch;
use super::config_reader::ConfigReader;
use serde_json::{Map, Value};

/// One family.
pub struct Family {
    /// The value of `model_type` in `config.json`.
    pub model_type: &'static str,
    pub kind: Kind,
}

/// What a family is built from.
pub enum Kind {
    /// The configurable decoder.
    Decoder {
        /// Reads the architecture; every key that matters must be read.
        arch: fn(&mut ConfigReader) -> Result<Arch, ModelError>,
        storage: Storage,
    },
}

const FAMILIES: &[&[Family]] =
    &[&[gpt_neox::FAMILY], llama::FAMILIES, &[opt::FAMILY, gptj::FAMILY, gpt_neo::FAMILY, gpt2::FAMILY]];

/// What a configuration describes.
pub struct Described {
    /// The value of `model_type`.
    pub model_type: &'static str,
    pub arch: Arch,
    pub storage: Storage,
}

/// Finds the family of a configuration and reads its architecture.
///
/// # Errors
/// [`ModelError::Config`] naming the key that is missing, wrong or not understood.
pub fn read_config(config: &Map<String, Value>) -> Result<Described, ModelError> {
    let mut reader = ConfigReader::new(config);
    let model_type = reader.text_or("model_type", "")?;
    let families = || FAMILIES.iter().copied().flatten();
    let Some(family) = families().find(|f| f.model_type == model_type) else {
        let known: Vec<_> = families().map(|f| f.model_type).collect();
        return Err(
            reader.fault("model_type", format!("`{model_type}` is not supported; supported: {}", known.join(", ")))
        );
    };
    let Kind::Decoder { arch, storage } = &family.kind;
    let arch = arch(&mut reader)?;
    reader.finish()?;
    Ok(Described { model_type: family.model_type, arch, storage: *storage })
}
