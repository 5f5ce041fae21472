//! The one decoder: a transformer whose every choice is read from [`Arch`].

use super::arch::{Arch, Residual};
use super::attention::AttentionPlan;
use super::batch::PackedBatch;
use super::kernels::attention::AttentionShape;
use super::logit_stats::{Head, logit_stats};
use super::ops::{Form, LayerNorm, Linear, activate};
use super::rotary::RotaryTable;
use super::{CausalLm, ModelError};
use crate::token_stats::TokenStats;
use candle_core::{Device, Tensor};

/// Where the decoder gets its tensors: called with a canonical name and the shape that the architecture asks for.
///
/// Canonical names are `embedding.weight`, `layers.N.{attention_norm,mlp_norm,qkv,attention_out,mlp_up,mlp_down}.{weight,bias}`,
/// `final_norm.{weight,bias}` and `head.{weight,bias}`. Projections are `[out, in]`; the rows of `qkv` are all queries
/// (head by head), then all keys, then all values.
pub type TensorSource<'a> = &'a mut dyn FnMut(&str, &[usize]) -> Result<Tensor, ModelError>;

/// A loaded decoder.
pub struct Decoder {
    arch: Arch,
    form: Form,
    device: Device,
    embedding: Tensor,
    layers: Vec<Layer>,
    final_norm: LayerNorm,
    head: Head,
    rotary: RotaryTable,
}

struct Layer {
    attention_norm: LayerNorm,
    mlp_norm: LayerNorm,
    qkv: Linear,
    attention_out: Linear,
    mlp_up: Linear,
    mlp_down: Linear,
}

impl Decoder {
    /// Builds the decoder from a source of tensors.
    ///
    /// # Errors
    /// Whatever the source returns for a tensor that it does not have in the shape asked for.
    pub fn new(arch: Arch, form: Form, device: &Device, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let embedding = source("embedding.weight", &[arch.vocab_size, arch.hidden_size])?;
        let layers = (0..arch.layers).map(|i| Layer::new(&arch, i, source)).collect::<Result<_, ModelError>>()?;
        let final_norm = norm(&arch, "final_norm", source)?;
        let shape = [arch.vocab_size, arch.hidden_size];
        let weight = if arch.tied_head { embedding.clone() } else { source("head.weight", &shape)? };
        let bias = arch.biases.head.then(|| source("head.bias", &shape[..1])).transpose()?;
        let rotary = RotaryTable::new(&arch.rotary, arch.context);
        let head = Head { weight, bias };
        Ok(Self { arch, form, device: device.clone(), embedding, layers, final_norm, head, rotary })
    }

    /// The hidden states after the final norm, `[tokens, hidden]`.
    pub fn hidden(&self, batch: &PackedBatch) -> candle_core::Result<Tensor> {
        let place = (self.embedding.dtype(), &self.device);
        let plan = AttentionPlan::new(self.form, self.attention_shape(), batch, &self.rotary, place)?;
        let mut x = self.embedding.index_select(&batch.ids(&self.device)?, 0)?;
        for layer in &self.layers {
            x = layer.forward(x, &self.arch, &plan, self.form)?;
        }
        self.final_norm.forward(&x, self.form)
    }

    /// Logits `[rows, vocab]` in differentiable operations, for training; scoring never holds them whole.
    pub fn logits(&self, hidden: &Tensor) -> candle_core::Result<Tensor> {
        self.head.logits(hidden)
    }

    fn attention_shape(&self) -> AttentionShape {
        let Arch { heads, kv_heads, head_dim, .. } = self.arch;
        AttentionShape { heads, kv_heads, head_dim, scale: 1.0 / (head_dim as f32).sqrt() }
    }
}

impl CausalLm for Decoder {
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError> {
        let batch = PackedBatch::new(sequences);
        let (rows, targets) = batch.scored();
        if rows.is_empty() {
            return Ok(vec![Vec::new(); sequences.len()]);
        }
        let hidden = self.hidden(&batch)?.index_select(&Tensor::new(rows, &self.device)?, 0)?;
        let mut stats = logit_stats(&hidden, &self.head, &targets)?.into_iter();
        let scored = |sequence: &&[u32]| stats.by_ref().take(sequence.len().saturating_sub(1)).collect();
        Ok(sequences.iter().map(scored).collect())
    }
}

impl Layer {
    fn new(arch: &Arch, index: usize, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let (hidden, inner) = (arch.hidden_size, arch.intermediate_size);
        let attention = arch.heads * arch.head_dim;
        let qkv = attention + 2 * arch.kv_heads * arch.head_dim;
        let name = |part: &str| format!("layers.{index}.{part}");
        Ok(Self {
            attention_norm: norm(arch, &name("attention_norm"), source)?,
            mlp_norm: norm(arch, &name("mlp_norm"), source)?,
            qkv: linear(&name("qkv"), [qkv, hidden], arch.biases.attention, source)?,
            attention_out: linear(&name("attention_out"), [hidden, attention], arch.biases.attention, source)?,
            mlp_up: linear(&name("mlp_up"), [inner, hidden], arch.biases.mlp, source)?,
            mlp_down: linear(&name("mlp_down"), [hidden, inner], arch.biases.mlp, source)?,
        })
    }

    fn forward(&self, x: Tensor, arch: &Arch, plan: &AttentionPlan, form: Form) -> candle_core::Result<Tensor> {
        let mixed = plan.forward(&self.qkv.forward(&self.attention_norm.forward(&x, form)?, form)?)?;
        match arch.residual {
            Residual::Sequential => {
                let x = self.attention_out.add_to(x, &mixed, form)?;
                let inner = self.inner(&x, arch, form)?;
                self.mlp_down.add_to(x, &inner, form)
            }
            Residual::Parallel => {
                // Before x changes: both branches read the same x.
                let inner = self.inner(&x, arch, form)?;
                let x = self.attention_out.add_to(x, &mixed, form)?;
                self.mlp_down.add_to(x, &inner, form)
            }
        }
    }

    /// The activated inner state of the MLP, `[tokens, intermediate]`.
    fn inner(&self, x: &Tensor, arch: &Arch, form: Form) -> candle_core::Result<Tensor> {
        activate(arch.activation, self.mlp_up.forward(&self.mlp_norm.forward(x, form)?, form)?, form)
    }
}

fn norm(arch: &Arch, name: &str, source: TensorSource<'_>) -> Result<LayerNorm, ModelError> {
    let shape = [arch.hidden_size];
    let (weight, bias) = (source(&format!("{name}.weight"), &shape)?, source(&format!("{name}.bias"), &shape)?);
    Ok(LayerNorm { weight, bias, eps: arch.norm_eps })
}

fn linear(name: &str, shape: [usize; 2], bias: bool, source: TensorSource<'_>) -> Result<Linear, ModelError> {
    let weight = source(&format!("{name}.weight"), &shape)?;
    let bias = bias.then(|| source(&format!("{name}.bias"), &shape[..1])).transpose()?;
    Ok(Linear { weight, bias })
}
