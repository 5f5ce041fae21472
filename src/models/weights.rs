//! The tensors on disk: safetensors, one file or shards, opened without reading a weight.

use super::ModelError;
use super::files::{FileBytes, ModelFiles};
use half::{bf16, f16};
use rayon::prelude::*;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Elements that a thread widens at once.
const CHUNK: usize = 1 << 16;

/// The files of weights of one model and where each tensor stands in them.
pub struct Weights {
    files: Vec<(String, FileBytes)>,
    tensors: BTreeMap<String, Entry>,
}

struct Entry {
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    /// Bytes of the file.
    data: Range<usize>,
}

/// One tensor on disk.
pub struct Stored<'a> {
    pub dtype: Dtype,
    pub shape: &'a [usize],
    bytes: &'a [u8],
}

impl Weights {
    /// Opens whichever form the directory holds, in the order in which transformers looks for them.
    ///
    /// # Errors
    /// [`ModelError::File`] naming the file that is missing, truncated or not what its name says.
    pub fn open(files: &ModelFiles) -> Result<Self, ModelError> {
        const SINGLE: &str = "model.safetensors";
        const INDEX: &str = "model.safetensors.index.json";
        let names = match (files.find(SINGLE)?, files.find(INDEX)?) {
            (Some(_), _) => vec![SINGLE.to_owned()],
            (None, Some(index)) => shards(&index).map_err(|reason| files.fault(INDEX, reason))?,
            (None, None) => return Err(files.fault(SINGLE, "no such file")),
        };
        let mut weights = Self { files: Vec::new(), tensors: BTreeMap::new() };
        for name in names {
            let bytes = files.open(&name)?;
            weights.add(name, bytes).map_err(|(name, reason)| files.fault(&name, reason))?;
        }
        Ok(weights)
    }

    fn add(&mut self, name: String, bytes: FileBytes) -> Result<(), (String, String)> {
        let (header, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| (name.clone(), e.to_string()))?;
        // The header's length stands before it in eight bytes.
        let start = 8 + header;
        for (tensor, info) in metadata.tensors() {
            let (from, to) = info.data_offsets;
            let data = start + from..start + to;
            let entry = Entry { file: self.files.len(), dtype: info.dtype, shape: info.shape.clone(), data };
            if let Some(other) = self.tensors.insert(tensor.clone(), entry) {
                let other = &self.files[other.file].0;
                return Err((name, format!("holds tensor `{tensor}`, which {other} holds as well")));
            }
        }
        self.files.push((name, bytes));
        Ok(())
    }

    /// A tensor by its name on disk.
    pub fn find(&self, name: &str) -> Option<Stored<'_>> {
        let entry = self.tensors.get(name)?;
        let bytes = &self.files[entry.file].1[entry.data.clone()];
        Some(Stored { dtype: entry.dtype, shape: &entry.shape, bytes })
    }

    /// The names of all tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Names and contents of the files.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), &**bytes))
    }

    /// The type that most elements are stored in.
    pub fn main_dtype(&self) -> Option<Dtype> {
        let mut elements: BTreeMap<Dtype, usize> = BTreeMap::new();
        for entry in self.tensors.values() {
            *elements.entry(entry.dtype).or_default() += entry.shape.iter().product::<usize>();
        }
        elements.into_iter().max_by_key(|(_, count)| *count).map(|(dtype, _)| dtype)
    }
}

/// The files that an index names; each must lie beside it.
fn shards(index: &[u8]) -> Result<Vec<String>, String> {
    let index: Value = serde_json::from_slice(index).map_err(|e| e.to_string())?;
    let map = index.get("weight_map").and_then(Value::as_object).ok_or("no object `weight_map`")?;
    let mut names = BTreeSet::new();
    for (tensor, file) in map {
        let file = file.as_str().ok_or_else(|| format!("the file of tensor `{tensor}` is not a string"))?;
        if file.is_empty() || file == ".." || file.contains(['/', '\\', '\0']) {
            return Err(format!("shard `{file}` is not a file of the same directory"));
        }
        names.insert(file.to_owned());
    }
    if names.is_empty() {
        return Err("names no shard".into());
    }
    Ok(names.into_iter().collect())
}

impl Stored<'_> {
    /// Appends all elements as f32, exactly; false for a type that is not supported.
    pub fn widen_into(&self, out: &mut Vec<f32>) -> bool {
        match self.dtype {
            Dtype::F32 => widen(self.bytes.as_chunks().0, out, f32::from_le_bytes),
            Dtype::F16 => widen(self.bytes.as_chunks().0, out, |b| f16::from_le_bytes(b).to_f32()),
            Dtype::BF16 => widen(self.bytes.as_chunks().0, out, |b| bf16::from_le_bytes(b).to_f32()),
            _ => return false,
        }
        true
    }
}

fn widen<const N: usize>(elements: &[[u8; N]], out: &mut Vec<f32>, value: impl Fn([u8; N]) -> f32 + Sync) {
    let start = out.len();
    out.resize(start + elements.len(), 0.0);
    out[start..].par_chunks_mut(CHUNK).zip(elements.par_chunks(CHUNK)).for_each(|(out, elements)| {
        out.iter_mut().zip(elements).for_each(|(out, element)| *out = value(*element));
    });
}
