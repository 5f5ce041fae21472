//! The operations of the decoder, each in three forms with the same result.
//!
//! *Fused* runs this crate's CPU kernels, for inference, and *Gpu* its GPU kernels; in f32, the latter has a twin on
//! the CPU for every operation, so that the order of its steps is tested without a GPU. *Plain* is built from candle's
//! differentiable operations and runs on every device: for training, and for inference without a kernel. candle's own
//! fused operations drop gradients silently, so the plain form uses none of them. In f16 and bf16, the plain form
//! computes norms, rotations, softmax and activations in f32.

mod attention;
mod elements;
mod form;
mod linear;
mod mlp;
mod norm;
mod weight;

#[cfg(test)]
mod tests;

pub use attention::{CausalAttention, QueryKeyNorms, Rotation};
pub use elements::{product, soft_cap, wide, with_slice};
pub use form::{Form, Multiply};
pub use linear::{Linear, add_bias};
pub use mlp::{activate, gate};
pub use norm::Norm;
pub use weight::{ProvideTensors, TensorSource, Weight, element};
