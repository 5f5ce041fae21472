//! The kernels that a decoder needs.

use super::compile::kernel;
use super::flash_attention::FlashAttention;
use super::inputs::attention_tiling;
use super::norm::kernel_name;
use crate::models::arch::{Activation, NormKind};
use candle_core::{DType, Device, Result};
use kernels::cuda;

/// Returns true if the kernels of a decoder run on a device: those of norms, activations, rotation and, in a half type and
/// with heads of a size that it has tiles for, attention.
pub fn has_kernels(
    device: &Device,
    norm: NormKind,
    activation: Activation,
    head_dim: usize,
    dtype: DType,
) -> Result<bool> {
    let Device::Cuda(gpu) = device else { return Ok(false) };
    let suffix = |names: [&'static str; 3]| match dtype {
        DType::F16 => names[1],
        DType::BF16 => names[2],
        _ => names[0],
    };
    let steps = [
        (cuda::norm(norm), kernel_name([DType::F32, dtype])?),
        // After a norm the residual stream has the type of products; heads of queries and keys have it as well.
        (cuda::norm(norm), kernel_name([dtype, dtype])?),
        (cuda::norm(NormKind::Rms), kernel_name([dtype, dtype])?),
        // Biases are added to the residual stream as well.
        (cuda::activation(None), "activate_f32"),
        (cuda::activation(None), suffix(["activate_f32", "activate_f16", "activate_bf16"])),
        (cuda::activation(Some(activation)), suffix(["activate_f32", "activate_f16", "activate_bf16"])),
        (cuda::activation(Some(activation)), suffix(["gate_f32", "gate_f16", "gate_bf16"])),
        (cuda::rotation(), suffix(["rotate_f32", "rotate_f16", "rotate_bf16"])),
    ];
    for (program, name) in steps {
        if kernel(gpu, &program, name)?.is_none() {
            return Ok(false);
        }
    }
    Ok(attention_tiling(head_dim, dtype).is_none() || FlashAttention::new(device, head_dim, dtype)?.is_some())
}
