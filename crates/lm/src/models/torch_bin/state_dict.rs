//! Converts the values of a pickle to tensors that are verified to be within the file.

use super::archive::Archive;
use super::error::{TorchBinError, escaped};
use super::pickle::Pickle;
use super::value::{Id, TorchStorage, TorchView, Value};
use safetensors::Dtype;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// Keys under which programs save a state dict as the only entry.
const WRAPPERS: [&str; 3] = ["state_dict", "model", "module"];

/// The tensors of a state dict. It must contain nothing else: what is not understood may matter.
pub fn tensors(pickle: &Pickle<'_>, archive: &Archive) -> Result<Vec<StoredTensor>, TorchBinError> {
    let mut names = HashSet::new();
    let mut tensors = Vec::new();
    for &(key, value) in state_dict(pickle)? {
        let Value::Text(name) = *pickle.value(key) else {
            return Err(error(
                "(top level)",
                format!("expected a string as a key, found {}", pickle.value(key).kind()),
            ));
        };
        if !names.insert(name) {
            return Err(error(name, "the name is listed twice"));
        }
        match pickle.value(value) {
            Value::Tensor(view) => {
                tensors.push(tensor(name, view, archive).map_err(|reason| error(name, reason))?);
            }
            other => return Err(error(name, format!("expected a tensor, found {}", other.kind()))),
        }
    }
    Ok(tensors)
}

/// The dictionary of the tensors: the whole pickle, or the only entry if its key is that of a wrapper.
fn state_dict<'p>(pickle: &'p Pickle<'_>) -> Result<&'p [(Id, Id)], TorchBinError> {
    let Value::Dict(top) = pickle.value(pickle.root) else {
        let kind = pickle.value(pickle.root).kind();
        return Err(error("(top level)", format!("expected a dictionary of tensors, found {kind}")));
    };
    match top.as_slice() {
        &[(key, value)] if matches!(pickle.value(key), Value::Text(name) if WRAPPERS.contains(name)) => {
            match pickle.value(value) {
                Value::Dict(inner) => Ok(inner),
                _ => Ok(top),
            }
        }
        _ => Ok(top),
    }
}

fn tensor(name: &str, view: &TorchView<'_>, archive: &Archive) -> Result<StoredTensor, String> {
    let (count, bytes) = storage(&view.storage, archive)?;
    let shape = sizes(&view.shape).ok_or_else(|| format!("shape {:?} is invalid", view.shape))?;
    let strides = sizes(&view.strides).ok_or_else(|| format!("strides {:?} are invalid", view.strides))?;
    if shape.len() != strides.len() {
        return Err(format!("shape {shape:?} and strides {strides:?} have different numbers of dimensions"));
    }
    let offset = usize::try_from(view.offset).map_err(|_| format!("offset {} is invalid", view.offset))?;
    let end = end(offset, &shape, &strides).filter(|&end| end <= count);
    if end.is_none() {
        return Err(format!(
            "shape {shape:?} with strides {strides:?} from offset {offset} exceeds its storage of {count} elements"
        ));
    }
    // A view may repeat stored elements; a few bytes could then represent any amount of memory.
    if shape.iter().try_fold(1, |n: usize, &d| n.checked_mul(d)).is_none_or(|elements| elements > count) {
        return Err(format!("shape {shape:?} has more elements than its storage of {count} elements"));
    }
    let dtype = view.storage.dtype;
    let start = bytes.start + offset * element_size(dtype);
    Ok(StoredTensor { name: name.to_owned(), dtype, shape, strides, data: start..bytes.end })
}

/// The number of elements of a storage and its bytes in the file, which must agree.
fn storage(storage: &TorchStorage<'_>, archive: &Archive) -> Result<(usize, Range<usize>), String> {
    let key = escaped(storage.key);
    let bytes = archive.storages.get(storage.key).ok_or_else(|| format!("there is no zip entry `data/{key}`"))?;
    let count = usize::try_from(storage.count).ok();
    let declared = count.and_then(|count| count.checked_mul(element_size(storage.dtype)));
    match (count, declared) {
        (Some(count), Some(declared)) if declared == bytes.len() => Ok((count, bytes.clone())),
        _ => Err(format!(
            "storage `data/{key}` has {} bytes, which does not match {} elements of {:?}",
            bytes.len(),
            storage.count,
            storage.dtype
        )),
    }
}

fn sizes(numbers: &[i64]) -> Option<Vec<usize>> {
    numbers.iter().map(|&number| usize::try_from(number).ok()).collect()
}

/// The index after the last element of a view; its offset if it has no elements.
fn end(offset: usize, shape: &[usize], strides: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(offset);
    }
    shape.iter().zip(strides).try_fold(offset, |end, (d, s)| end.checked_add((d - 1).checked_mul(*s)?))?.checked_add(1)
}

fn error(name: &str, reason: impl Into<String>) -> TorchBinError {
    TorchBinError::Tensor { name: escaped(name), reason: reason.into() }
}

/// One tensor of the file: a view of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Distance between neighbours along each dimension, in elements.
    pub strides: Vec<usize>,
    /// Byte range in the file: from the tensor's first element to the end of its storage.
    pub data: Range<usize>,
}

impl StoredTensor {
    /// Returns true if the elements are stored one after the other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.strides)
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * element_size(self.dtype)
    }

    /// The elements in row-major order, little-endian as stored, out of the bytes of the range [`StoredTensor::data`].
    pub fn elements<'d>(&self, data: &'d [u8]) -> Cow<'d, [u8]> {
        row_major(data, element_size(self.dtype), &self.shape, &self.strides)
    }
}

/// Bytes per element of the types supported by [`super::globals`].
pub fn element_size(dtype: Dtype) -> usize {
    dtype.bitsize() / 8
}

/// The elements of a strided view in row-major order. `bytes` starts with the view's first element and contains every element.
fn row_major<'b>(bytes: &'b [u8], size: usize, shape: &[usize], strides: &[usize]) -> Cow<'b, [u8]> {
    let count: usize = shape.iter().product();
    if is_contiguous(shape, strides) {
        return Cow::Borrowed(&bytes[..count * size]);
    }
    let mut gathered = Vec::with_capacity(count * size);
    let mut index = vec![0; shape.len()];
    for _ in 0..count {
        let offset: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        gathered.extend_from_slice(&bytes[offset * size..][..size]);
        advance(&mut index, shape);
    }
    Cow::Owned(gathered)
}

fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1;
    shape.contains(&0)
        || shape.iter().zip(strides).rev().all(|(&dimension, &stride)| {
            let fits = dimension == 1 || stride == step;
            step *= dimension;
            fits
        })
}

/// The next index in row-major order; the first one after the last.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (position, dimension) in index.iter_mut().zip(shape).rev() {
        *position += 1;
        if *position < *dimension {
            return;
        }
        *position = 0;
    }
}
