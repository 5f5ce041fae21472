//! A model as saved: configuration, safetensors (one file or shards) and digest, opened without loading a weight.

use super::ModelError;
use super::arch::Arch;
use super::decoder::Decoder;
use super::families::{Family, read_config};
use super::files::{FileBytes, ModelFiles, joint_digest};
use super::ops::Form;
use candle_core::{Device, Tensor};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::Metadata};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The opened files of one model.
pub struct Checkpoint {
    pub arch: Arch,
    config: FileBytes,
    family: &'static Family,
    shards: Vec<Shard>,
}

struct Shard {
    name: String,
    bytes: FileBytes,
    metadata: Metadata,
    /// Where the tensors' data begins.
    data: usize,
}

impl Checkpoint {
    /// Opens the files: reads the configuration and the headers of the weights.
    ///
    /// # Errors
    /// Names the file or key that is missing or wrong.
    pub fn open(files: &ModelFiles) -> Result<Self, ModelError> {
        let config = files.open("config.json")?;
        let value: Value = serde_json::from_slice(&config).map_err(|e| files.fault("config.json", e))?;
        let object = value.as_object().ok_or_else(|| files.fault("config.json", "not a JSON object"))?;
        let (family, arch) = read_config(object)?;
        Ok(Self { arch, family, shards: open_shards(files)?, config })
    }

    /// SHA-256 over configuration and weights, see [`joint_digest`]. Reads every byte.
    pub fn digest(&self) -> String {
        let mut contents: Vec<(&str, &[u8])> = self.shards.iter().map(|s| (s.name.as_str(), &*s.bytes)).collect();
        contents.push(("config.json", &self.config));
        joint_digest(&mut contents)
    }

    /// The value of `model_type` in the configuration.
    pub fn model_type(&self) -> &'static str {
        self.family.model_type
    }

    /// Bytes of the weights once loaded as f32.
    pub fn f32_bytes(&self) -> u64 {
        let elements =
            |m: &Metadata| m.tensors().values().map(|t| t.shape.iter().product::<usize>() as u64).sum::<u64>();
        self.shards.iter().map(|s| 4 * elements(&s.metadata)).sum()
    }

    /// Loads the weights as f32 to a device, in the fastest form for inference there.
    ///
    /// # Errors
    /// As [`Checkpoint::load_in`].
    pub fn load(&self, device: &Device) -> Result<Decoder, ModelError> {
        self.load_in(Form::inference(device), device)
    }

    /// Loads the weights as f32 to a device, in a given form.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] naming a tensor that is missing, has another shape, a type that is not supported, or is no
    /// part of the model.
    pub fn load_in(&self, form: Form, device: &Device) -> Result<Decoder, ModelError> {
        let used = RefCell::new(BTreeSet::new());
        let mut source = |canonical: &str, shape: &[usize]| {
            let (name, tensor) = self.canonical(canonical, shape, device)?;
            used.borrow_mut().insert(name);
            Ok(tensor)
        };
        let decoder = Decoder::new(self.arch.clone(), form, device, &mut source)?;
        self.refuse_strangers(&used.into_inner())?;
        Ok(decoder)
    }

    /// A tensor under its canonical name, with the name it has on disk.
    fn canonical(&self, canonical: &str, shape: &[usize], device: &Device) -> Result<(String, Tensor), ModelError> {
        let names = (self.family.hub_names)(canonical);
        let found = names.iter().find_map(|name| self.find(name).map(|at| (name, at)));
        let Some((name, (shard, info))) = found else {
            return Err(ModelError::Tensor { name: names.join(" or "), reason: "missing".into() });
        };
        let fault = |reason: String| ModelError::Tensor { name: name.clone(), reason };
        if info.shape != shape {
            return Err(fault(format!("shape {:?}, but config.json asks for {shape:?}", info.shape)));
        }
        let (start, end) = info.data_offsets;
        let values = widen(info.dtype, &shard.bytes[shard.data + start..shard.data + end])
            .ok_or_else(|| fault(format!("type {:?}; supported are F32, F16 and BF16", info.dtype)))?;
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu)?;
        let tensor = (self.family.from_hub)(&self.arch, canonical, tensor)?;
        Ok((name.clone(), tensor.to_device(device)?))
    }

    fn find(&self, name: &str) -> Option<(&Shard, &safetensors::tensor::TensorInfo)> {
        self.shards.iter().find_map(|shard| shard.metadata.info(name).map(|info| (shard, info)))
    }

    /// A tensor that nothing read means that the configuration and the weights tell of different models.
    fn refuse_strangers(&self, used: &BTreeSet<String>) -> Result<(), ModelError> {
        let names = self.shards.iter().flat_map(|s| s.metadata.tensors().into_keys());
        let mut strangers: Vec<_> =
            names.filter(|name| !used.contains(name) && !(self.family.ignored)(&self.arch, name)).collect();
        strangers.sort_unstable();
        match strangers.first() {
            None => Ok(()),
            Some(name) => Err(ModelError::Tensor {
                name: name.clone(),
                reason: format!("not part of the model that config.json describes ({} such tensors)", strangers.len()),
            }),
        }
    }
}

fn open_shards(files: &ModelFiles) -> Result<Vec<Shard>, ModelError> {
    let Some(index) = files.find(INDEX)? else {
        return Ok(vec![open_shard(files, SINGLE)?]);
    };
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let index: Index = serde_json::from_slice(&index).map_err(|e| files.fault(INDEX, e))?;
    let names: BTreeSet<&str> = index.weight_map.values().map(String::as_str).collect();
    if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
        return Err(files.fault(INDEX, format!("shard `{name}` is not a file of the same directory")));
    }
    names.into_iter().map(|name| open_shard(files, name)).collect()
}

fn open_shard(files: &ModelFiles, name: &str) -> Result<Shard, ModelError> {
    let bytes = files.open(name)?;
    let (header, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| files.fault(name, e))?;
    // The header's length stands before it in eight bytes.
    Ok(Shard { name: name.to_owned(), data: 8 + header, bytes, metadata })
}

/// Little-endian elements as f32, exactly; `None` for a type that is not supported.
fn widen(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    let halves = || bytes.as_chunks::<2>().0.iter();
    match dtype {
        Dtype::F32 => Some(bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
        Dtype::F16 => Some(halves().map(|b| f16::from_le_bytes(*b).to_f32()).collect()),
        Dtype::BF16 => Some(halves().map(|b| bf16::from_le_bytes(*b).to_f32()).collect()),
        _ => None,
    }
}
