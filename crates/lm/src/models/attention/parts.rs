//! The parts of a fused projection.

use candle_core::{D, Result, Tensor};
use kernels::attention::AttentionShape;

/// Queries, keys and values `[tokens, heads, head_dim]`.
pub fn parts(qkv: &Tensor, shape: AttentionShape) -> Result<[Tensor; 3]> {
    let AttentionShape { heads, kv_heads, head_dim, .. } = shape;
    let part = |first: usize, count: usize| {
        let columns = qkv.narrow(D::Minus1, first * head_dim, count * head_dim)?;
        columns.reshape(((), count, head_dim))
    };
    Ok([part(0, heads)?, part(heads, kv_heads)?, part(heads + kv_heads, kv_heads)?])
}
