//! One layer of the decoder: attention and MLP around the residual stream.

use super::arch::{Arch, QueryKeyNorm, Residual};
use super::attention::AttentionPlan;
use super::error::ModelError;
use super::lora::{LayerAdapter, LayerProjection};
use super::ops::{Form, Linear, Norm, QueryKeyNorms, TensorSource, activate, gate};
use candle_core::{Result, Tensor};
use kernels::attention::Visibility;
use kernels::packed::PanelMemory;

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
        let biases = arch.biases;
        let name = |part: &str| format!("layers.{index}.{part}");
        let mut norm = |part: &str| Norm::load(&name(part), arch.sizes.hidden, arch.norm, arch.norm_eps, source);
        let branch_norms = match arch.residual {
            Residual::Sandwich => Some([norm("attention_branch_norm")?, norm("mlp_branch_norm")?]),
            Residual::Pre | Residual::Parallel | Residual::Post => None,
        };
        let (attention_norm, mlp_norm) = (norm("attention_norm")?, norm("mlp_norm")?);
        let query_key_norms = query_key_norms(arch, index, source)?;
        let mut project = |projection: LayerProjection, bias| {
            Linear::load(&name(projection.into()), projection.shape(arch), bias, form, source)
        };
        Ok(Self {
            attention_norm,
            mlp_norm,
            branch_norms,
            query_key_norms,
            qkv: project(LayerProjection::Qkv, biases.qkv)?,
            attention_out: project(LayerProjection::AttentionOut, biases.attention_out)?,
            mlp_up: project(LayerProjection::MlpUp, biases.mlp)?,
            mlp_down: project(LayerProjection::MlpDown, biases.mlp)?,
            visibility: arch.attention.windows.get(index).copied().flatten().into(),
        })
    }

    /// The memory of the matrices, in the order in which [`DecoderLayer::new`] loads them.
    pub fn into_memory(self) -> Vec<PanelMemory> {
        let projections = [self.qkv, self.attention_out, self.mlp_up, self.mlp_down];
        projections.map(|projection| projection.weight.into_memory()).into()
    }

    /// Maps x `[tokens, hidden]` to the same shape, under what an adapter changes in this layer.
    pub fn forward(
        &self,
        x: Tensor,
        arch: &Arch,
        plan: &AttentionPlan,
        change: &LayerAdapter,
        form: Form,
    ) -> Result<Tensor> {
        let layer = AdaptedLayer { layer: self, change, form };
        match arch.residual {
            Residual::Pre => {
                let mixed = layer.mixed(&self.attention_norm.forward(&x, form)?, plan)?;
                let x = layer.add_attention(x, &mixed)?;
                let inner = layer.inner(&self.mlp_norm.forward(&x, form)?, arch)?;
                layer.add_mlp(x, &inner)
            }
            Residual::Parallel => {
                // Both before x changes, since the fused form writes into x.
                let mixed = layer.mixed(&self.attention_norm.forward(&x, form)?, plan)?;
                let inner = layer.inner(&self.mlp_norm.forward(&x, form)?, arch)?;
                let x = layer.add_attention(x, &mixed)?;
                layer.add_mlp(x, &inner)
            }
            Residual::Post => {
                let mixed = layer.mixed(&x, plan)?;
                let x = self.attention_norm.forward(&layer.add_attention(x, &mixed)?, form)?;
                let inner = layer.inner(&x, arch)?;
                self.mlp_norm.forward(&layer.add_mlp(x, &inner)?, form)
            }
            Residual::Sandwich => {
                let mixed = layer.mixed(&self.attention_norm.forward(&x, form)?, plan)?;
                let branch = self.attention_out.forward(&mixed, form)?;
                let x = self.add_normed(x, 0, &change.add_to(LayerProjection::AttentionOut, branch, &mixed)?, form)?;
                let inner = layer.inner(&self.mlp_norm.forward(&x, form)?, arch)?;
                let branch = self.mlp_down.forward(&inner, form)?;
                self.add_normed(x, 1, &change.add_to(LayerProjection::MlpDown, branch, &inner)?, form)
            }
        }
    }

    /// `x + norm(branch)`, or `x + branch` if there are no norms of branches.
    fn add_normed(&self, x: Tensor, branch: usize, y: &Tensor, form: Form) -> Result<Tensor> {
        match &self.branch_norms {
            Some(norms) => &x + norms[branch].forward(y, form)?.to_dtype(x.dtype())?,
            None => &x + y.to_dtype(x.dtype())?,
        }
    }
}

/// A layer with what an adapter changes in it.
struct AdaptedLayer<'a> {
    layer: &'a DecoderLayer,
    change: &'a LayerAdapter,
    form: Form,
}

impl AdaptedLayer<'_> {
    /// The result of attention before its output projection, `[tokens, heads * head_dim]`.
    fn mixed(&self, x: &Tensor, plan: &AttentionPlan) -> Result<Tensor> {
        let (qkv, bias) = self.layer.qkv.forward_without_bias(x, self.form)?;
        let qkv = self.change.add_to(LayerProjection::Qkv, qkv, x)?;
        plan.forward(&qkv, bias, self.layer.query_key_norms.as_ref(), self.layer.visibility)
    }

    /// The activated inner state of the MLP, `[tokens, inner]`.
    fn inner(&self, x: &Tensor, arch: &Arch) -> Result<Tensor> {
        let (mlp_up, projection) = (&self.layer.mlp_up, LayerProjection::MlpUp);
        if !arch.gated && self.change.get(projection).is_none() {
            return mlp_up.forward_activated(x, arch.activation, self.form);
        }
        let up = self.change.add_to(projection, mlp_up.forward(x, self.form)?, x)?;
        if arch.gated { gate(arch.activation, &up, self.form) } else { activate(arch.activation, up, self.form) }
    }

    /// x plus the output of attention.
    fn add_attention(&self, x: Tensor, mixed: &Tensor) -> Result<Tensor> {
        let x = self.layer.attention_out.add_to(x, mixed, self.form)?;
        self.change.add_to(LayerProjection::AttentionOut, x, mixed)
    }

    /// x plus the output of the MLP.
    fn add_mlp(&self, x: Tensor, inner: &Tensor) -> Result<Tensor> {
        let x = self.layer.mlp_down.add_to(x, inner, self.form)?;
        self.change.add_to(LayerProjection::MlpDown, x, inner)
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
    let query = source.tensor(&format!("layers.{index}.query_norm.weight"), &[query])?;
    let key = source.tensor(&format!("layers.{index}.key_norm.weight"), &[key])?;
    Ok(Some(QueryKeyNorms { query, key, eps: arch.norm_eps }))
}
