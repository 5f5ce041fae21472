//! Norms of rows, and of the heads of queries and keys in place.

use super::compile::required_kernel;
use super::inputs::to_u32;
use super::tensor::{Operand, TensorAddress, allocate, cuda_storage, without_gradients};
use crate::models::arch::NormKind;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
use candle_core::{CudaDevice, CudaStorage, DType, Layout, Result, Tensor, bail};
use kernels::cuda::{self, norm_blocks};
use std::ops::Range;

/// Segments of rows, side by side from the addresses on.
struct Segments {
    x: u64,
    out: u64,
    /// Elements from one row to the next, of both.
    stride: usize,
    rows: usize,
    width: usize,
    /// In a row.
    count: usize,
}

/// Addresses of f32 parameters, `bias` 0 if there is none.
struct NormParameters {
    weight: u64,
    bias: u64,
    eps: f32,
}

/// The rows of x normalised, in a type: x has the same one, or f32. Weight and bias are in f32.
pub fn normalise(
    x: Operand,
    weight: &Tensor,
    bias: Option<&Tensor>,
    kind: NormKind,
    eps: f64,
    out: DType,
) -> Result<CudaStorage> {
    without_gradients([weight].into_iter().chain(bias))?;
    let (count, width) = (x.1.shape().elem_count(), weight.dims1()?);
    if width == 0 || !count.is_multiple_of(width) {
        bail!("norm: x {:?} and weight {:?} do not match", x.1.shape(), weight.shape());
    }
    let (weight, bias) = (weight.storage_and_layout(), bias.map(Tensor::storage_and_layout));
    let device = x.0.device.clone();
    let stream = device.cuda_stream();
    // SAFETY: the kernel writes every element.
    let result = unsafe { allocate(&device, out, count)? };
    let layout = Layout::contiguous(count);
    let weight = TensorAddress::f32((cuda_storage(&weight.0)?, weight.1), width, &stream)?;
    let bias = match &bias {
        Some((storage, layout)) => Some(TensorAddress::f32((cuda_storage(storage)?, layout), width, &stream)?),
        None => None,
    };
    let x = TensorAddress::new(x, count, &stream)?;
    let written = TensorAddress::new((&result, &layout), count, &stream)?;
    let segments = Segments { x: x.address, out: written.address, stride: width, rows: count / width, width, count: 1 };
    let bias = bias.as_ref().map_or(0, |bias| bias.address);
    let parameters = NormParameters { weight: weight.address, bias, eps: eps as f32 };
    launch(&device, kind, [x.dtype, out], &segments, &parameters)?;
    drop(written);
    Ok(result)
}

/// Divides the columns of x `[rows, width]` into segments of the length of the weight, and replaces each by its RMS
/// norm.
pub fn normalise_columns(
    x: (&mut CudaStorage, &Layout),
    columns: Range<usize>,
    weight: &Tensor,
    eps: f32,
) -> Result<()> {
    let (rows, stride) = x.1.shape().dims2()?;
    without_gradients([weight])?;
    let width = weight.dims1()?;
    if width == 0 || !columns.len().is_multiple_of(width) || columns.end > stride {
        bail!("norm: columns {columns:?} of {:?} and weight {:?} do not match", x.1.shape(), weight.shape());
    }
    let weight = weight.storage_and_layout();
    let device = x.0.device.clone();
    let stream = device.cuda_stream();
    let weight = TensorAddress::f32((cuda_storage(&weight.0)?, weight.1), width, &stream)?;
    let x = TensorAddress::new((&*x.0, x.1), rows * stride, &stream)?;
    let first = x.address + (columns.start * x.dtype.size_in_bytes()) as u64;
    let segments = Segments { x: first, out: first, stride, rows, width, count: columns.len() / width };
    let parameters = NormParameters { weight: weight.address, bias: 0, eps };
    launch(&device, NormKind::Rms, [x.dtype, x.dtype], &segments, &parameters)
}

/// The name of the kernel from one type to another.
pub(super) fn kernel_name(types: [DType; 2]) -> Result<&'static str> {
    Ok(match types {
        [DType::F32, DType::F32] => "norm_f32_f32",
        [DType::F32, DType::F16] => "norm_f32_f16",
        [DType::F32, DType::BF16] => "norm_f32_bf16",
        [DType::F16, DType::F16] => "norm_f16_f16",
        [DType::BF16, DType::BF16] => "norm_bf16_bf16",
        [from, to] => bail!("there is no norm kernel from {from:?} to {to:?}"),
    })
}

fn launch(
    device: &CudaDevice,
    kind: NormKind,
    types: [DType; 2],
    segments: &Segments,
    parameters: &NormParameters,
) -> Result<()> {
    let all = segments.rows * segments.count;
    if all == 0 {
        return Ok(());
    }
    let name = kernel_name(types)?;
    let kernel = required_kernel(device, &cuda::norm(kind), name)?;
    let (lanes, per_block) = norm_blocks(segments.width);
    let config = LaunchConfig {
        grid_dim: (to_u32(all.div_ceil(per_block))?, 1, 1),
        block_dim: (to_u32(lanes)?, to_u32(per_block)?, 1),
        shared_mem_bytes: 0,
    };
    // Their product is a 32-bit number in the kernel.
    to_u32(all)?;
    let (rows, width, count) = (to_u32(segments.rows)?, to_u32(segments.width)?, to_u32(segments.count)?);
    let stride = segments.stride as u64;
    let mut launch = kernel.launch();
    launch.arg(&segments.x).arg(&stride).arg(&segments.out).arg(&stride);
    launch.arg(&parameters.weight).arg(&parameters.bias);
    launch.arg(&rows).arg(&width).arg(&count).arg(&parameters.eps);
    // SAFETY: these are the arguments of the kernel, and the segments lie within the tensors whose addresses they are.
    unsafe { launch.launch(config) }.w()?;
    Ok(())
}
