//! Why a file cannot be read.

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TorchBinError {
    /// Written by PyTorch before 1.6 or with `_use_new_zipfile_serialization=False`.
    #[error(
        "saved in PyTorch's format from before 1.6, which is not supported; convert it with transformers: load the model and call \
         `save_pretrained(DIRECTORY, safe_serialization=True)`"
    )]
    Legacy,
    /// It ends before the directory of its zip, which comes last and would say how long it is.
    #[error("the file is cut off after {0} bytes; download it again")]
    CutOff(usize),
    /// Not a file written by `torch.save`.
    #[error("not a file of PyTorch weights: {0}")]
    NotTorch(String),
    /// An entry of the zip is missing, or differs from what `torch.save` writes.
    #[error("zip entry `{name}`: {reason}")]
    Entry { name: String, reason: String },
    /// The pickle refers to a function or class that tensors do not need.
    #[error("refers to `{0}`, which is not supported in a file of weights; nothing was executed")]
    Global(String),
    /// The pickle is malformed, or uses features that a dictionary of tensors does not need.
    #[error("data.pkl, byte {byte}: {reason}")]
    Pickle { byte: usize, reason: String },
    /// The value of a key is not a tensor, or the tensor exceeds its storage.
    #[error("`{name}`: {reason}")]
    Tensor { name: String, reason: String },
}

/// Text from the file for a message: escaped, and truncated if it is long.
pub fn escaped(text: &str) -> String {
    const MOST: usize = 120;
    let cut: String = text.chars().take(MOST).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_debug())
}
