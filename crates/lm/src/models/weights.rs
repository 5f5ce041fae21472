//! The tensors on disk, opened without reading any weight: safetensors or PyTorch's own files, complete or in shards, or one
//! GGUF file.

use super::error::ModelError;
use super::files::{FileBytes, ModelFiles};
use super::gguf::{GgufFile, ROPE_DIVISORS, TensorType};
use super::torch_bin::{self, StoredTensor};
use half::{bf16, f16};
use kernels::packed::BlockFormat;
use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Elements per task that widens them.
const CHUNK: usize = 1 << 16;

/// Blocks per task that dequantises them.
const AT_ONCE: usize = 256;

/// Bytes of a tensor that are read before they are widened.
const BLOCK: usize = 16 << 20;

/// The longest header that the format allows; what a longer one is read from is no header.
const LONGEST_HEADER: usize = 100_000_000;

/// Error for a file that Git LFS has not fetched.
const POINTER: &str = "a pointer of Git LFS, not the weights; fetch them with `git lfs pull`";

/// The formats of weights, in the order in which transformers looks for them: a single file, or the index of shards.
const FORMS: [(&str, ListTensors); 4] = [
    ("model.safetensors", read_safetensors),
    ("model.safetensors.index.json", read_safetensors),
    ("pytorch_model.bin", read_torch),
    ("pytorch_model.bin.index.json", read_torch),
];

/// The formats of an adapter's tensors, in the order in which PEFT looks for them.
const ADAPTER_FORMS: [(&str, ListTensors); 2] =
    [("adapter_model.safetensors", read_safetensors), ("adapter_model.bin", read_torch)];

/// Lists the tensors of one file.
type ListTensors = fn(&[u8]) -> Result<Vec<ListedTensor>, String>;

/// A tensor that a file lists.
struct ListedTensor {
    name: String,
    kind: TensorType,
    shape: Vec<usize>,
    place: Place,
}

/// Where the elements of a tensor are in its file.
enum Place {
    /// One after the other.
    Contiguous(Range<usize>),
    Strided(StoredTensor),
}

/// The weight files of a model, and the location of each tensor in them.
pub struct Weights {
    files: Vec<(String, FileBytes)>,
    /// Each with the index of its file.
    tensors: BTreeMap<String, (usize, ListedTensor)>,
}

/// One tensor on disk.
pub struct Stored<'a> {
    pub kind: TensorType,
    pub shape: &'a [usize],
    tensor: &'a ListedTensor,
    file: &'a FileBytes,
}

impl Weights {
    /// Opens the first format that the directory contains.
    pub fn open(files: &ModelFiles) -> Result<Self, ModelError> {
        if let ModelFiles::Gguf(gguf) = files {
            return Self::read(files, vec![gguf.name.clone()], read_gguf);
        }
        for (name, read) in FORMS {
            let names = if name.ends_with(".index.json") {
                let Some(index) = files.find(name)? else { continue };
                shards(&index).map_err(|reason| files.error(name, reason))?
            } else if files.find_weights(name)?.is_some() {
                vec![name.to_owned()]
            } else {
                continue;
            };
            return Self::read(files, names, read);
        }
        let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
        Err(files.error(names[0], format!("no such file, and no other format of weights: {}", names[1..].join(", "))))
    }

    /// Opens the tensors of an adapter, in either format of PEFT.
    pub fn open_adapter(files: &ModelFiles) -> Result<Self, ModelError> {
        for (name, read) in ADAPTER_FORMS {
            if files.find_weights(name)?.is_some() {
                return Self::read(files, vec![name.to_owned()], read);
            }
        }
        Err(files.error(ADAPTER_FORMS[0].0, format!("no such file, and no {}", ADAPTER_FORMS[1].0)))
    }

    fn read(files: &ModelFiles, names: Vec<String>, read: ListTensors) -> Result<Self, ModelError> {
        let mut weights = Self { files: Vec::new(), tensors: BTreeMap::new() };
        for name in names {
            let bytes = files.open_weights(&name)?;
            let tensors = read(&bytes).map_err(|reason| files.error(&name, reason))?;
            for tensor in tensors {
                let key = tensor.name.clone();
                if let Some((other, _)) = weights.tensors.insert(key.clone(), (weights.files.len(), tensor)) {
                    let other = weights.files.get(other).map_or("the file itself", |(name, _)| name);
                    return Err(files.error(&name, format!("contains tensor `{key}`, which {other} also contains")));
                }
            }
            weights.files.push((name, bytes));
        }
        Ok(weights)
    }

    /// Has the files read past the page cache from now on, where the system does so and their tensors are read in windows.
    pub fn bypass_cache(&mut self) {
        self.files.iter_mut().for_each(|(_, file)| file.bypass_cache());
    }

