//! The one decoder: a transformer configured by [`Arch`].

use super::arch::{Arch, Embedding, Positions};
use super::attention::AttentionPlan;
use super::batch::{BatchStats, PackedBatch};
use super::continuation::{Continuation, GreedyPrompt};
use super::cuda::upload;
use super::error::ModelError;
use super::greedy::continued;
use super::layers::Layers;
use super::logit_stats::{Head, first_choices, scored_stats};
use super::lora::{Adapter, LayerAdapter, LoadedAdapter};
use super::model::{CausalLm, LayerProgress, LayerWatch, Pending};
use super::ops::{Form, Linear, Norm, TensorSource, Weight};
use super::rotary::RotaryTable;
use candle_core::{DType, Device, Tensor};
use kernels::attention::AttentionShape;
use std::mem::take;
use std::ops::ControlFlow;
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
    layers: Layers,
    /// Callback for the progress of passes through streamed layers.
    watch: Option<LayerWatch>,
    final_norm: Option<Norm>,
    project_out: Option<Linear>,
    head: Head,
}

impl Decoder {
    /// A decoder with all layers in memory.
    pub fn new(arch: Arch, form: Form, device: &Device, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let layers = Layers::resident(&arch, form, source)?;
        Self::with_layers(arch, layers, form, device, source)
    }

    /// A decoder of these layers and of the tensors around them.
    pub fn with_layers(
        arch: Arch,
        layers: Layers,
        form: Form,
        device: &Device,
        source: TensorSource<'_>,
    ) -> Result<Self, ModelError> {
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
        // The layers have shown that heads are as large as the configuration says.
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
            watch: None,
            final_norm,
            project_out,
            head,
        })
    }

    /// The input of the head, `[tokens, embedding width]`, under an adapter if there is one.
    ///
    /// # Errors
    /// [`ModelError::Forward`], and for streamed layers those of reading the checkpoint.
    pub fn hidden(&self, batch: &PackedBatch, adapter: Option<&LoadedAdapter>) -> Result<Tensor, ModelError> {
        let split = self.layers.split(batch);
        let parts = split.as_deref().unwrap_or(std::slice::from_ref(batch));
        let (shape, rotary) = (self.attention_shape(), self.rotary.as_ref());
        let plan = |part| AttentionPlan::new(self.form, shape, part, rotary, &self.device);
        let plans = parts.iter().map(plan).collect::<candle_core::Result<Vec<_>>>()?;
        let mut states = parts.iter().map(|part| self.embed(part)).collect::<candle_core::Result<Vec<_>>>()?;
        let unchanged = LayerAdapter::default();
        self.layers.visit(|index, layer, waited| {
            let progress = LayerProgress { layer: index, layers: self.arch.sizes.layers, waited };
            let change = adapter.and_then(|adapter| adapter.layers.get(index)).unwrap_or(&unchanged);
            let next = |(x, plan): (Tensor, &AttentionPlan)| match self.watch.as_ref().map(|watch| watch(progress)) {
                Some(ControlFlow::Break(())) => Err(ModelError::Cancelled),
                Some(ControlFlow::Continue(())) | None => Ok(layer.forward(x, &self.arch, plan, change, self.form)?),
            };
            states = take(&mut states).into_iter().zip(&plans).map(next).collect::<Result<_, _>>()?;
            Ok(())
        })?;
        let mut outputs = states.into_iter().map(|x| self.output(x)).collect::<candle_core::Result<Vec<_>>>()?;
        match outputs.len() {
            1 => Ok(outputs.remove(0)),
            _ => Ok(Tensor::cat(&outputs, 0)?),
        }
    }

    /// The input of the head of what the last layer gives.
    fn output(&self, mut x: Tensor) -> candle_core::Result<Tensor> {
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

    fn watch(&mut self, watch: LayerWatch) {
        self.watch = self.layers.are_streamed().then_some(watch);
    }

    fn load_adapter(&self, adapter: &Adapter) -> Result<LoadedAdapter, ModelError> {
        adapter.load(self.form, self.dtype, &self.device)
    }
}
