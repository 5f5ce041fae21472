//! The variables of a module that is tuned.

use crate::models::arch::Arch;
use crate::models::error::ModelError;
use crate::models::lora::{Dropout, LayerAdapter, LayerProjection, LoadedAdapter, LowRank, TargetModule, joined_up};
use crate::models::storage::Storage;
use candle_core::{Device, Result, Tensor, Var};
use mia::random::stream;
use rand_chacha::rand_core::Rng;
use strum::VariantArray;

/// A module, and the two matrices of its change.
pub(super) struct TunedModule {
    pub target: TargetModule,
    /// `[r, in]`
    pub down: Var,
    /// `[out, r]`
    pub up: Var,
}

impl TunedModule {
    /// The initial values as PEFT has them: `down` uniform within `1 / sqrt(in)` (Kaiming with `a = sqrt(5)`), `up` zero.
    pub fn new(target: TargetModule, rank: usize, seed: u64, device: &Device) -> std::result::Result<Self, ModelError> {
        let mut random = stream(seed, target.name());
        let bound = 1.0 / (target.inputs as f64).sqrt();
        let mut uniform = || {
            let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            (bound * (2.0 * unit - 1.0)) as f32
        };
        let down: Vec<f32> = (0..rank * target.inputs).map(|_| uniform()).collect();
        let down = Var::from_tensor(&Tensor::from_vec(down, (rank, target.inputs), device)?)?;
        let up = Var::zeros((target.rows.len(), rank), candle_core::DType::F32, device)?;
        Ok(Self { target, down, up })
    }
}

impl TunedModule {
    /// Returns true if every element is a finite number.
    pub fn is_finite(&self) -> Result<bool> {
        let sums = [&self.down, &self.up].map(|matrix| matrix.as_tensor().sqr()?.sum_all()?.to_scalar::<f32>());
        Ok(sums.into_iter().collect::<Result<Vec<f32>>>()?.iter().all(|sum| sum.is_finite()))
    }
}

/// Builds the changes of all layers, with which the decoder computes, as functions of the variables.
pub(super) fn adaptation(
    modules: &[TunedModule],
    arch: &Arch,
    storage: &Storage,
    scale: f64,
    dropout: Option<&Dropout>,
) -> Result<LoadedAdapter> {
    let mut layers = Vec::with_capacity(arch.sizes.layers);
    for layer in 0..arch.sizes.layers {
        let mut adapter = LayerAdapter::default();
        for &projection in LayerProjection::VARIANTS {
            let belongs =
                |module: &&TunedModule| module.target.layer == layer && module.target.projection == projection;
            let parts: Vec<&TunedModule> = modules.iter().filter(belongs).collect();
            if parts.is_empty() {
                continue;
            }
            let ups: Vec<_> = parts.iter().map(|part| (part.target.rows.clone(), part.up.as_tensor())).collect();
            let [rows, _] = projection.shape(arch);
            let order = storage.row_order(arch, &projection.weight(layer));
            let up = joined_up(&ups, rows, order.as_deref(), scale)?;
            let down = parts.iter().map(|part| part.down.as_tensor().clone()).collect();
            adapter.set(projection, LowRank::tuned(down, up, dropout.cloned()));
        }
        layers.push(adapter);
    }
    Ok(LoadedAdapter { layers })
}
