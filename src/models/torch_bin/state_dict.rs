//! From the pickle's values to tensors that are known to lie within the file.

use super::archive::Archive;
use super::pickle::Pickle;
use super::value::{Id, Storage, Value, View};
use super::{StoredTensor, TorchBinError, shown, size_of_element};
use std::collections::HashSet;
use std::ops::Range;

/// Keys under which programs save a state dict that stands alone.
const WRAPPERS: [&str; 3] = ["state_dict", "model", "module"];

/// The tensors of a state dict. It must hold nothing else: what is not understood may matter.
pub fn tensors(pickle: &Pickle<'_>, archive: &Archive) -> Result<Vec<StoredTensor>, TorchBinError> {
    let mut names = HashSet::new();
    let mut tensors = Vec::new();
    for &(key, value) in state_dict(pickle)? {
        let Value::Text(name) = *pickle.value(key) else {
            return Err(fault("(top level)", format!("{} as a key", pickle.value(key).kind())));
        };
        if !names.insert(name) {
            return Err(fault(name, "the name is there twice"));
        }
        match pickle.value(value) {
            Value::Tensor(view) => {
                tensors.push(tensor(name, view, archive).map_err(|reason| fault(name, reason))?);
            }
            other => return Err(fault(name, format!("{} where only tensors are expected", other.kind()))),
        }
    }
    Ok(tensors)
}

/// The dictionary of the tensors: the whole pickle, or what stands alone under a wrapper's key.
fn state_dict<'p>(pickle: &'p Pickle<'_>) -> Result<&'p [(Id, Id)], TorchBinError> {
    let Value::Dict(top) = pickle.value(pickle.root) else {
        let kind = pickle.value(pickle.root).kind();
        return Err(fault("(top level)", format!("{kind} instead of a dictionary of tensors")));
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

fn tensor(name: &str, view: &View<'_>, archive: &Archive) -> Result<StoredTensor, String> {
    let (count, bytes) = storage(&view.storage, archive)?;
    let shape = sizes(&view.shape).ok_or_else(|| format!("shape {:?}", view.shape))?;
    let strides = sizes(&view.strides).ok_or_else(|| format!("strides {:?}", view.strides))?;
    if shape.len() != strides.len() {
        return Err(format!("shape {shape:?} has not as many dimensions as strides {strides:?}"));
    }
    let offset = usize::try_from(view.offset).map_err(|_| format!("offset {}", view.offset))?;
    let end = end(offset, &shape, &strides).filter(|&end| end <= count);
    if end.is_none() {
        return Err(format!("{shape:?} in steps of {strides:?} from {offset} leaves its storage of {count} elements"));
    }
    // A view may repeat what is stored; a few bytes could stand for any amount of memory.
    if shape.iter().try_fold(1, |n: usize, &d| n.checked_mul(d)).is_none_or(|elements| elements > count) {
        return Err(format!("{shape:?} is more than its storage of {count} elements"));
    }
    let dtype = view.storage.dtype;
    let start = bytes.start + offset * size_of_element(dtype);
    Ok(StoredTensor { name: name.to_owned(), dtype, shape, strides, data: start..bytes.end })
}

/// The elements of a storage and its bytes in the file, which agree.
fn storage(storage: &Storage<'_>, archive: &Archive) -> Result<(usize, Range<usize>), String> {
    let key = shown(storage.key);
    let bytes = archive.storages.get(storage.key).ok_or_else(|| format!("there is no zip entry `data/{key}`"))?;
    let count = usize::try_from(storage.count).ok();
    let declared = count.and_then(|count| count.checked_mul(size_of_element(storage.dtype)));
    match (count, declared) {
        (Some(count), Some(declared)) if declared == bytes.len() => Ok((count, bytes.clone())),
        _ => Err(format!(
            "storage `data/{key}` has {} bytes, which is not {} elements of {:?}",
            bytes.len(),
            storage.count,
            storage.dtype
        )),
    }
}

fn sizes(numbers: &[i64]) -> Option<Vec<usize>> {
    numbers.iter().map(|&number| usize::try_from(number).ok()).collect()
}

/// One more than the last element that a view touches; its offset where it has no elements.
fn end(offset: usize, shape: &[usize], strides: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(offset);
    }
    shape.iter().zip(strides).try_fold(offset, |at, (d, s)| at.checked_add((d - 1).checked_mul(*s)?))?.checked_add(1)
}

fn fault(name: &str, reason: impl Into<String>) -> TorchBinError {
    TorchBinError::Tensor { name: shown(name), reason: reason.into() }
}
