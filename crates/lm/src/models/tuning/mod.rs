//! Tuning an adapter: the base stays as it is, and the matrices of a LoRA adapter learn to continue texts.
//!
//! The base is loaded in the plain form, for the fused one has no gradients. The same texts, settings and seed
//! give the same adapter, bit for bit, on one machine: the order of the texts, the initial values and the dropped inputs come
//! from seeded streams, and no sum depends on the number of threads.

mod batches;
mod loss;
mod memory;
mod schedule;
mod settings;
mod tuned_module;
mod tuner;

#[cfg(test)]
mod tests;

pub use loss::loss_gradient;
pub use memory::tuning_bytes;
pub use settings::{LoraSettings, OptimizerSettings, TuningSettings};
pub use tuner::{StepReport, Tuner, TuningError};