    /// A tensor by its name on disk.
    pub fn find(&self, name: &str) -> Option<Stored<'_>> {
        let (file, tensor) = self.tensors.get(name)?;
        Some(Stored { kind: tensor.kind, shape: &tensor.shape, tensor, file: &self.files[*file].1 })
    }

    /// The shape of a tensor by its name on disk.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|(_, tensor)| tensor.shape.as_slice())
    }

    /// The type of a tensor by its name on disk.
    pub fn kind(&self, name: &str) -> Option<TensorType> {
        self.tensors.get(name).map(|(_, tensor)| tensor.kind)
    }

    /// The formats of the blocks of these tensors; `None` if one of them is not in blocks that the kernels multiply by.
    pub fn block_formats(&self, names: &[String]) -> Option<Vec<BlockFormat>> {
        let format = |name: &String| match self.kind(name)? {
            TensorType::Packed(format) => Some(format),
            TensorType::Plain(_) | TensorType::Blocks(_) => None,
        };
        names.iter().map(format).collect()
    }

    /// The names of all tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Names and contents of the files.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &FileBytes)> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes))
    }

    /// The type of most elements, among the tensors for which `counts` is true.
    pub fn main_kind(&self, counts: impl Fn(&str) -> bool) -> Option<TensorType> {
        let mut elements: BTreeMap<TensorType, usize> = BTreeMap::new();
        for (_, tensor) in self.tensors.values().filter(|(_, tensor)| counts(&tensor.name)) {
            *elements.entry(tensor.kind).or_default() += tensor.shape.iter().product::<usize>();
        }
        elements.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
    }
}

fn read_safetensors(file: &[u8]) -> Result<Vec<ListedTensor>, String> {
    let (header, metadata) =
        SafeTensors::read_metadata(file).map_err(|e| incomplete(file).unwrap_or_else(|| e.to_string()))?;
    // The length of the header precedes it in eight bytes.
    let start = 8 + header;
    let listed = |(name, info): (String, &safetensors::tensor::TensorInfo)| ListedTensor {
        name,
        kind: TensorType::Plain(info.dtype),
        shape: info.shape.clone(),
        place: Place::Contiguous(start + info.data_offsets.0..start + info.data_offsets.1),
    };
    Ok(metadata.tensors().into_iter().map(listed).collect())
}

/// Describes a file of safetensors that was not downloaded to its end; `None` if that is not the problem.
fn incomplete(file: &[u8]) -> Option<String> {
    if is_pointer(file) {
        return Some(POINTER.to_owned());
    }
    let cut_off = |whole: usize| {
        let said = format!("the file is cut off: {} of {whole} bytes; download it again", file.len());
        (file.len() < whole).then_some(said)
    };
    let header = usize::try_from(u64::from_le_bytes(*file.first_chunk()?)).ok()?;
    let start = header.checked_add(8).filter(|start| *start <= LONGEST_HEADER)?;
    let Some(header) = file.get(8..start) else { return cut_off(start) };
    let header: Value = serde_json::from_slice(header).ok()?;
    let ends = header.as_object()?.values().filter_map(|tensor| tensor.get("data_offsets")?.get(1)?.as_u64());
    cut_off(start.checked_add(usize::try_from(ends.max()?).ok()?)?)
}

/// Returns true if this is a Git LFS pointer, checked out in place of a large file.
fn is_pointer(file: &[u8]) -> bool {
    file.starts_with(b"version https://git-lfs")
}

fn read_torch(file: &[u8]) -> Result<Vec<ListedTensor>, String> {
    let tensors =
        torch_bin::read(file).map_err(|e| if is_pointer(file) { POINTER.to_owned() } else { e.to_string() })?;
    let listed = |tensor: StoredTensor| ListedTensor {
        name: tensor.name.clone(),
        kind: TensorType::Plain(tensor.dtype),
        shape: tensor.shape.clone(),
        place: match tensor.is_contiguous() {
            true => Place::Contiguous(tensor.data.start..tensor.data.start + tensor.bytes()),
            false => Place::Strided(tensor),
        },
    };
    Ok(tensors.into_iter().map(listed).collect())
}

/// The tensors of a GGUF file, but for the divisors of its rotary frequencies, which belong to the architecture.
fn read_gguf(file: &[u8]) -> Result<Vec<ListedTensor>, String> {
    let read = GgufFile::read(file).map_err(|e| if is_pointer(file) { POINTER.to_owned() } else { e.to_string() })?;
    let tensors = read.tensors.into_iter().filter(|tensor| tensor.name != ROPE_DIVISORS);
    let listed = tensors.map(|tensor| ListedTensor {
        name: tensor.name,
        kind: tensor.kind,
        shape: tensor.shape,
        place: Place::Contiguous(tensor.data),
    });
    Ok(listed.collect())
}

