//! Language models on candle: from the files a publisher saved to [`TokenStats`] per scored position, or, of a masked
//! model, to what could stand at a position instead.
//!
//! `config.json` becomes an [`arch::Arch`] (plain data), the tensors of the [`checkpoint::Checkpoint`] get canonical names
//! and shapes, and one [`decoder::Decoder`] runs every family. Nothing above this layer sees a tensor.

pub mod arch;
mod assembly;
mod attention;
pub mod batch;
pub mod checkpoint;
mod config_reader;
pub mod cuda;
pub mod decoder;
pub mod demo;
pub mod device;
pub mod families;
pub mod files;
pub mod footprint;
mod json;
pub mod kernels;
mod layer;
pub mod logit_stats;
pub mod mamba;
pub mod masked;
pub mod ops;
pub mod precision;
pub mod rotary;
pub mod torch_bin;
pub mod weights;

use crate::token_stats::TokenStats;
use masked::{Blank, Filled};

/// A causal language model that is loaded and can run. It lives on the device thread that loaded it.
pub trait CausalLm {
    /// Runs the sequences as one packed batch.
    ///
    /// For a sequence of `len` ids the result has `len - 1` entries: entry `t - 1` belongs to the token at position `t`
    /// given all before it. The result for a sequence does not depend on the others in the batch.
    ///
    /// # Errors
    /// [`ModelError::OutOfMemory`] where a smaller batch may still fit, [`ModelError::Device`] where the device is lost.
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError>;
}

/// A masked language model that is loaded and can run. It lives on the device thread that loaded it.
pub trait MaskedLm {
    /// Fills every blank, each in a copy of its own of the sequence it stands in, so that no blank sees another. The
    /// result for a blank does not depend on the others in the batch.
    ///
    /// # Errors
    /// As [`CausalLm::token_stats`]; [`ModelError::Forward`] where ids or positions are outside the model's range.
    fn fill(&self, blanks: &[&Blank]) -> Result<Vec<Filled>, ModelError>;
}

/// A model in memory.
pub enum Loaded {
    Causal(Box<dyn CausalLm>),
    Masked(Box<dyn MaskedLm>),
}

impl Loaded {
    /// The model, where it is one that continues texts.
    pub fn causal(self) -> Option<Box<dyn CausalLm>> {
        match self {
            Self::Causal(model) => Some(model),
            Self::Masked(_) => None,
        }
    }
}

/// What can go wrong while a model is opened, loaded or run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// A file is missing or cannot be read.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    /// `config.json` lacks a key or holds a value that is not understood.
    #[error("config.json: key `{key}`: {reason}")]
    Config { key: String, reason: String },
    /// A tensor is missing, or its shape or type is not what the configuration asks for.
    #[error("tensor `{name}`: {reason}")]
    Tensor { name: String, reason: String },
    /// The device has no memory left for this batch; a smaller one may fit.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The device failed; it is not to be trusted afterwards.
    #[error("device: {0}")]
    Device(String),
    /// The forward pass was given what it cannot work on.
    #[error("forward pass: {0}")]
    Forward(String),
}

impl From<candle_core::Error> for ModelError {
    fn from(error: candle_core::Error) -> Self {
        let text = error.to_string();
        if is_out_of_memory(&text) {
            Self::OutOfMemory(text)
        } else if is_of_the_device(&error) {
            Self::Device(text)
        } else {
            Self::Forward(text)
        }
    }
}

/// Whether the message of an error says so. candle has no variant for it: cuBLAS and the driver name it in the message.
fn is_out_of_memory(text: &str) -> bool {
    text.contains("OUT_OF_MEMORY") || text.contains("out of memory")
}

/// Whether the error comes from a GPU and not from a shape or type that does not fit.
fn is_of_the_device(error: &candle_core::Error) -> bool {
    use candle_core::Error;
    match error {
        Error::Cuda(_) => true,
        Error::Context { inner, .. } | Error::WithPath { inner, .. } | Error::WithBacktrace { inner, .. } => {
            is_of_the_device(inner)
        }
        _ => false,
    }
}
