//! One layer of the decoder: attention and MLP around the residual stream.

use super::ModelError;
use super::arch::{Arch, NormKind, QueryKeyNorm, Residual};
use super::attention::AttentionPlan;
use super::decoder::TensorSource;
use super::kernels::attention::Visibility;
use super::ops::{Form, Linear, Norm, QueryKeyNorms, Weight, activate, gate};
use candle_core::{Result, Tensor};

pub struct Layer {
    attention_norm: Norm,
    mlp_norm: Norm,
    /// Norms of what the branches add.
    branch_norms: Option<[Norm; 2]>,
    query_key_norms: Option<QueryKeyNorms>,
    qkv: Linear,
    attention_out: Linear,
    mlp_up: Linear,
    mlp_down: Linear,
    visibility: Visibility,
}

impl Layer {
    /// Takes the tensors of the layer at `index`.
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

    /// x `[tokens, hidden]` to the same.
    pub fn forward(&self, x: Tensor, arch: &Arch, plan: &AttentionPlan, form: Form) -> Result<Tensor> {
        match arch.residual {
            Residual::Pre => {
                let mixed = self.mixed(&self.attention_norm.forward(&x, form)?, plan, form)?;
                let x = self.attention_out.add_to(x, &mixed, form)?;
                let inner = self.inner(&self.mlp_norm.forward(&x, form)?, arch, form)?;
                self.mlp_down.add_to(x, &inner, form)
            }
            Residual::Parallel => {
                // Both before x changes, for the fused form writes into x.
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

    /// What attention gathers, before its output projection: `[tokens, heads * head_dim]`.
    fn mixed(&self, x: &Tensor, plan: &AttentionPlan, form: Form) -> Result<Tensor> {
        plan.forward(&self.qkv.forward(x, form)?, self.query_key_norms.as_ref(), self.visibility)
    }

    /// The activated inner state of the MLP, `[tokens, inner]`.
    fn inner(&self, x: &Tensor, arch: &Arch, form: Form) -> Result<Tensor> {
        let up = self.mlp_up.forward(x, form)?;
        if arch.gated { gate(arch.activation, &up, form) } else { activate(arch.activation, up, form) }
    }

    /// `x + norm(branch)`, where there are norms of branches.
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

/// A norm over the hidden size.
pub fn norm(arch: &Arch, name: &str, source: TensorSource<'_>) -> std::result::Result<Norm, ModelError> {
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
) -> std::result::Result<Linear, ModelError> {
    let weight = Weight::new(source(&format!("{name}.weight"), &shape)?, form)?;
    let bias = bias.then(|| source(&format!("{name}.bias"), &shape[..1])).transpose()?;
    Ok(Linear { weight, bias })
}
