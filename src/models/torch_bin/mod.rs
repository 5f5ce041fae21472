//! `pytorch_model.bin`: the tensors of a file that `torch.save` wrote, read without running anything of it.
//!
//! The file is a zip with one pickle, which names the tensors, and one stored entry of raw bytes per storage. A pickle is a
//! program; this module knows the few instructions that dictionaries of tensors are made of and refuses every other by
//! name. Nothing is skipped that could change a weight. Work and memory are bounded by the size of the file.

mod archive;
mod elements;
mod globals;
mod machine;
mod pickle;
mod reader;
mod state_dict;
mod value;

#[cfg(test)]
mod tests;

use safetensors::Dtype;
use std::borrow::Cow;
use std::ops::Range;

/// What a file of before PyTorch 1.6 begins with: the pickle of torch's magic number.
const LEGACY: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// One tensor of the file: a view into its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Steps between neighbours along each dimension, in elements.
    pub strides: Vec<usize>,
    /// Bytes of the file: from the tensor's first element to the end of its storage.
    pub data: Range<usize>,
}

impl StoredTensor {
    /// The tensor's elements in row-major order, little-endian as stored; borrowed where they lie so in the file.
    /// `file` must be the file that the tensor was read from.
    pub fn elements<'f>(&self, file: &'f [u8]) -> Cow<'f, [u8]> {
        elements::row_major(&file[self.data.clone()], size_of_element(self.dtype), &self.shape, &self.strides)
    }
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TorchBinError {
    /// Written by PyTorch before 1.6 or with `_use_new_zipfile_serialization=False`.
    #[error(
        "saved in PyTorch's format of before 1.6, which is not read; convert it with transformers: load the model and call \
         `save_pretrained(DIRECTORY, safe_serialization=True)`"
    )]
    Legacy,
    /// Not what `torch.save` writes.
    #[error("not a file of PyTorch weights: {0}")]
    NotTorch(String),
    /// An entry of the zip is missing, or is not as `torch.save` writes it.
    #[error("zip entry `{name}`: {reason}")]
    Entry { name: String, reason: String },
    /// The pickle names a function or class that is not one of the few that tensors need.
    #[error("refers to `{0}`, which a file of weights has no use for; nothing of it was run")]
    Global(String),
    /// The pickle is broken, or uses what a dictionary of tensors does not need.
    #[error("data.pkl, byte {at}: {reason}")]
    Pickle { at: usize, reason: String },
    /// What is stored under a key is not a tensor, or the tensor does not lie within its storage.
    #[error("`{name}`: {reason}")]
    Tensor { name: String, reason: String },
}

/// The tensors of a file, in the file's order; no weight is touched.
///
/// # Errors
/// [`TorchBinError`] names what is wrong or not understood.
pub fn read(file: &[u8]) -> Result<Vec<StoredTensor>, TorchBinError> {
    if file.starts_with(LEGACY) {
        return Err(TorchBinError::Legacy);
    }
    let archive = archive::open(file)?;
    let pickle = pickle::load(&file[archive.pickle.clone()])?;
    state_dict::tensors(&pickle, &archive)
}

/// Bytes of one element of the types that [`globals`] knows.
fn size_of_element(dtype: Dtype) -> usize {
    dtype.bitsize() / 8
}

/// A text of the file for a message: escaped, and cut where it is long.
fn shown(text: &str) -> String {
    const MOST: usize = 120;
    let cut: String = text.chars().take(MOST).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_debug())
}
