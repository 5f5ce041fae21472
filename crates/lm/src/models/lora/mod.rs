//! LoRA adapters (Hu et al. 2021, arXiv:2106.09685): a projection `W x` becomes `W x + (alpha / r) B (A x)` with A
//! `[r, in]` and B `[out, r]`.
//!
//! Adapters are read and written as PEFT keeps them, `adapter_config.json` and `adapter_model.safetensors`. On disk a
//! change belongs to a module of transformers, such as `q_proj`; here, modules that are one projection of the
//! [decoder](super::decoder::Decoder) become one change of it, with its rows in canonical order. So scoring costs one set
//! of weights, and each projection that an adapter changes two narrow products more.

mod adapter;
mod low_rank;
mod peft_config;
mod target;

#[cfg(test)]
mod tests;

pub use adapter::{Adapter, TUNED_ON, TunedOn, adapter_digest, save};
pub use low_rank::{Dropout, LayerAdapter, LoadedAdapter, LowRank, joined_up};
pub use peft_config::PeftConfig;
pub use target::{LayerProjection, TargetModule, default_targets, select, target_modules};
