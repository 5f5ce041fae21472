//! Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024): causal language models with a state instead of attention.
//!
//! Each layer adds `mixer(norm(x))` to the residual stream. A mixer projects, convolves over the last few tokens, runs
//! a selective scan over time and projects back. All of it is in f32, as in transformers.

pub mod arch;
mod fused;
mod layer;
mod plain;
mod plan;
mod steps;

#[cfg(test)]
mod tests;

pub use arch::MambaArch;

use super::batch::{BatchStats, PackedBatch, similar_lengths};
use super::continuation::{Continuation, GreedyPrompt};
use super::cuda::{Scans, upload};
use super::error::ModelError;
use super::greedy::continued;
use super::logit_stats::{Head, first_choices, scored_stats};
use super::lora::LoadedAdapter;
use super::model::CausalLm;
use super::model::Pending;
use super::ops::{Form, TensorSource, Weight};
use candle_core::{Device, Tensor};
use layer::MambaLayer;
use plan::MixerPlan;
use std::sync::Arc;
use steps::RmsNorm;

/// A loaded model of either generation.
///
/// The canonical names of its tensors are `embedding.weight`, `final_norm.weight`, `head.weight` and, after
/// `layers.N.`, `norm.weight`, `{in_proj,out_proj}.{weight,bias}`, `conv.{weight,bias}`, `A_log`, `D`; in addition,
/// `x_proj.weight` and `time_proj.{weight,bias}` for Mamba, and `gated_norm.weight` and `dt_bias` for Mamba-2.
pub struct Mamba {
    arch: MambaArch,
    form: Form,
    device: Device,
    /// The kernels of the form of a GPU.
    scans: Option<Scans>,
    embedding: Arc<Weight>,
    layers: Vec<MambaLayer>,
    final_norm: RmsNorm,
    head: Head,
}

impl Mamba {
    /// Builds the model from a source of tensors.
    pub fn new(arch: MambaArch, form: Form, device: &Device, source: TensorSource<'_>) -> Result<Self, ModelError> {
        let shape = [arch.vocab_size, arch.hidden_size];
        let (embedding, tied) = Weight::embedding(arch.tied_head, shape, form, source)?;
        let layers =
            (0..arch.layers).map(|i| MambaLayer::new(&arch, i, form, source)).collect::<Result<_, ModelError>>()?;
        let final_norm = RmsNorm::new("final_norm", arch.hidden_size, 1, arch.norm_eps, source)?;
        let weight = match tied {
            Some(weight) => weight,
            None => Weight::load("head.weight", shape, form, source)?.into(),
        };
        let head = Head { weight, bias: None, soft_cap: None };
        let scans = if let Form::Gpu(_) = form { Scans::new(device, arch.scan_shape())? } else { None };
        Ok(Self { arch, form, device: device.clone(), scans, embedding, layers, final_norm, head })
    }

    /// The hidden states after the final norm, `[tokens, hidden]`.
    pub fn hidden(&self, batch: &PackedBatch) -> candle_core::Result<Tensor> {
        let mut x = self.embedding.pick(&upload(&batch.ids, &self.device)?, self.form)?;
        let plan = MixerPlan::new(self.form, batch, self.scans.as_ref(), &x)?;
        for layer in &self.layers {
            x = layer.forward(x, &self.arch, &plan)?;
        }
        self.final_norm.forward(&x, self.form)
    }
}

impl Mamba {
    /// Returns true if sequences of a batch are padded to the longest, as the plain form does.
    fn pads(&self) -> bool {
        !self.form.is_fused() && self.scans.is_none()
    }

    fn run(&self, sequences: &[&[u32]]) -> Result<Pending<BatchStats>, ModelError> {
        let batch = PackedBatch::new(sequences);
        scored_stats(&batch, &self.head, &self.device, |batch| Ok(self.hidden(batch)?))
    }
}

impl CausalLm for Mamba {
    fn begin(&self, sequences: &[&[u32]], adapter: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        if adapter.is_some() {
            return Err(ModelError::takes_no_adapters());
        }
        if !self.pads() {
            return self.run(sequences);
        }
        // Padding is cheaper among sequences of similar length.
        let mut stats = vec![Vec::new(); sequences.len()];
        for places in similar_lengths(sequences.iter().map(|sequence| sequence.len())) {
            let group: Vec<&[u32]> = places.iter().map(|&place| sequences[place]).collect();
            for (place, sequence_stats) in places.into_iter().zip(self.run(&group)?.wait()?) {
                stats[place] = sequence_stats;
            }
        }
        Ok(Pending::Ready(stats))
    }

    fn begin_continuation(
        &self,
        prompts: &[&GreedyPrompt],
        adapter: Option<&LoadedAdapter>,
    ) -> Result<Pending<Vec<Continuation>>, ModelError> {
        if adapter.is_some() {
            return Err(ModelError::takes_no_adapters());
        }
        let run = |prompts: &[&GreedyPrompt]| {
            continued(prompts, |batch, rows| {
                first_choices(batch, rows, &self.head, &self.device, |batch| Ok(self.hidden(batch)?))
            })
        };
        if self.pads() {
            // Alone, nothing is padded.
            let one_by_one = |prompt: &&GreedyPrompt| run(&[prompt]);
            let continuations: Vec<_> = prompts.iter().map(one_by_one).collect::<Result<_, _>>()?;
            return Ok(Pending::Ready(continuations.concat()));
        }
        run(prompts).map(Pending::Ready)
    }
}
