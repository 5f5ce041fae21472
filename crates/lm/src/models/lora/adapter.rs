//! An adapter of one base, read from its files.

use super::low_rank::{LayerAdapter, LoadedAdapter, LowRank, joined_up};
use super::peft_config::PeftConfig;
use super::target::{LayerProjection, TargetModule, select, target_modules};
use crate::models::arch::Arch;
use crate::models::error::ModelError;
use crate::models::files::{FileBytes, ModelFiles, joint_digest, joint_file_digest};
use crate::models::ops::Form;
use crate::models::storage::Storage;
use crate::models::weights::Weights;
use candle_core::{DType, Device, Tensor};
use mia::texts::TextDigest;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use strum::VariantArray;

/// The file of settings.
pub(super) const CONFIG: &str = "adapter_config.json";
/// The file of tensors.
pub(super) const TENSORS: &str = "adapter_model.safetensors";
/// The file of the texts that it was tuned on. PEFT knows no such file, and an adapter need not have one.
pub const TUNED_ON: &str = "tuned_on.json";
/// Prefix that PEFT adds to the name of every module.
pub(super) const PREFIX: &str = "base_model.model.";

/// A low-rank change of a base model, in main memory and in f32. It belongs to bases of one architecture.
#[derive(Debug)]
pub struct Adapter {
    pub config: PeftConfig,
    /// SHA-256 over settings and tensors.
    pub digest: String,
    /// Bytes of its tensors.
    pub bytes: u64,
    /// The texts that it was tuned on, as far as its files say.
    pub tuned_on: HashSet<TextDigest>,
    /// The canonical matrices, by layer and projection.
    layers: Vec<Vec<CanonicalChange>>,
}

/// The change of one projection: `[r, in]`, and `[out, r]` with the scale.
#[derive(Debug)]
struct CanonicalChange {
    projection: LayerProjection,
    down: Tensor,
    up: Tensor,
}

impl Adapter {
    /// Reads an adapter and fits it to its base; `weights` are those of the base.
    ///
    /// # Errors
    /// [`ModelError::File`] naming the file and what is missing, not supported or of another base in it;
    /// [`ModelError::Tensor`] naming a tensor that is not finite or has another shape.
    pub fn open(files: &ModelFiles, arch: &Arch, storage: &Storage, weights: &Weights) -> Result<Self, ModelError> {
        let settings = files.open(CONFIG)?;
        let config = PeftConfig::read(&settings).map_err(|reason| files.error(CONFIG, reason))?;
        let tensors = Weights::open_adapter(files)?;
        let modules = target_modules(arch, storage, weights);
        let named = NamedTensors::new(&tensors, &modules, &config)?;
        named.refuse_gaps(&modules)?;
        let layers = (0..arch.sizes.layers).map(|layer| named.layer(layer, arch, storage)).collect::<Result<_, _>>()?;
        let bytes = named.bytes();
        let mut contents: Vec<(&str, &FileBytes)> = tensors.contents().collect();
        contents.push((CONFIG, &settings));
        let tuned_on = TunedOn::read(files)?.texts.into_iter().collect();
        Ok(Self { digest: joint_file_digest(&mut contents)?, config, bytes, tuned_on, layers })
    }

    /// The changes on a device and in the form of their base.
    pub fn load(&self, form: Form, dtype: DType, device: &Device) -> Result<LoadedAdapter, ModelError> {
        // The fused form computes in f32, whatever the weights are stored in.
        let dtype = if form.is_fused() { DType::F32 } else { dtype };
        let place = |tensor: &Tensor| tensor.to_dtype(dtype)?.to_device(device);
        let layer = |changes: &Vec<CanonicalChange>| {
            let mut layer = LayerAdapter::default();
            for change in changes {
                let loaded = LowRank::new(place(&change.down)?, place(&change.up)?, form)?;
                layer.set(change.projection, loaded);
            }
            Ok(layer)
        };
        Ok(LoadedAdapter { layers: self.layers.iter().map(layer).collect::<Result<_, ModelError>>()? })
    }
}

/// The texts that an adapter was tuned on, as its files say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunedOn {
    /// Their [`cluster_digest`](mia::texts::cluster_digest)s.
    pub texts: Vec<TextDigest>,
}

impl TunedOn {
    fn read(files: &ModelFiles) -> Result<Self, ModelError> {
        let Some(content) = files.find(TUNED_ON)? else { return Ok(Self::default()) };
        serde_json::from_slice(&content).map_err(|error| files.error(TUNED_ON, error))
    }
}

/// SHA-256 of an adapter's files, by content.
pub fn adapter_digest(config: &[u8], tensors: &[u8]) -> String {
    joint_digest(&mut [(CONFIG, config), (TENSORS, tensors)])
}

/// The tensors of an adapter by the modules that they change.
struct NamedTensors<'a> {
    config: &'a PeftConfig,
    changes: Vec<ModuleChange<'a>>,
}

/// The tensors of one module: `[r, in]` and `[out, r]`.
struct ModuleChange<'a> {
    module: &'a TargetModule,
    down: Tensor,
    up: Tensor,
}

