//! Causal self-attention in a forward pass, in every form.

mod padded;

use super::batch::PackedBatch;
use super::cuda::{FlashAttention, QueryBlocks};
use super::ops::{CausalAttention, Form, QueryKeyNorms, Rotation, add_bias};
use super::rotary::{RotaryRows, RotaryTable};
use candle_core::{D, DType, Device, Result, Tensor};
use kernels::attention::{AttentionShape, Visibility};
use padded::Groups;
use std::sync::Arc;

pub use padded::MOST_SCORES;

/// State that all layers of one forward pass share, and the form in which their attention runs.
pub struct AttentionPlan<'a> {
    shape: AttentionShape,
    batch: &'a PackedBatch,
    /// Rotates queries and keys while they are mixed; `None` where they are rotated before.
    rotary: Option<Arc<RotaryRows>>,
    /// The steps of the form of a GPU before the mixing: bias, norms and rotation in place.
    steps: Option<Rotation>,
    mixing: Mixing,
}

/// Mixing of values.
enum Mixing {
    Kernel(FlashAttention, QueryBlocks),
    /// candle's operations, which pad.
    Padded(Groups),
    /// The kernel of the CPU, on which the form of a GPU serves to test its steps.
    Cpu,
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
        Ok(match form {
            Form::Fused(_) => Self { shape, batch, rotary, steps: None, mixing: Mixing::Cpu },
            Form::Plain => {
                let groups = Groups::new(batch, rotary.as_deref(), shape.heads, MOST_SCORES, device)?;
                Self { shape, batch, rotary, steps: None, mixing: Mixing::Padded(groups) }
            }
            Form::Gpu(dtype) => {
                let mixing = mixing_on_gpu(dtype, shape, batch, device)?;
                let steps = Some(Rotation::new(shape, rotary, batch.positions(), device)?);
                Self { shape, batch, rotary: None, steps, mixing }
            }
        })
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
        match (&self.steps, bias, norms) {
            (Some(rotation), bias, None) => rotation.rotate(qkv, bias)?,
            (Some(rotation), bias, Some(norms)) => {
                bias.map_or(Ok(()), |bias| add_bias(qkv, bias))?;
                norms.in_place(qkv, self.shape)?;
                rotation.rotate(qkv, None)?;
                return self.mix(qkv, None, visibility);
            }
            (None, Some(bias), norms) => return self.mix(&qkv.broadcast_add(bias)?, norms, visibility),
            (None, None, _) => {}
        }
        self.mix(qkv, norms, visibility)
    }

    fn mix(&self, qkv: &Tensor, norms: Option<&QueryKeyNorms>, visibility: Visibility) -> Result<Tensor> {
        let (shape, sequences) = (self.shape, &self.batch.sequences);
        let kernel =
            || CausalAttention { sequences: sequences.clone(), shape, visibility, rotary: self.rotary.clone() };
        match &self.mixing {
            Mixing::Kernel(kernel, blocks) => kernel.attend(qkv, blocks, shape, visibility),
            Mixing::Cpu => {
                norms.map_or(Ok(()), |norms| norms.in_place(qkv, shape))?;
                kernel().forward(qkv)
            }
            Mixing::Padded(groups) => {
                if norms.is_none()
                    && let Some(mixed) = kernel().forward_tuned(qkv)?
                {
                    return Ok(mixed);
                }
                let [mut queries, mut keys, values] = parts(qkv, shape)?;
                if let Some(norms) = norms {
                    [queries, keys] = norms.plain(&queries, &keys)?;
                }
                groups.attend([&queries, &keys, &values], shape, visibility)
            }
        }
    }
}

/// One kernel where there is one for the type and the heads, or candle's operations.
fn mixing_on_gpu(dtype: DType, shape: AttentionShape, batch: &PackedBatch, device: &Device) -> Result<Mixing> {
    Ok(match FlashAttention::new(device, shape.head_dim, dtype)? {
        Some(kernel) => {
            let blocks = QueryBlocks::new(&batch.sequences, kernel.queries(), device)?;
            Mixing::Kernel(kernel, blocks)
        }
        None if device.is_cpu() => Mixing::Cpu,
        None => Mixing::Padded(Groups::new(batch, None, shape.heads, MOST_SCORES, device)?),
    })
}

/// Queries, keys and values `[tokens, heads, head_dim]` of a fused projection.
fn parts(qkv: &Tensor, shape: AttentionShape) -> Result<[Tensor; 3]> {
    let AttentionShape { heads, kv_heads, head_dim, .. } = shape;
    let part = |first: usize, count: usize| {
        let columns = qkv.narrow(D::Minus1, first * head_dim, count * head_dim)?;
        columns.reshape(((), count, head_dim))
    };
    Ok([part(0, heads)?, part(heads, kv_heads)?, part(heads + kv_heads, kv_heads)?])
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
                plan.mixing = Mixing::Padded(groups);
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
