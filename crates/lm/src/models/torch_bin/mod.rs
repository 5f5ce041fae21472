//! `pytorch_model.bin`: reads the tensors of a file written by `torch.save` without executing anything in it.
//!
//! The file is a zip archive with one pickle, which names the tensors, and one uncompressed entry of raw bytes per
//! storage. A pickle is a program; this module interprets the few instructions that dictionaries of tensors consist of
//! and refuses every other one by name. Nothing that could change a weight is skipped. Work and memory are bounded by
//! the size of the file.

mod archive;
mod error;
mod machine;
mod pickle;
mod state_dict;
mod value;

#[cfg(test)]
mod tests;

pub use error::{TorchBinError, escaped};
pub use state_dict::StoredTensor;

/// The beginning of files written before PyTorch 1.6: the pickle of torch's magic number.
const LEGACY: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// The tensors of a file, in the file's order; no weight is read.
pub fn read(file: &[u8]) -> Result<Vec<StoredTensor>, TorchBinError> {
    if file.starts_with(LEGACY) {
        return Err(TorchBinError::Legacy);
    }
    let archive = archive::open(file)?;
    let pickle = pickle::load(&file[archive.pickle.clone()])?;
    state_dict::tensors(&pickle, &archive)
}