impl<'a> NamedTensors<'a> {
    fn new(tensors: &Weights, modules: &'a [TargetModule], config: &'a PeftConfig) -> Result<Self, ModelError> {
        let (mut changes, mut used) = (Vec::new(), BTreeSet::new());
        for module in modules {
            let Some(stem) = module
                .names
                .iter()
                .map(|name| format!("{PREFIX}{name}"))
                .find(|stem| [down_name(stem), up_name(stem)].iter().any(|name| tensors.shape(name).is_some()))
            else {
                continue;
            };
            let down = read(tensors, &down_name(&stem), [config.rank, module.inputs])?;
            let up = read(tensors, &up_name(&stem), [module.rows.len(), config.rank])?;
            used.extend([down_name(&stem), up_name(&stem)]);
            changes.push(ModuleChange { module, down, up });
        }
        if let Some(unknown) = tensors.names().find(|name| !used.contains(*name)) {
            let reason = "changes no projection of a layer of this base".to_owned();
            return Err(ModelError::Tensor { name: unknown.to_owned(), reason });
        }
        Ok(Self { config, changes })
    }

    /// Refuses an adapter without the tensors of a module that its settings name; those that a pattern or a list of layers
    /// chooses are not known.
    fn refuse_gaps(&self, modules: &[TargetModule]) -> Result<(), ModelError> {
        let error = |name: &str, reason: &str| ModelError::Tensor { name: name.to_owned(), reason: reason.to_owned() };
        if self.changes.is_empty() {
            return Err(error("lora_A", "the adapter has no tensors"));
        }
        if self.config.has_all_layers
            && let Ok(targets) = select(modules, &self.config.target_modules)
            && let Some(absent) =
                targets.iter().find(|target| self.changes.iter().all(|change| change.module != *target))
        {
            return Err(error(&down_name(absent.name()), "missing: `target_modules` names the module"));
        }
        Ok(())
    }

    /// The changes of a layer by projection, in canonical order.
    fn layer(&self, layer: usize, arch: &Arch, storage: &Storage) -> Result<Vec<CanonicalChange>, ModelError> {
        let of_layer = |projection: LayerProjection| {
            let belongs =
                move |change: &&ModuleChange| change.module.layer == layer && change.module.projection == projection;
            let parts: Vec<&ModuleChange> = self.changes.iter().filter(belongs).collect();
            (!parts.is_empty()).then_some((projection, parts))
        };
        let joined = |(projection, parts): (LayerProjection, Vec<&ModuleChange>)| {
            let [rows, _] = projection.shape(arch);
            let order = storage.row_order(arch, &projection.weight(layer));
            let ups: Vec<_> = parts.iter().map(|part| (part.module.rows.clone(), &part.up)).collect();
            let downs: Vec<&Tensor> = parts.iter().map(|part| &part.down).collect();
            let up = joined_up(&ups, rows, order.as_deref(), self.config.scale())?.contiguous()?;
            Ok(CanonicalChange { projection, down: Tensor::cat(&downs, 0)?, up })
        };
        LayerProjection::VARIANTS.iter().copied().filter_map(of_layer).map(joined).collect()
    }

    fn bytes(&self) -> u64 {
        let elements = |change: &ModuleChange| change.down.elem_count() + change.up.elem_count();
        self.changes.iter().map(elements).sum::<usize>() as u64 * 4
    }
}

/// The name of the matrix `[r, in]` of a module.
pub(super) fn down_name(module: &str) -> String {
    format!("{module}.lora_A.weight")
}

/// The name of the matrix `[out, r]` of a module.
pub(super) fn up_name(module: &str) -> String {
    format!("{module}.lora_B.weight")
}

/// A tensor in f32, checked.
fn read(tensors: &Weights, name: &str, shape: [usize; 2]) -> Result<Tensor, ModelError> {
    let error = |reason: String| ModelError::Tensor { name: name.to_owned(), reason };
    let stored = tensors.find(name).ok_or_else(|| error("missing".into()))?;
    if *stored.shape != shape {
        return Err(error(format!("shape {:?}, but the base and the rank require {shape:?}", stored.shape)));
    }
    let mut values = Vec::new();
    stored.widen_into(&mut values)?;
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(error(format!("element {index} is {}", values[index])));
    }
    Ok(Tensor::from_vec(values, &shape, &Device::Cpu)?)
}

/// The files of an adapter with these tensors, `[r, in]` and `[out, r]` for each module: names and contents.
pub fn save(
    config: &PeftConfig,
    transposed: bool,
    modules: &[(&TargetModule, &Tensor, &Tensor)],
) -> Result<[(&'static str, Vec<u8>); 2], ModelError> {
    let mut tensors = Vec::new();
    for (module, down, up) in modules {
        let name = format!("{PREFIX}{}", module.name());
        tensors.push((down_name(&name), down.dims().to_vec(), bytes(down)?));
        tensors.push((up_name(&name), up.dims().to_vec(), bytes(up)?));
    }
    let failed = |error: safetensors::SafeTensorError| ModelError::Forward(format!("{TENSORS}: {error}"));
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes)?;
        Ok((name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let content = safetensors::serialize(views, Some(metadata)).map_err(failed)?;
    let settings = format!("{:#}\n", config.write(transposed)).into_bytes();
    Ok([(CONFIG, settings), (TENSORS, content)])
}

/// The elements in row-major order, little-endian.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>, ModelError> {
    let values: Vec<f32> = tensor.flatten_all()?.to_vec1()?;
    Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}
