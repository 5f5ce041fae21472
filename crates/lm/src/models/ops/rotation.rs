//! The rotation of queries and keys in place, after the bias of their product.

use super::elements::{elements_mut, with_slice};
use crate::models::cuda::upload;
use crate::models::rotary::RotaryRows;
use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Result, Tensor, bail};
use kernels::attention::AttentionShape;
use std::sync::Arc;

/// The rotation of a batch.
pub struct Rotation {
    shape: AttentionShape,
    /// Of every token in its sequence.
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
