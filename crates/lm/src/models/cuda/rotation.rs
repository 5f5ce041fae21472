//! The bias of queries, keys and values, and the rotation of queries and keys.

use super::compile::required_kernel;
use super::inputs::to_u32;
use super::tensor::{TensorAddress, cuda_storage, without_gradients};
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaView, LaunchConfig, PushKernelArg};
use candle_core::{CudaStorage, DType, Layout, Result, Tensor, bail};
use kernels::attention::AttentionShape;
use kernels::cuda::{self, rotation_threads};

/// Adds `bias` `[qkv_width]`, in f32, to qkv `[tokens, qkv_width]` and rotates queries and keys by the positions
/// `[tokens]` of their tokens; `tables` are cosines and sines `[positions, 1, half]`.
pub fn rotate(
    qkv: (&mut CudaStorage, &Layout),
    shape: AttentionShape,
    bias: Option<&Tensor>,
    tables: Option<[&Tensor; 2]>,
    positions: &Tensor,
) -> Result<()> {
    without_gradients(bias)?;
    let (tokens, width) = qkv.1.shape().dims2()?;
    let half = tables.map_or(Ok(0), |[cos, _]| cos.dim(2))?;
    if width != shape.qkv_width() || 2 * half > shape.head_dim || positions.dims() != [tokens] {
        bail!("rotation: qkv {:?}, {half} pairs and {shape:?} do not match", qkv.1.shape());
    }
    if tokens == 0 {
        return Ok(());
    }
    let device = qkv.0.device.clone();
    let stream = device.cuda_stream();
    let bias = bias.map(Tensor::storage_and_layout);
    let bias = match &bias {
        Some((storage, layout)) => Some(TensorAddress::f32((cuda_storage(storage)?, layout), width, &stream)?),
        None => None,
    };
    let tables = tables.map(|tables| tables.map(Tensor::storage_and_layout));
    let tables = match &tables {
        Some([(cos, layout), (sin, sin_layout)]) => {
            let count = layout.shape().elem_count();
            Some([
                TensorAddress::f32((cuda_storage(cos)?, layout), count, &stream)?,
                TensorAddress::f32((cuda_storage(sin)?, sin_layout), count, &stream)?,
            ])
        }
        None => None,
    };
    let (storage, layout) = positions.storage_and_layout();
    let positions: CudaView<u32> = super::tensor::elements(&storage, layout, 0)?;
    let qkv = TensorAddress::new((&*qkv.0, qkv.1), tokens * width, &stream)?;
    let name = match qkv.dtype {
        DType::F16 => "rotate_f16",
        DType::BF16 => "rotate_bf16",
        _ => "rotate_f32",
    };
    let kernel = required_kernel(&device, &cuda::rotation(), name)?;
    let heads = shape.heads + shape.kv_heads;
    let config = LaunchConfig {
        grid_dim: (to_u32(tokens)?, 1, 1),
        block_dim: (to_u32(rotation_threads(width))?, 1, 1),
        shared_mem_bytes: 0,
    };
    let bias = bias.as_ref().map_or(0, |bias| bias.address);
    let [cos, sin] = tables.as_ref().map_or([0, 0], |[cos, sin]| [cos.address, sin.address]);
    let (columns, heads) = (to_u32(width)?, to_u32(heads)?);
    let (head_dim, half) = (to_u32(shape.head_dim)?, to_u32(half)?);
    let mut launch = kernel.launch();
    launch.arg(&qkv.address).arg(&bias).arg(&cos).arg(&sin).arg(&positions);
    launch.arg(&columns).arg(&heads).arg(&head_dim).arg(&half);
    // SAFETY: these are the arguments of the kernel; the tables have a row for every position, since `Rotation` makes
    // both of the same positions.
    unsafe { launch.launch(config) }.w()?;
    Ok(())
}
