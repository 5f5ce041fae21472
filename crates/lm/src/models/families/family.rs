//! An entry of the table of families.

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

/// What a family is built from and how its architecture is read; every relevant key must be read.
pub enum FamilyKind {
    /// The configurable decoder.
    Decoder { arch: fn(&mut ConfigReader) -> Result<Arch, ModelError>, storage: Storage },
    /// A state-space model instead of attention.
    Mamba { arch: fn(&mut ConfigReader) -> Result<MambaArch, ModelError> },
    /// A masked model of candle-transformers.
    Masked { blueprint: fn(&mut ConfigReader) -> Result<Blueprint, ModelError> },
}
