//! State that all layers of one forward pass share, and the form in which their attention runs.

use super::gpu::GpuSteps;
use super::padded::{Groups, MOST_SCORES};
use super::parts::parts;
use crate::models::batch::PackedBatch;
use crate::models::ops::{Form, QueryKeyNorms, fused_attention, tuned_attention};
use crate::models::rotary::{RotaryRows, RotaryTable};
use candle_core::{Device, Result, Tensor};
use kernels::attention::{AttentionShape, Visibility};
use std::sync::Arc;

/// State that all layers of one forward pass share.
pub struct AttentionPlan<'a> {
    shape: AttentionShape,
    batch: &'a PackedBatch,
    rotary: Option<Arc<RotaryRows>>,
    way: Way,
}

/// The implementation that computes the attention of a batch.
enum Way {
    /// The CPU kernel.
    Fused,
    /// candle's operations, which pad.
    Padded(Groups),
    Gpu(GpuSteps),
}

impl<'a> AttentionPlan<'a> {
    /// Prepares the state that the form needs for this batch.
    pub fn new(
        form: Form,
        shape: AttentionShape,
        batch: &'a PackedBatch,
        rotary: Option<&RotaryTable>,
        device: &Device,
    ) -> Result<Self> {
        let rotary = rotary.map(|table| table.rows(batch.longest()));
        let way = match form {
            Form::Fused(_) => Way::Fused,
            Form::Gpu(dtype) => Way::Gpu(GpuSteps::new(dtype, shape, batch, rotary.clone(), device)?),
            Form::Plain => Way::Padded(Groups::new(batch, rotary.as_deref(), shape.heads, MOST_SCORES, device)?),
        };
        Ok(Self { shape, batch, rotary, way })
    }

    /// Maps qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`; all but the plain form may overwrite qkv. `bias`
    /// is what is still to be added to qkv, see
    /// [`Linear::forward_without_bias`](crate::models::ops::Linear::forward_without_bias).
    pub fn forward(
        &self,
        qkv: &Tensor,
        bias: Option<&Tensor>,
        norms: Option<&QueryKeyNorms>,
        visibility: Visibility,
    ) -> Result<Tensor> {
        match (&self.way, bias) {
            (Way::Gpu(steps), bias) => steps.forward(qkv, bias, norms, self.batch, visibility),
            (_, Some(bias)) => self.forward(&qkv.broadcast_add(bias)?, None, norms, visibility),
            (Way::Fused, None) => {
                norms.map_or(Ok(()), |norms| norms.in_place(qkv, self.shape))?;
                fused_attention(qkv, &self.batch.sequences, self.shape, visibility, self.rotary.as_deref())
            }
            (Way::Padded(groups), None) => self.plain(groups, qkv, norms, visibility),
        }
    }

    fn plain(
        &self,
        groups: &Groups,
        qkv: &Tensor,
        norms: Option<&QueryKeyNorms>,
        visibility: Visibility,
    ) -> Result<Tensor> {
        if norms.is_none()
            && let Some(mixed) =
                tuned_attention(qkv, &self.batch.sequences, self.shape, visibility, self.rotary.as_ref())?
        {
            return Ok(mixed);
        }
        let [mut queries, mut keys, values] = parts(qkv, self.shape)?;
        if let Some(norms) = norms {
            (queries, keys) = (norms.plain_queries(&queries)?, norms.plain_keys(&keys)?);
        }
        groups.attend([&queries, &keys, &values], self.shape, visibility)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ops::Multiply;
    use crate::models::rotary::Rotary;

    /// Blocks of any size, down to a single query, give the results of the fused kernel.
    #[test]
    fn blocks_of_queries_change_nothing() {
        let shape = AttentionShape { heads: 4, kv_heads: 2, head_dim: 6, scale: 0.4, soft_cap: Some(3.0) };
        let lengths = [1usize, 7, 30, 33, 2, 64];
        let sequences: Vec<Vec<u32>> = lengths.iter().map(|&length| vec![0; length]).collect();
        let batch = PackedBatch::new(&sequences.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let tokens = batch.ids.len();
        let values =
            (0..tokens * shape.qkv_width()).map(|i| ((i * 7919 + i / 13) % 1009) as f32 / 504.0 - 1.0).collect();
        let qkv = Tensor::from_vec(values, (tokens, shape.qkv_width()), &Device::Cpu).unwrap();
        let table = RotaryTable::new(&Rotary::plain(4, 100.0));
        for visibility in [Visibility::Past, Visibility::Window(5)] {
            let fused =
                AttentionPlan::new(Form::Fused(Multiply::Gemm), shape, &batch, Some(&table), &Device::Cpu).unwrap();
            let want: Vec<f32> =
                fused.forward(&qkv, None, None, visibility).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            for most_scores in [1, 500, 5_000, MOST_SCORES] {
                let mut plan = AttentionPlan::new(Form::Plain, shape, &batch, Some(&table), &Device::Cpu).unwrap();
                let rotary = plan.rotary.clone();
                let groups = Groups::new(&batch, rotary.as_deref(), shape.heads, most_scores, &Device::Cpu).unwrap();
                plan.way = Way::Padded(groups);
                let got: Vec<f32> =
                    plan.forward(&qkv, None, None, visibility).unwrap().flatten_all().unwrap().to_vec1().unwrap();
                assert_eq!(got.len(), want.len());
                // Means of values up to 1 with f32 weights, summed in a different order.
                let worst = got.iter().zip(&want).fold(0f32, |worst, (a, b)| worst.max((a - b).abs()));
                assert!(worst < 2e-6, "{visibility:?}, {most_scores} scores: {worst}");
            }
        }
    }
}
