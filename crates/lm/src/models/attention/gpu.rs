//! Attention in the form of a GPU: bias, norms and rotation in place, and then one kernel where there is one for the
//! type and the heads, or candle's operations.

use super::padded::{Groups, MOST_SCORES};
use super::parts::parts;
use crate::models::batch::PackedBatch;
use crate::models::cuda::{FlashAttention, QueryBlocks};
use crate::models::ops::{QueryKeyNorms, Rotation, add_bias, fused_attention};
use crate::models::rotary::RotaryRows;
use candle_core::{DType, Device, Result, Tensor};
use kernels::attention::{AttentionShape, Visibility};
use std::sync::Arc;

/// State that all layers of one forward pass share.
pub struct GpuSteps {
    shape: AttentionShape,
    rotation: Rotation,
    mixing: Mixing,
}

/// Mixing of values once queries and keys are ready.
enum Mixing {
    Kernel(FlashAttention, QueryBlocks),
    Padded(Groups),
    /// The kernel of the CPU, on which this form serves to test its steps.
    Cpu,
}

impl GpuSteps {
    pub fn new(
        dtype: DType,
        shape: AttentionShape,
        batch: &PackedBatch,
        rotary: Option<Arc<RotaryRows>>,
        device: &Device,
    ) -> Result<Self> {
        let mixing = match FlashAttention::new(device, shape.head_dim, dtype)? {
            Some(kernel) => {
                let blocks = QueryBlocks::new(&batch.sequences, kernel.queries(), device)?;
                Mixing::Kernel(kernel, blocks)
            }
            None if device.is_cpu() => Mixing::Cpu,
            None => Mixing::Padded(Groups::new(batch, None, shape.heads, MOST_SCORES, device)?),
        };
        let rotation = Rotation::new(shape, rotary, batch.positions(), device)?;
        Ok(Self { shape, rotation, mixing })
    }

    /// As [`AttentionPlan::forward`](super::AttentionPlan::forward).
    pub fn forward(
        &self,
        qkv: &Tensor,
        bias: Option<&Tensor>,
        norms: Option<&QueryKeyNorms>,
        batch: &PackedBatch,
        visibility: Visibility,
    ) -> Result<Tensor> {
        match (norms, bias) {
            (None, bias) => self.rotation.rotate(qkv, bias)?,
            (Some(norms), bias) => {
                bias.map_or(Ok(()), |bias| add_bias(qkv, bias))?;
                norms.in_place(qkv, self.shape)?;
                self.rotation.rotate(qkv, None)?;
            }
        }
        match &self.mixing {
            Mixing::Kernel(kernel, blocks) => kernel.attend(qkv, blocks, self.shape, visibility),
            Mixing::Padded(groups) => {
                let [queries, keys, values] = parts(qkv, self.shape)?;
                groups.attend([&queries, &keys, &values], self.shape, visibility)
            }
            Mixing::Cpu => fused_attention(qkv, &batch.sequences, self.shape, visibility, None),
        }
    }
}
