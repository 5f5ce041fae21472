//! An entry of the table of families, and the result of reading a configuration.

use crate::models::arch::Arch;
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::mamba::MambaArch;
use crate::models::masked::Blueprint;
use crate::models::storage::Storage;

/// One model family.
pub struct Family {
    /// The value of `model_type` in `config.json`.
    pub model_type: &'static str,
    pub kind: FamilyKind,
}

/// The network of a family and the function that reads its architecture; every relevant key must be read.
pub enum FamilyKind {
    /// The configurable decoder.
    Decoder { arch: fn(&mut ConfigReader) -> Result<Arch, ModelError>, storage: Storage },
    /// A state-space model instead of attention.
    Mamba { arch: fn(&mut ConfigReader) -> Result<MambaArch, ModelError> },
    /// A masked model of candle-transformers.
    Masked { blueprint: fn(&mut ConfigReader) -> Result<Blueprint, ModelError> },
}

/// The model that a configuration describes.
pub struct ModelDescription {
    pub model_type: &'static str,
    pub network: Network,
}

/// The architecture of a model, and how its tensors are stored.
pub enum Network {
    Decoder(Arch, Storage),
    Mamba(MambaArch, Storage),
    Masked(Blueprint),
}

impl Network {
    /// The number of outputs of the head.
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Decoder(arch, _) => arch.sizes.vocab,
            Self::Mamba(arch, _) => arch.vocab_size,
            Self::Masked(blueprint) => blueprint.vocab_size(),
        }
    }

    /// The maximum number of tokens in a text; `None` if there is no limit.
    pub fn context(&self) -> Option<usize> {
        match self {
            Self::Decoder(arch, _) => Some(arch.sizes.context),
            Self::Mamba(..) => None,
            Self::Masked(blueprint) => Some(blueprint.context()),
        }
    }

    /// Returns true for a tensor that is a matrix by `Storage::is_matrix`.
    pub fn is_matrix(&self, name: &str, shape: &[usize]) -> bool {
        let is_masked = matches!(self, Self::Masked(_));
        !is_masked && shape.len() == 2 && name.ends_with(".weight") && !self.holds("positions.weight", name)
    }

    /// Returns true if a tensor on disk is the embedding of a causal model.
    pub fn is_embedding(&self, name: &str) -> bool {
        self.holds("embedding.weight", name)
    }

    /// Returns true if a causal model's head has the weights of its embedding.
    pub fn has_tied_head(&self) -> bool {
        match self {
            Self::Decoder(arch, _) => arch.head.tied,
            Self::Mamba(arch, _) => arch.tied_head,
            Self::Masked(_) => false,
        }
    }

    /// Returns true if a tensor on disk is a part of a tensor of a causal model.
    fn holds(&self, canonical: &str, name: &str) -> bool {
        match self {
            Self::Decoder(_, storage) | Self::Mamba(_, storage) => {
                storage.candidates(canonical).iter().flatten().any(|table| table == name)
            }
            Self::Masked(_) => false,
        }
    }

    /// Returns true if a tensor on disk is not part of the model.
    pub fn ignores(&self, name: &str) -> bool {
        match self {
            Self::Decoder(arch, storage) => storage.ignores(arch.head.tied, name),
            Self::Mamba(arch, storage) => storage.ignores(arch.tied_head, name),
            Self::Masked(blueprint) => blueprint.ignores(name),
        }
    }
}
