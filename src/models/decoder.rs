//! The one decoder: a transformer whose every choice is read from [`Arch`].

use super::arch::{Arch, Embedding, Positions};
use super::attention::AttentionPlan;
use super::batch::PackedBatch;
use super::kernels::attention::AttentionShape;
use super::layer::{Layer, linear, norm};
use super::logit_stats::{Head, scored_stats};
use super::ops::{Form, Linear, Norm, Weight};
use super::rotary::RotaryTable;
use super::{CausalLm, ModelError};
use crate::token_stats::TokenStats;
use candle_core::{Device, Tensor};
use std::sync::Arc;

/// Where a model gets its tensors: called with a canonical name and the shape that the architecture asks for.
///
/// Canonical names are `embedding.weight`, `positions.weight`, `project_in.weight`, `project_out.weight`,
/// `layers.N.{attention_norm,attention_branch_norm,mlp_norm,mlp_branch_norm,query_norm,key_norm}.{weight,bias}`,
/// `layers.N.{qkv,attention_out,mlp_up,mlp_down}.{weight,bias}`, `final_norm.{weight,bias}` and `head.{weight,bias}`.
/// Projections are `[out, in]`; the rows of `qkv` are all queries (head by head), then all keys, then all values; those of
/// a gated `mlp_up` are the gate and then what it multiplies.
pub type TensorSource<'a> = &'a mut dyn FnMut(&str, &[usize]) -> Result<Tensor, ModelError>;

/// A loaded decoder.
pub struct Decoder {
    arch: Arch,
    form: Form,
    device: Device,
    embedding: Arc<Weight>,
    /// Learned positions, with the row of position 0.
    positions: Option<(Tensor, usize)>,
    rotary: Option<RotaryTable>,
    project_in: Option<Linear>,
    layers: Vec<Layer>,
    final_norm: Option<Norm>,
    project_out: Option<Linear>,
    head: Head,
}

impl Decoder {
    /// Builds the decoder from a source of tensors.
    ///
    /// # Errors
    /// Whatever the source returns for a tensor that it does not have in the shape asked for.
    pub fn new(arch: Arch, form: Form, device: &Device, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let (vocab, hidden, width) = (arch.sizes.vocab, arch.sizes.hidden, arch.embedding_width());
        let (embedding, tied) = embedding(arch.head.tied, &[vocab, width], form, source)?;
        let (mut positions, mut rotary) = (None, None);
        match &arch.positions {
            Positions::Learned { offset } => {
                positions = Some((source("positions.weight", &[arch.sizes.context + offset, hidden])?, *offset));
            }
            Positions::Rotary(turns) => rotary = Some(RotaryTable::new(turns)),
        }
        let mut projection = |name: &str, shape: [usize; 2]| {
            arch.embedding.projected.map(|_| linear(name, shape, false, form, source)).transpose()
        };
        let project_in = projection("project_in", [hidden, width])?;
        let project_out = projection("project_out", [width, hidden])?;
        let layers =
            (0..arch.sizes.layers).map(|i| Layer::new(&arch, i, form, source)).collect::<Result<_, ModelError>>()?;
        let final_norm = arch.final_norm.then(|| norm(&arch, "final_norm", source)).transpose()?;
        let weight = match tied {
            Some(weight) => weight,
            None => Weight::new(source("head.weight", &[vocab, width])?, form)?.into(),
        };
        let bias = arch.biases.head.then(|| source("head.bias", &[vocab])).transpose()?;
        let head = Head { weight, bias, soft_cap: arch.head.soft_cap };
        let device = device.clone();
        Ok(Self { arch, form, device, embedding, positions, rotary, project_in, layers, final_norm, project_out, head })
    }

    /// What the head multiplies, `[tokens, embedding width]`.
    pub fn hidden(&self, batch: &PackedBatch) -> candle_core::Result<Tensor> {
        let shape = self.attention_shape();
        let plan = AttentionPlan::new(self.form, shape, batch, self.rotary.as_ref(), &self.device)?;
        let mut x = self.embed(batch)?;
        for layer in &self.layers {
            x = layer.forward(x, &self.arch, &plan, self.form)?;
        }
        if let Some(norm) = &self.final_norm {
            x = norm.forward(&x, self.form)?;
        }
        self.project_out.as_ref().map_or(Ok(x.clone()), |project| project.forward(&x, self.form))
    }

    fn embed(&self, batch: &PackedBatch) -> candle_core::Result<Tensor> {
        let mut x = self.embedding.pick(&batch.ids(&self.device)?, self.form)?;
        if let Embedding { scale: Some(scale), .. } = self.arch.embedding {
            x = (x * scale)?;
        }
        if let Some(project) = &self.project_in {
            x = project.forward(&x, self.form)?;
        }
        if let Some((table, offset)) = &self.positions {
            let rows: Vec<u32> = batch.positions().into_iter().map(|position| (position + offset) as u32).collect();
            x = (x + table.index_select(&Tensor::new(rows, &self.device)?, 0)?)?;
        }
        Ok(x)
    }

    /// Logits `[rows, vocab]` in differentiable operations, for training; scoring never holds them whole.
    pub fn logits(&self, hidden: &Tensor) -> candle_core::Result<Tensor> {
        self.head.logits(hidden)
    }

    fn attention_shape(&self) -> AttentionShape {
        let (sizes, attention) = (self.arch.sizes, &self.arch.attention);
        AttentionShape {
            heads: sizes.heads,
            kv_heads: sizes.kv_heads,
            head_dim: sizes.head_dim,
            scale: attention.scale as f32,
            soft_cap: attention.soft_cap.map(|cap| cap as f32),
        }
    }
}

/// The embedding, and the same for the head where the two are tied. Only then is it multiplied by.
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
    let weight = Arc::new(Weight::new(tensor, form)?);
    Ok((Arc::clone(&weight), Some(weight)))
}

impl CausalLm for Decoder {
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError> {
        let batch = PackedBatch::new(sequences);
        // Position tables end somewhere: better a message than whatever a device makes of a row that is not there.
        if batch.longest() > self.arch.sizes.context {
            let (longest, context) = (batch.longest(), self.arch.sizes.context);
            return Err(ModelError::Forward(format!("{longest} tokens exceed the context of {context}")));
        }
        scored_stats(&batch, &self.head, &self.device, |batch| self.hidden(batch))
    }
}
