//! Where a model gets its tensors, and the operations that are built from them.

use super::arch::{Arch, NormKind};
use super::error::ModelError;
use super::ops::{Form, Linear, Norm, Weight};
use candle_core::Tensor;
use std::sync::Arc;

/// Provides a model's tensors: called with a canonical name and the shape that the architecture requires.
///
/// Canonical names are `embedding.weight`, `positions.weight`, `project_in.weight`, `project_out.weight`,
/// `layers.N.{attention_norm,attention_branch_norm,mlp_norm,mlp_branch_norm,query_norm,key_norm}.{weight,bias}`,
/// `layers.N.{qkv,attention_out,mlp_up,mlp_down}.{weight,bias}`, `final_norm.{weight,bias}` and `head.{weight,bias}`.
/// Projections are `[out, in]`; the rows of `qkv` are all queries (head by head), then all keys, then all values; the
/// rows of a gated `mlp_up` are the gate and then its factor.
pub type TensorSource<'a> = &'a mut dyn FnMut(&str, &[usize]) -> Result<Tensor, ModelError>;

/// The embedding, and the weights of the head if the two are tied; only then are they packed for products. They are the same
/// but where packing does not keep the weights of an embedding.
pub fn embedding(
    tied: bool,
    shape: &[usize],
    form: Form,
    source: TensorSource<'_>,
) -> Result<(Arc<Weight>, Option<Arc<Weight>>), ModelError> {
    let tensor = source("embedding.weight", shape)?;
    if !tied {
        return Ok((Weight::Plain(tensor).into(), None));
    }
    if !Weight::keeps_weights(&tensor, form) {
        let head = Weight::new(tensor.clone(), form)?;
        return Ok((Weight::Plain(tensor).into(), Some(head.into())));
    }
    let weight = Arc::new(Weight::new(tensor, form)?);
    Ok((Arc::clone(&weight), Some(weight)))
}

/// A norm over the hidden size.
pub fn norm(arch: &Arch, name: &str, source: TensorSource<'_>) -> Result<Norm, ModelError> {
    let shape = [arch.sizes.hidden];
    let weight = source(&format!("{name}.weight"), &shape)?;
    let bias = match arch.norm {
        NormKind::Layer => Some(source(&format!("{name}.bias"), &shape)?),
        NormKind::Rms => None,
    };
    Ok(Norm { weight, bias, kind: arch.norm, eps: arch.norm_eps })
}

/// A projection `[out, in]`.
pub fn linear(
    name: &str,
    shape: [usize; 2],
    bias: bool,
    form: Form,
    source: TensorSource<'_>,
) -> Result<Linear, ModelError> {
    let weight = Weight::new(source(&format!("{name}.weight"), &shape)?, form)?;
    let bias = bias.then(|| source(&format!("{name}.bias"), &shape[..1])).transpose()?;
    Ok(Linear { weight, bias })
}
