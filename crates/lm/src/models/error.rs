//! The errors of models.

use super::cuda::GpuFault;
use std::time::Duration;

/// The errors of opening, loading and running a model.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// A file is missing or cannot be read.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
    /// `config.json` lacks a key or contains an unsupported value.
    #[error("config.json: key `{key}`: {reason}")]
    Config { key: String, reason: String },
    /// A tensor is missing, or its shape or type does not match the configuration.
    #[error("tensor `{name}`: {reason}")]
    Tensor { name: String, reason: String },
    /// The device does not have enough memory for this batch; a smaller one may fit.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// The device failed and must not be used any further.
    #[error("device: {0}")]
    Device(String),
    /// The model runs elsewhere and gave no answer. The same batch may run later, or on another of its servers.
    #[error("{reason}")]
    Unavailable {
        reason: String,
        /// True if the server had the batch, which may then be the cause.
        had_batch: bool,
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
    },
    /// Whoever watches the forward pass has ended it.
    #[error("the forward pass was cancelled")]
    Cancelled,
    /// The model runs elsewhere, and what was asked for needs its weights.
    #[error("the model is served elsewhere, and its weights are not here")]
    NoWeights,
    /// The forward pass failed, while others may succeed: invalid input, an operation that the device does not have, or a
    /// call of a GPU's library that failed. Where that broke the device, the next call says so.
    #[error("forward pass: {0}")]
    Forward(String),
}

impl ModelError {
    /// For models of a kind that takes no adapters.
    pub fn takes_no_adapters() -> Self {
        Self::Forward("this kind of model takes no adapters".into())
    }

    /// For models of a kind that continues no texts.
    pub fn continues_no_texts() -> Self {
        Self::Forward("this kind of model continues no texts".into())
    }
}

impl From<candle_core::Error> for ModelError {
    /// By what a GPU says went wrong: a mismatch of shapes or types, or a kernel that is missing, fails this pass alone.
    fn from(error: candle_core::Error) -> Self {
        let text = error.to_string();
        match GpuFault::in_message(&text) {
            Some(GpuFault::Lost) => Self::Device(text),
            Some(GpuFault::OutOfMemory) => Self::OutOfMemory(text),
            Some(GpuFault::Failed) | None => Self::Forward(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// candle's errors of a GPU hold those of cudarc, which need its libraries, so their messages stand in for them.
    #[test]
    fn only_what_breaks_a_device_loses_it() {
        let meaning = |message: &str| {
            let driver = || std::io::Error::other(message.to_owned());
            let wrapped = [
                candle_core::Error::Cuda(Box::new(driver())),
                candle_core::Error::Cuda(Box::new(driver())).bt(),
                candle_core::Error::wrap(driver()),
                candle_core::Error::Msg(message.to_owned()),
            ];
            let kinds: Vec<&str> = wrapped.into_iter().map(|error| kind(&error.into())).collect();
            assert!(kinds.windows(2).all(|pair| pair[0] == pair[1]), "{message}: {kinds:?}");
            kinds[0]
        };
        assert_eq!(meaning("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")"), "lost");
        assert_eq!(meaning("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")"), "memory");
        assert_eq!(meaning("CUBLAS_STATUS_ALLOC_FAILED"), "memory");
        assert_eq!(meaning("DriverError(CUDA_ERROR_INVALID_VALUE, \"invalid argument\")"), "failed");
        assert_eq!(meaning("CUBLAS_STATUS_NOT_SUPPORTED"), "failed");
        assert_eq!(meaning("unsupported dtype U8 for gelu"), "failed");
    }

    fn kind(error: &ModelError) -> &'static str {
        match error {
            ModelError::Device(_) => "lost",
            ModelError::OutOfMemory(_) => "memory",
            ModelError::Forward(_) => "failed",
            _ => "other",
        }
    }
}
