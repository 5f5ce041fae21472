//! The steps of attention: rotation and norms of queries and keys in place, and the kernel.

use super::elements::{elements, elements_mut, gradient_of, is_tuned, wide, with_slice};
use crate::models::cuda::upload;
use crate::models::rotary::RotaryRows;
use candle_core::{CpuStorage, CustomOp1, D, Device, InplaceOp1, Layout, Result, Shape, Tensor, bail};
use kernels::attention::{self, AttentionShape, Visibility};
use kernels::gradients::attention::AttentionGradient;
use kernels::rms_norm::rms_norm_columns;
use std::ops::Range;
use std::sync::Arc;

/// Causal attention by the kernel of the CPU, from qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`.
pub struct CausalAttention {
    pub sequences: Vec<Range<usize>>,
    pub shape: AttentionShape,
    pub visibility: Visibility,
    /// Rotates queries and keys.
    pub rotary: Option<Arc<RotaryRows>>,
}

impl CausalAttention {
    pub fn forward(&self, qkv: &Tensor) -> Result<Tensor> {
        qkv.apply_op1_no_bwd(self)
    }

    /// The same with a gradient, where the plain form may use kernels: nothing but `qkv` has one, in f32 and on the CPU.
    /// `None` elsewhere.
    pub fn forward_tuned(self, qkv: &Tensor) -> Result<Option<Tensor>> {
        if is_tuned(qkv, &[]) { qkv.contiguous()?.apply_op1(self).map(Some) } else { Ok(None) }
    }
}

impl CustomOp1 for CausalAttention {
    fn name(&self) -> &'static str {
        "causal-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, _) = layout.shape().dims2()?;
        let (width, angles) = (self.shape.out_width(), self.rotary.as_ref().map(|rows| &rows.angles));
        let mut out = vec![0f32; tokens * width];
        attention::causal(&mut out, elements(qkv, layout)?, &self.sequences, self.shape, self.visibility, angles);
        Ok((CpuStorage::F32(out), Shape::from((tokens, width))))
    }

    fn bwd(&self, qkv: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (shape, visibility) = (self.shape, self.visibility);
        let rotary = self.rotary.as_ref().map(|rows| &rows.angles);
        gradient_of(qkv, gradient, |out, qkv, gradient| {
            AttentionGradient { qkv, gradient, shape, visibility, rotary }.write(out, &self.sequences);
        })
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
        qkv.inplace_op1(&NormaliseSegments { norms: self, shape })
    }

    /// Normalises queries and keys `[tokens, heads, head_dim]` in differentiable operations.
    pub fn plain(&self, queries: &Tensor, keys: &Tensor) -> Result<[Tensor; 2]> {
        let normalised = |x: &Tensor, weight: &Tensor| {
            let segments = wide(x)?.reshape((x.dim(0)?, (), weight.dim(0)?))?;
            let mean_square = segments.sqr()?.mean_keepdim(D::Minus1)?;
            let unit = segments.broadcast_div(&(mean_square + self.eps)?.sqrt()?)?;
            unit.broadcast_mul(&wide(weight)?)?.reshape(x.shape())?.to_dtype(x.dtype())
        };
        Ok([normalised(queries, &self.query)?, normalised(keys, &self.key)?])
    }
}

struct NormaliseSegments<'a> {
    norms: &'a QueryKeyNorms,
    shape: AttentionShape,
}

impl NormaliseSegments<'_> {
    /// The columns of the queries and of the keys, each with its weights.
    fn segments(&self) -> [(Range<usize>, &Tensor); 2] {
        let queries = self.shape.out_width();
        let keys = queries + self.shape.kv_heads * self.shape.head_dim;
        [(0..queries, &self.norms.query), (queries..keys, &self.norms.key)]
    }
}

impl InplaceOp1 for NormaliseSegments<'_> {
    fn name(&self) -> &'static str {
        "query-key-norm"
    }

    fn cpu_fwd(&self, qkv: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let qkv = elements_mut(qkv, layout)?;
        for (columns, weight) in self.segments() {
            with_slice(weight, |weight| {
                rms_norm_columns(qkv, self.shape.qkv_width(), columns, weight, self.norms.eps as f32);
                Ok(())
            })?;
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, qkv: &mut candle_core::CudaStorage, layout: &Layout) -> Result<()> {
        for (columns, weight) in self.segments() {
            crate::models::cuda::normalise_columns((&mut *qkv, layout), columns, weight, self.norms.eps as f32)?;
        }
        Ok(())
    }
}

/// The rotation of a batch.
pub struct Rotation {
    shape: AttentionShape,
    /// The position of each token in its sequence.
    positions: Vec<usize>,
    rows: Option<Arc<RotaryRows>>,
    /// The positions `[tokens]` for a kernel.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only kernels read it"))]
    places: Tensor,
    /// Cosines and sines `[positions, 1, half]` for a kernel.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only kernels read it"))]
    tables: Option<(Tensor, Tensor)>,
}

impl Rotation {
    /// For tokens at these positions of their sequences; without a table, only a bias is added.
    pub fn new(
        shape: AttentionShape,
        rows: Option<Arc<RotaryRows>>,
        positions: Vec<usize>,
        device: &Device,
    ) -> Result<Self> {
        let places: Vec<u32> = positions.iter().map(|&position| position as u32).collect();
        let count = positions.iter().max().map_or(0, |last| last + 1);
        let tables = rows.as_ref().map(|rows| rows.tensors(count, device)).transpose()?;
        Ok(Self { shape, positions, rows, places: upload(&places, device)?, tables })
    }

    /// Adds `bias` `[qkv_width]` to qkv `[tokens, qkv_width]` and rotates its queries and keys, in place.
    pub fn rotate(&self, qkv: &Tensor, bias: Option<&Tensor>) -> Result<()> {
        let width = self.shape.qkv_width();
        if qkv.dims() != [self.positions.len(), width] || bias.is_some_and(|bias| bias.dims() != [width]) {
            bail!("rotation of {} tokens: qkv {:?}, bias {bias:?}", self.positions.len(), qkv.shape());
        }
        match (bias, &self.rows) {
            (None, None) => Ok(()),
            (bias, _) => qkv.inplace_op1(&Rotate { rotation: self, bias }),
        }
    }
}

struct Rotate<'a> {
    rotation: &'a Rotation,
    bias: Option<&'a Tensor>,
}

impl InplaceOp1 for Rotate<'_> {
    fn name(&self) -> &'static str {
        "rotate"
    }

    fn cpu_fwd(&self, qkv: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let shape = self.rotation.shape;
        let qkv = elements_mut(qkv, layout)?;
        if let Some(bias) = self.bias {
            with_slice(bias, |bias| {
                let rows = qkv.chunks_exact_mut(bias.len().max(1));
                rows.for_each(|row| row.iter_mut().zip(bias).for_each(|(x, b)| *x += b));
                Ok(())
            })?;
        }
        let Some(table) = &self.rotation.rows else { return Ok(()) };
        let rotated = (shape.heads + shape.kv_heads) * shape.head_dim;
        for (row, &position) in qkv.chunks_exact_mut(shape.qkv_width()).zip(&self.rotation.positions) {
            row[..rotated].chunks_exact_mut(shape.head_dim).for_each(|head| table.angles.rotate(head, position));
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, qkv: &mut candle_core::CudaStorage, layout: &Layout) -> Result<()> {
        let Rotation { shape, places, tables, .. } = self.rotation;
        let tables = tables.as_ref().map(|(cos, sin)| [cos, sin]);
        crate::models::cuda::rotate((qkv, layout), *shape, self.bias, tables, places)
    }
}