/// The files that an index lists; each must be in the same directory.
fn shards(index: &[u8]) -> Result<Vec<String>, String> {
    let index: Value = serde_json::from_slice(index).map_err(|e| e.to_string())?;
    let map = index.get("weight_map").and_then(Value::as_object).ok_or("no object `weight_map`")?;
    let mut names = BTreeSet::new();
    for (tensor, file) in map {
        let file = file.as_str().ok_or_else(|| format!("the file of tensor `{tensor}` is not a string"))?;
        if file.is_empty() || file == ".." || file.contains(['/', '\\', '\0']) {
            return Err(format!("shard `{file}` is not a file in the same directory"));
        }
        names.insert(file.to_owned());
    }
    if names.is_empty() {
        return Err("lists no shard".into());
    }
    Ok(names.into_iter().collect())
}

impl<'a> Stored<'a> {
    /// The file and the place of the elements in it; `None` if these are not one after the other.
    pub fn contiguous(&self) -> Option<(&'a FileBytes, Range<usize>)> {
        match &self.tensor.place {
            Place::Contiguous(data) => Some((self.file, data.clone())),
            Place::Strided(_) => None,
        }
    }

    /// The number of bytes of its elements.
    pub fn bytes(&self) -> usize {
        match &self.tensor.place {
            Place::Contiguous(data) => data.len(),
            Place::Strided(strided) => strided.bytes(),
        }
    }

    /// Refuses a type that no model is computed from.
    pub fn check_type(&self) -> Result<(), ModelError> {
        match self.kind {
            TensorType::Plain(Dtype::F32 | Dtype::F16 | Dtype::BF16) => Ok(()),
            TensorType::Packed(_) | TensorType::Blocks(_) => Ok(()),
            TensorType::Plain(_) => {
                let kind = self.kind.name();
                let reason = format!("type {kind} is not supported; supported types are F32, F16 and BF16");
                Err(ModelError::Tensor { name: self.tensor.name.clone(), reason })
            }
        }
    }

    /// Reads the elements in row-major order, little-endian, into `out` of [`Stored::bytes`] bytes.
    ///
    /// # Errors
    /// [`ModelError::File`] if the file cannot be read.
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), ModelError> {
        match &self.tensor.place {
            Place::Contiguous(data) => self.file.read_at(data.start, out),
            Place::Strided(strided) => {
                out.copy_from_slice(&strided.elements(&self.storage(strided)?));
                Ok(())
            }
        }
    }

    /// Appends all elements as f32, exactly.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] for an unsupported type, and those of [`Stored::read_into`].
    pub fn widen_into(&self, out: &mut Vec<f32>) -> Result<(), ModelError> {
        self.check_type()?;
        let data = match &self.tensor.place {
            Place::Contiguous(data) => data,
            Place::Strided(strided) => {
                self.widen_block(&strided.elements(&self.storage(strided)?), out);
                return Ok(());
            }
        };
        let at_once = BLOCK - BLOCK % self.kind.block().1;
        let mut buffer = vec![0; at_once.min(data.len())];
        for position in (0..data.len()).step_by(at_once) {
            let block = &mut buffer[..at_once.min(data.len() - position)];
            self.file.read_at(data.start + position, block)?;
            self.widen_block(block, out);
        }
        Ok(())
    }

    /// The bytes of a storage whose elements are in another order.
    fn storage(&self, strided: &StoredTensor) -> Result<Vec<u8>, ModelError> {
        let mut bytes = vec![0; strided.data.len()];
        self.file.read_at(strided.data.start, &mut bytes)?;
        Ok(bytes)
    }

    fn widen_block(&self, bytes: &[u8], out: &mut Vec<f32>) {
        match self.kind {
            TensorType::Plain(Dtype::F16) => widen(bytes.as_chunks().0, out, |b| f16::from_le_bytes(b).to_f32()),
            TensorType::Plain(Dtype::BF16) => widen(bytes.as_chunks().0, out, |b| bf16::from_le_bytes(b).to_f32()),
            TensorType::Plain(_) => widen(bytes.as_chunks().0, out, f32::from_le_bytes),
            TensorType::Packed(format) => self.dequantise_block(bytes, out, |b, out| format.dequantise_column(b, out)),
            TensorType::Blocks(blocks) => self.dequantise_block(bytes, out, |b, out| blocks.dequantise(b, out)),
        }
    }

    fn dequantise_block(&self, bytes: &[u8], out: &mut Vec<f32>, dequantise: impl Fn(&[u8], &mut [f32]) + Sync) {
        let (start, (elements, size)) = (out.len(), self.kind.block());
        out.resize(start + bytes.len() / size * elements, 0.0);
        let tasks = out[start..].par_chunks_mut(AT_ONCE * elements).zip(bytes.par_chunks(AT_ONCE * size));
        tasks.for_each(|(out, bytes)| dequantise(bytes, out));
    }
}

fn widen<const N: usize>(elements: &[[u8; N]], out: &mut Vec<f32>, value: impl Fn([u8; N]) -> f32 + Sync) {
    let start = out.len();
    out.resize(start + elements.len(), 0.0);
    out[start..].par_chunks_mut(CHUNK).zip(elements.par_chunks(CHUNK)).for_each(|(out, elements)| {
        out.iter_mut().zip(elements).for_each(|(out, element)| *out = value(*element));
    });
}
