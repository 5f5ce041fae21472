//! The errors of models.

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
    /// The forward pass was given invalid input.
    #[error("forward pass: {0}")]
    Forward(String),
}

impl From<candle_core::Error> for ModelError {
    fn from(error: candle_core::Error) -> Self {
        let text = error.to_string();
        if is_out_of_memory(&text) {
            Self::OutOfMemory(text)
        } else if is_device_error(&error) {
            Self::Device(text)
        } else {
            Self::Forward(text)
        }
    }
}

/// Whether the message of an error reports that. candle has no variant for it: cuBLAS and the driver state it in the
/// message.
pub(super) fn is_out_of_memory(text: &str) -> bool {
    text.contains("OUT_OF_MEMORY") || text.contains("out of memory")
}

/// Whether the error comes from a GPU, rather than from a mismatch of shapes or types.
fn is_device_error(error: &candle_core::Error) -> bool {
    use candle_core::Error;
    match error {
        Error::Cuda(_) => true,
        Error::Context { inner, .. } | Error::WithPath { inner, .. } | Error::WithBacktrace { inner, .. } => {
            is_device_error(inner)
        }
        _ => false,
    }
}
