//! One layer of the decoder: attention and MLP around the residual stream.

use super::arch::{Arch, QueryKeyNorm, Residual};
use super::attention::AttentionPlan;
use super::error::ModelError;
use super::kernels::attention::Visibility;
use super::ops::{Form, Linear, Norm, QueryKeyNorms, activate, gate};
use super::source::{TensorSource, linear, norm};
use candle_core::{Result, Tensor};

/// One layer of a decoder.
pub struct DecoderLayer {
    attention_norm: Norm,
    mlp_norm: Norm,
    /// Norms of the branches' outputs.
    branch_norms: Option<[Norm; 2]>,
    query_key_norms: Option<QueryKeyNorms>,
    qkv: Linear,
    attention_out: Linear,
    mlp_up: Linear,
    mlp_down: Linear,
    visibility: Visibility,
}

impl DecoderLayer {
    /// Loads the tensors of the layer at `index`.
    pub fn new(
        arch: &Arch,
        index: usize,
        form: Form,
        source: TensorSource<'_>,
    ) -> std::result::Result<Self, ModelError> {
        let (hidden, inner, queries) = (arch.sizes.hidden, arch.sizes.inner, arch.sizes.queries());
        let biases = arch.biases;
        let name = |part: &str| format!("layers.{index}.{part}");
        let branch_norms = match arch.residual {
            Residual::Sandwich => Some([
                norm(arch, &name("attention_branch_norm"), source)?,
                norm(arch, &name("mlp_branch_norm"), source)?,
            ]),
            Residual::Pre | Residual::Parallel | Residual::Post => None,
        };
        Ok(Self {
            attention_norm: norm(arch, &name("attention_norm"), source)?,
            mlp_norm: norm(arch, &name("mlp_norm"), source)?,
            branch_norms,
            query_key_norms: query_key_norms(arch, index, source)?,
            qkv: linear(&name("qkv"), [arch.qkv_width(), hidden], biases.qkv, form, source)?,
            attention_out: linear(&name("attention_out"), [hidden, queries], biases.attention_out, form, source)?,
            mlp_up: linear(&name("mlp_up"), [arch.mlp_up_width(), hidden], biases.mlp, form, source)?,
            mlp_down: linear(&name("mlp_down"), [hidden, inner], biases.mlp, form, source)?,
            visibility: arch.attention.windows.get(index).copied().flatten().into(),
        })
    }

    /// Maps x `[tokens, hidden]` to the same shape.
    pub fn forward(&self, x: Tensor, arch: &Arch, plan: &AttentionPlan, form: Form) -> Result<Tensor> {
        match arch.residual {
            Residual::Pre => {
                let mixed = self.mixed(&self.attention_norm.forward(&x, form)?, plan, form)?;
                let x = self.attention_out.add_to(x, &mixed, form)?;
                let inner = self.inner(&self.mlp_norm.forward(&x, form)?, arch, form)?;
                self.mlp_down.add_to(x, &inner, form)
            }
            Residual::Parallel => {
                // Both before x changes, since the fused form writes into x.
                let mixed = self.mixed(&self.attention_norm.forward(&x, form)?, plan, form)?;
                let inner = self.inner(&self.mlp_norm.forward(&x, form)?, arch, form)?;
                let x = self.attention_out.add_to(x, &mixed, form)?;
                self.mlp_down.add_to(x, &inner, form)
            }
            Residual::Post => {
                let mixed = self.mixed(&x, plan, form)?;
                let x = self.attention_norm.forward(&self.attention_out.add_to(x, &mixed, form)?, form)?;
                let inner = self.inner(&x, arch, form)?;
                self.mlp_norm.forward(&self.mlp_down.add_to(x, &inner, form)?, form)
            }
            Residual::Sandwich => {
                let mixed = self.mixed(&self.attention_norm.forward(&x, form)?, plan, form)?;
                let x = self.add_normed(x, 0, &self.attention_out.forward(&mixed, form)?, form)?;
                let inner = self.inner(&self.mlp_norm.forward(&x, form)?, arch, form)?;
                self.add_normed(x, 1, &self.mlp_down.forward(&inner, form)?, form)
            }
        }
    }

    /// The result of attention before its output projection, `[tokens, heads * head_dim]`.
    fn mixed(&self, x: &Tensor, plan: &AttentionPlan, form: Form) -> Result<Tensor> {
        plan.forward(&self.qkv.forward(x, form)?, self.query_key_norms.as_ref(), self.visibility)
    }

    /// The activated inner state of the MLP, `[tokens, inner]`.
    fn inner(&self, x: &Tensor, arch: &Arch, form: Form) -> Result<Tensor> {
        let up = self.mlp_up.forward(x, form)?;
        if arch.gated { gate(arch.activation, &up, form) } else { activate(arch.activation, up, form) }
    }

    /// `x + norm(branch)`, or `x + branch` if there are no norms of branches.
    fn add_normed(&self, x: Tensor, branch: usize, y: &Tensor, form: Form) -> Result<Tensor> {
        match &self.branch_norms {
            Some(norms) => x + norms[branch].forward(y, form)?,
            None => x + y,
        }
    }
}

fn query_key_norms(
    arch: &Arch,
    index: usize,
    source: TensorSource<'_>,
) -> std::result::Result<Option<QueryKeyNorms>, ModelError> {
    let (query, key) = match arch.attention.query_key_norm {
        None => return Ok(None),
        Some(QueryKeyNorm::Head) => (arch.sizes.head_dim, arch.sizes.head_dim),
    };
    let query = source(&format!("layers.{index}.query_norm.weight"), &[query])?;
    let key = source(&format!("layers.{index}.key_norm.weight"), &[key])?;
    Ok(Some(QueryKeyNorms { query, key, eps: arch.norm_eps }))
}
