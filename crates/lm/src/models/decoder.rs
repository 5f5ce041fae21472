//! The one decoder: a transformer configured by [`Arch`].

use super::arch::{Arch, Embedding, Positions};
use super::attention::AttentionPlan;
use super::batch::{BatchStats, PackedBatch};
use super::continuation::{Continuation, GreedyPrompt};
use super::cuda::upload;
use super::error::ModelError;
use super::greedy::continued;
use super::layer::DecoderLayer;
use super::logit_stats::{Head, first_choices, scored_stats};
use super::lora::{Adapter, LayerAdapter, LoadedAdapter};
use super::model::CausalLm;
use super::model::Pending;
use super::ops::{Form, Linear, Norm, TensorSource, Weight};
use super::rotary::RotaryTable;
use candle_core::{DType, Device, Tensor};
use kernels::attention::AttentionShape;
use std::sync::Arc;

pub struct Decoder {
    arch: Arch,
    form: Form,
    /// The type of its weights, unless the form packs them.
    dtype: DType,
    device: Device,
    embedding: Arc<Weight>,
    /// Learned positions, with the row of position 0.
    positions: Option<(Tensor, usize)>,
    rotary: Option<RotaryTable>,
    project_in: Option<Linear>,
    layers: Vec<DecoderLayer>,
    final_norm: Option<Norm>,
    project_out: Option<Linear>,
    head: Head,
}

impl Decoder {
    pub fn new(arch: Arch, form: Form, device: &Device, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let (vocab, hidden, width) = (arch.sizes.vocab, arch.sizes.hidden, arch.embedding_width());
        let (embedding, tied) = Weight::embedding(arch.head.tied, [vocab, width], form, source)?;
        let positions = match &arch.positions {
            Positions::Learned { offset } => {
                Some((source.tensor("positions.weight", &[arch.sizes.context + offset, hidden])?, *offset))
            }
            Positions::Rotary(_) => None,
        };
        let mut projection = |name: &str, shape: [usize; 2]| {
            arch.embedding.projected.map(|_| Linear::load(name, shape, false, form, source)).transpose()
        };
        let project_in = projection("project_in", [hidden, width])?;
        let project_out = projection("project_out", [width, hidden])?;
        let layers = (0..arch.sizes.layers)
            .map(|i| DecoderLayer::new(&arch, i, form, source))
            .collect::<Result<_, ModelError>>()?;
        // Only now is it known that heads are as large as the configuration says.
        let rotary = match &arch.positions {
            Positions::Learned { .. } => None,
            Positions::Rotary(rotation) => Some(RotaryTable::new(rotation)),
        };
        let final_norm =
            arch.final_norm.then(|| Norm::load("final_norm", hidden, arch.norm, arch.norm_eps, source)).transpose()?;
        let weight = match tied {
            Some(weight) => weight,
            None => Weight::load("head.weight", [vocab, width], form, source)?.into(),
        };
        let bias = arch.biases.head.then(|| source.tensor("head.bias", &[vocab])).transpose()?;
        let head = Head { weight, bias, soft_cap: arch.head.soft_cap };
        let dtype = embedding.dtype();
        let device = device.clone();
        Ok(Self {
            arch,
            form,
            dtype,
            device,
            embedding,
            positions,
            rotary,
            project_in,
            layers,
            final_norm,
            project_out,
            head,
        })
    }

    /// The input of the head, `[tokens, embedding width]`, under an adapter if there is one.
    pub fn hidden(&self, batch: &PackedBatch, adapter: Option<&LoadedAdapter>) -> candle_core::Result<Tensor> {
        let shape = self.attention_shape();
        let plan = AttentionPlan::new(self.form, shape, batch, self.rotary.as_ref(), &self.device)?;
        let mut x = self.embed(batch)?;
        let unchanged = LayerAdapter::default();
        for (index, layer) in self.layers.iter().enumerate() {
            let change = adapter.and_then(|adapter| adapter.layers.get(index)).unwrap_or(&unchanged);
            x = layer.forward(x, &self.arch, &plan, change, self.form)?;
        }
        if let Some(norm) = &self.final_norm {
            x = norm.forward(&x, self.form)?;
        }
        if let Some(project) = &self.project_out {
            x = project.forward(&x, self.form)?;
        }
        // The head has the model's type.
        if let Form::Gpu(dtype) = self.form { x.to_dtype(dtype) } else { Ok(x) }
    }

    fn embed(&self, batch: &PackedBatch) -> candle_core::Result<Tensor> {
        let mut x = self.embedding.pick(&upload(&batch.ids, &self.device)?, self.form)?;
        if let Embedding { scale: Some(scale), .. } = self.arch.embedding {
            x = (x * scale)?;
        }
        if let Some(project) = &self.project_in {
            x = project.forward(&x, self.form)?;
        }
        if let Form::Gpu(_) = self.form {
            x = x.to_dtype(DType::F32)?;
        }
        if let Some((table, offset)) = &self.positions {
            let rows: Vec<u32> = batch.positions().into_iter().map(|position| (position + offset) as u32).collect();
            let places = table.index_select(&upload(&rows, &self.device)?, 0)?;
            x = (&x + places.to_dtype(x.dtype())?)?;
        }
        Ok(x)
    }

    pub fn arch(&self) -> &Arch {
        &self.arch
    }

    /// The projection to the vocabulary.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Logits `[rows, vocab]` in differentiable operations, for training; scoring never materialises them.
    pub fn logits(&self, hidden: &Tensor) -> candle_core::Result<Tensor> {
        self.head.logits(hidden)
    }

    /// Position tables are finite: this gives a clear message instead of a device error about a missing row.
    fn check_lengths(&self, batch: &PackedBatch) -> Result<(), ModelError> {
        let (longest, context) = (batch.longest(), self.arch.sizes.context);
        if longest > context {
            let reason = format!("a sequence of {longest} tokens exceeds the model's context of {context}");
            return Err(ModelError::Forward(reason));
        }
        Ok(())
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

impl CausalLm for Decoder {
    fn begin(&self, sequences: &[&[u32]], adapter: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        let batch = PackedBatch::new(sequences);
        self.check_lengths(&batch)?;
        scored_stats(&batch, &self.head, &self.device, |batch| self.hidden(batch, adapter))
    }

    fn begin_continuation(
        &self,
        prompts: &[&GreedyPrompt],
        adapter: Option<&LoadedAdapter>,
    ) -> Result<Pending<Vec<Continuation>>, ModelError> {
        let continued = continued(prompts, |batch, rows| {
            self.check_lengths(batch)?;
            first_choices(batch, rows, &self.head, &self.device, |batch| self.hidden(batch, adapter))
        });
        continued.map(Pending::Ready)
    }

    fn load_adapter(&self, adapter: &Adapter) -> Result<LoadedAdapter, ModelError> {
        adapter.load(self.form, self.dtype, &self.device)
    }
}
