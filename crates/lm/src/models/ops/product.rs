//! Products of several matrices of the same shape.

use crate::models::cuda;
use candle_core::{Result, Tensor};

/// `left right`, or `left right^T`, by matrices of the last two dimensions; differentiable where gradients are tracked.
/// f32 is not rounded on the way on any device, which candle's product allows on a GPU.
///
/// # Errors
/// If shapes do not match, or the device fails.
pub fn product(left: &Tensor, right: &Tensor, is_transposed: bool) -> Result<Tensor> {
    match left.device().is_cuda() && !left.track_op() && !right.track_op() {
        true => cuda::product(left, right, is_transposed, left.dtype()),
        false if is_transposed => left.matmul(&right.t()?),
        false => left.matmul(right),
    }
}
