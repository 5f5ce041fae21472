//! The head of a model.

use crate::models::ops::{Weight, soft_cap};
use candle_core::{DType, Result, Tensor};
use std::sync::Arc;

/// The projection to the vocabulary.
pub struct Head {
    /// `[vocab, hidden]`
    pub weight: Arc<Weight>,
    /// `[vocab]`
    pub bias: Option<Tensor>,
    /// Logits x become `cap tanh(x / cap)`.
    pub soft_cap: Option<f64>,
}

impl Head {
    /// Complete logits `[rows, vocab]`, differentiable.
    pub(in crate::models) fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        logits(hidden, self.weight.tensor()?, self.bias.as_ref(), self.soft_cap)
    }
}

/// `hidden weight^T + bias`, capped, in f32, or in f64 if the model itself computes in f64.
pub fn logits(hidden: &Tensor, weight: &Tensor, bias: Option<&Tensor>, cap: Option<f64>) -> Result<Tensor> {
    let dtype = if hidden.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let product = hidden.matmul(&weight.t()?)?.to_dtype(dtype)?;
    let logits = bias.map_or(Ok(product.clone()), |b| product.broadcast_add(&b.to_dtype(dtype)?))?;
    cap.map_or(Ok(logits.clone()), |cap| soft_cap(&logits, cap))
}
