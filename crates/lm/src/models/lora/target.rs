//! The modules of transformers that an adapter may change, and what they are in the decoder.

use crate::models::arch::Arch;
use crate::models::storage::Storage;
use crate::models::weights::Weights;
use std::ops::Range;
use strum::{EnumCount, IntoStaticStr, VariantArray};

/// A projection of a decoder's layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LayerProjection {
    /// Queries, keys and values together.
    Qkv,
    /// The output of attention.
    AttentionOut,
    /// Into the MLP; the gate first, if there is one.
    MlpUp,
    /// Out of the MLP.
    MlpDown,
}

impl LayerProjection {
    /// `[out, in]`
    pub fn shape(self, arch: &Arch) -> [usize; 2] {
        let sizes = arch.sizes;
        match self {
            Self::Qkv => [arch.qkv_width(), sizes.hidden],
            Self::AttentionOut => [sizes.hidden, sizes.queries()],
            Self::MlpUp => [arch.mlp_up_width(), sizes.hidden],
            Self::MlpDown => [sizes.hidden, sizes.inner],
        }
    }

    /// The canonical name of its weights in a layer.
    pub fn weight(self, layer: usize) -> String {
        let name: &str = self.into();
        format!("layers.{layer}.{name}.weight")
    }
}

/// A linear module of transformers within a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetModule {
    /// Its name in transformers, such as `model.layers.0.self_attn.q_proj`, then the names that files give it instead.
    pub names: Vec<String>,
    pub layer: usize,
    /// The projection that it is, or is a part of.
    pub projection: LayerProjection,
    /// Its rows among those of all modules of the projection, in the order on disk.
    pub rows: Range<usize>,
    /// Width of its input.
    pub inputs: usize,
}

impl TargetModule {
    /// Its name in transformers.
    pub fn name(&self) -> &str {
        &self.names[0]
    }

    /// The last part of its name, such as `q_proj`.
    pub fn leaf(&self) -> &str {
        self.name().rsplit('.').next().unwrap_or_default()
    }

    /// Returns true if a target names it as PEFT matches: by its whole name, or the last parts of it.
    fn matches(&self, target: &str) -> bool {
        self.names
            .iter()
            .any(|name| name.strip_suffix(target).is_some_and(|head| head.is_empty() || head.ends_with('.')))
    }
}

/// Every module that an adapter may change, layer by layer, in the order of the projections.
pub fn target_modules(arch: &Arch, storage: &Storage, weights: &Weights) -> Vec<TargetModule> {
    let layers = (0..arch.sizes.layers).flat_map(|layer| LayerProjection::VARIANTS.iter().map(move |&p| (layer, p)));
    layers.flat_map(|(layer, projection)| modules(arch, storage, weights, layer, projection)).collect()
}

/// The modules of one projection, as the weights store them.
fn modules(
    arch: &Arch,
    storage: &Storage,
    weights: &Weights,
    layer: usize,
    projection: LayerProjection,
) -> Vec<TargetModule> {
    let canonical = projection.weight(layer);
    let candidates = storage.candidates(&canonical);
    let is_stored = |parts: &Vec<String>| parts.iter().all(|name| weights.shape(name).is_some());
    let Some(stored) = candidates.iter().position(is_stored) else { return Vec::new() };
    // The same parts under every root; transformers has the first.
    let roots = storage.roots.len();
    let first = stored / roots * roots;
    let spellings = &candidates[first..first + roots];
    let [rows, inputs] = projection.shape(arch);
    let parts = spellings[0].len();
    let mut start = 0;
    let module = |(part, rows): (usize, usize)| {
        let module = |name: &str| name.trim_end_matches(".weight").to_owned();
        let names = spellings.iter().map(|names| module(&names[part])).collect();
        start += rows;
        TargetModule { names, layer, projection, rows: start - rows..start, inputs }
    };
    storage.part_rows(arch, &canonical, rows, parts).into_iter().enumerate().map(module).collect()
}

/// Modules that PEFT tunes in these families by default: the projection of queries, keys and values where it is one module,
/// else those of queries and of values.
pub fn default_targets(modules: &[TargetModule]) -> Vec<String> {
    let attention: Vec<&TargetModule> =
        modules.iter().filter(|module| module.layer == 0 && module.projection == LayerProjection::Qkv).collect();
    match attention.as_slice() {
        [query, _, value] => vec![query.leaf().to_owned(), value.leaf().to_owned()],
        parts => parts.iter().map(|module| module.leaf().to_owned()).collect(),
    }
}

/// The modules that these targets name.
pub fn select(modules: &[TargetModule], targets: &[String]) -> Result<Vec<TargetModule>, String> {
    if let Some(nothing) = targets.iter().find(|target| !modules.iter().any(|module| module.matches(target))) {
        let mut leaves: Vec<&str> = modules.iter().filter(|module| module.layer == 0).map(TargetModule::leaf).collect();
        leaves.dedup();
        return Err(format!("the model has no module `{nothing}` that can be tuned; it has {}", leaves.join(", ")));
    }
    let is_named = |module: &&TargetModule| targets.iter().any(|target| module.matches(target));
    Ok(modules.iter().filter(is_named).cloned().collect())
}
