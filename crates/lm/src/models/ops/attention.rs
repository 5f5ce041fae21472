//! Attention, and the norms of queries and keys before it.

use super::elements::{elements, elements_mut, wide};
use super::trained::{TrainedAttention, is_tuned};
use crate::models::rotary::RotaryRows;
use candle_core::{CpuStorage, CustomOp1, D, InplaceOp3, Layout, Result, Shape, Tensor};
use kernels::attention::{self, AttentionShape, Visibility};
use kernels::rms_norm::rms_norm_columns;
use std::ops::Range;
use std::sync::Arc;

/// Fused causal attention that maps qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`; CPU only.
pub fn fused_attention(
    qkv: &Tensor,
    sequences: &[Range<usize>],
    shape: AttentionShape,
    visibility: Visibility,
    rotary: Option<&RotaryRows>,
) -> Result<Tensor> {
    qkv.apply_op1_no_bwd(&CausalAttention { sequences, shape, visibility, rotary })
}

/// The same with a gradient, where the plain form may use kernels: nothing but `qkv` has one, in f32 and on the CPU.
/// `None` elsewhere.
pub fn tuned_attention(
    qkv: &Tensor,
    sequences: &[Range<usize>],
    shape: AttentionShape,
    visibility: Visibility,
    rotary: Option<&Arc<RotaryRows>>,
) -> Result<Option<Tensor>> {
    if !is_tuned(qkv, &[]) {
        return Ok(None);
    }
    let (sequences, rotary) = (sequences.to_vec(), rotary.cloned());
    let attention = TrainedAttention { sequences, shape, visibility, rotary };
    qkv.contiguous()?.apply_op1(attention).map(Some)
}

struct CausalAttention<'a> {
    sequences: &'a [Range<usize>],
    shape: AttentionShape,
    visibility: Visibility,
    rotary: Option<&'a RotaryRows>,
}

impl CustomOp1 for CausalAttention<'_> {
    fn name(&self) -> &'static str {
        "causal-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, _) = layout.shape().dims2()?;
        let width = self.shape.out_width();
        let mut out = vec![0f32; tokens * width];
        let angles = self.rotary.map(|rows| &rows.angles);
        attention::causal(&mut out, elements(qkv, layout)?, self.sequences, self.shape, self.visibility, angles);
        Ok((CpuStorage::F32(out), Shape::from((tokens, width))))
    }
}

/// RMS norms of queries and of keys, over segments of the length of the weights.
pub struct QueryKeyNorms {
    pub query: Tensor,
    pub key: Tensor,
    pub eps: f64,
}

impl QueryKeyNorms {
    /// Overwrites the queries and keys of qkv `[tokens, qkv_width]`, with kernels.
    pub fn in_place(&self, qkv: &Tensor, shape: AttentionShape) -> Result<()> {
        qkv.inplace_op3(&self.query, &self.key, &NormaliseSegments { shape, eps: self.eps as f32 })
    }

    /// Normalises queries only, in differentiable operations: x `[tokens, heads, head_dim]`.
    pub fn plain_queries(&self, x: &Tensor) -> Result<Tensor> {
        plain(x, &self.query, self.eps)
    }

    /// As [`QueryKeyNorms::plain_queries`], for keys.
    pub fn plain_keys(&self, x: &Tensor) -> Result<Tensor> {
        plain(x, &self.key, self.eps)
    }
}

fn plain(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let segments = wide(x)?.reshape((x.dim(0)?, (), weight.dim(0)?))?;
    let mean_square = segments.sqr()?.mean_keepdim(D::Minus1)?;
    let unit = segments.broadcast_div(&(mean_square + eps)?.sqrt()?)?;
    unit.broadcast_mul(&wide(weight)?)?.reshape(x.shape())?.to_dtype(x.dtype())
}

struct NormaliseSegments {
    shape: AttentionShape,
    eps: f32,
}

impl InplaceOp3 for NormaliseSegments {
    fn name(&self) -> &'static str {
        "query-key-norm"
    }

    fn cpu_fwd(
        &self,
        qkv: &mut CpuStorage,
        layout: &Layout,
        query: &CpuStorage,
        query_layout: &Layout,
        key: &CpuStorage,
        key_layout: &Layout,
    ) -> Result<()> {
        let qkv = elements_mut(qkv, layout)?;
        let (width, queries) = (self.shape.qkv_width(), self.shape.out_width());
        let keys = queries + self.shape.kv_heads * self.shape.head_dim;
        rms_norm_columns(qkv, width, 0..queries, elements(query, query_layout)?, self.eps);
        rms_norm_columns(qkv, width, queries..keys, elements(key, key_layout)?, self.eps);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        qkv: &mut candle_core::CudaStorage,
        layout: &Layout,
        query: &candle_core::CudaStorage,
        query_layout: &Layout,
        key: &candle_core::CudaStorage,
        key_layout: &Layout,
    ) -> Result<()> {
        let queries = self.shape.out_width();
        let keys = queries + self.shape.kv_heads * self.shape.head_dim;
        crate::models::cuda::normalise_columns((&mut *qkv, layout), 0..queries, (query, query_layout), self.eps)?;
        crate::models::cuda::normalise_columns((qkv, layout), queries..keys, (key, key_layout), self.eps)
    }
}
