//! The table of model families: what `config.json` and the tensors on disk mean, for each `model_type`.

mod gpt2;
mod gpt_neo;
pub mod gpt_neox;
mod gptj;
mod llama;
mod mamba;
mod opt;
mod rope;
mod shape;
mod storage;
mod windows;

pub use storage::Storage;

use super::ModelError;
use super::arch::Arch;
use super::config_reader::ConfigReader;
use super::mamba::MambaArch;
use super::masked;
use serde_json::{Map, Value};

/// One family.
pub struct Family {
    /// The value of `model_type` in `config.json`.
    pub model_type: &'static str,
    pub kind: Kind,
}

/// What a family is built from, and how its architecture is read; every key that matters must be read.
pub enum Kind {
    /// The configurable decoder.
    Decoder { arch: fn(&mut ConfigReader) -> Result<Arch, ModelError>, storage: Storage },
    /// A state instead of attention.
    Mamba { arch: fn(&mut ConfigReader) -> Result<MambaArch, ModelError> },
    /// A masked model of candle-transformers.
    Masked { blueprint: fn(&mut ConfigReader) -> Result<masked::Blueprint, ModelError> },
}

const FAMILIES: &[&[Family]] = &[
    &[gpt_neox::FAMILY],
    llama::FAMILIES,
    &[opt::FAMILY, gptj::FAMILY, gpt_neo::FAMILY, gpt2::FAMILY],
    mamba::FAMILIES,
    &[
        Family { model_type: "bert", kind: Kind::Masked { blueprint: masked::bert::blueprint } },
        Family { model_type: "modernbert", kind: Kind::Masked { blueprint: masked::modernbert::blueprint } },
    ],
];

/// What a configuration describes.
pub struct Described {
    /// The value of `model_type`.
    pub model_type: &'static str,
    pub network: Network,
}

/// The architecture of a model, and how its tensors are stored.
pub enum Network {
    Decoder(Arch, Storage),
    Mamba(MambaArch, Storage),
    Masked(masked::Blueprint),
}

impl Network {
    /// Outputs of the head.
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Decoder(arch, _) => arch.sizes.vocab,
            Self::Mamba(arch, _) => arch.vocab_size,
            Self::Masked(blueprint) => blueprint.vocab_size(),
        }
    }

    /// The most tokens of a text; none where there is no limit.
    pub fn context(&self) -> Option<usize> {
        match self {
            Self::Decoder(arch, _) => Some(arch.sizes.context),
            Self::Mamba(..) => None,
            Self::Masked(blueprint) => Some(blueprint.context()),
        }
    }

    /// Whether a tensor on disk is a matrix as [`Storage::is_matrix`] tells them apart.
    pub fn is_matrix(&self, name: &str, shape: &[usize]) -> bool {
        let positions = match self {
            Self::Decoder(_, storage) | Self::Mamba(_, storage) => storage.candidates("positions.weight"),
            Self::Masked(_) => return false,
        };
        shape.len() == 2 && name.ends_with(".weight") && !positions.iter().flatten().any(|table| table == name)
    }

    /// Whether a tensor on disk is no part of the model.
    pub fn ignores(&self, name: &str) -> bool {
        match self {
            Self::Decoder(arch, storage) => storage.ignores(arch.head.tied, name),
            Self::Mamba(arch, storage) => storage.ignores(arch.tied_head, name),
            Self::Masked(blueprint) => blueprint.ignores(name),
        }
    }
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
    let network = match family.kind {
        Kind::Decoder { arch, storage } => Network::Decoder(arch(&mut reader)?, storage),
        Kind::Mamba { arch } => Network::Mamba(arch(&mut reader)?, mamba::STORAGE),
        Kind::Masked { blueprint } => Network::Masked(blueprint(&mut reader)?),
    };
    reader.finish()?;
    Ok(Described { model_type: family.model_type, network })
}
