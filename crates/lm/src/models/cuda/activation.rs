//! Biases, activations and gates.

use super::compile::required_kernel;
use super::inputs::to_u32;
use super::tensor::{Operand, TensorAddress, allocate, cuda_storage, without_gradients};
use crate::models::arch::Activation;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
use candle_core::{CudaStorage, DType, Layout, Result, Tensor, bail};
use kernels::cuda::{self, row_blocks};

/// `activation(x + bias)` in place, x `[.., width]` and bias `[width]` in f32; both are optional.
pub fn activate(x: (&mut CudaStorage, &Layout), bias: Option<&Tensor>, activation: Option<Activation>) -> Result<()> {
    without_gradients(bias)?;
    let width = x.1.dims().last().copied().unwrap_or(1);
    let count = x.1.shape().elem_count();
    if count == 0 {
        return Ok(());
    }
    let device = x.0.device.clone();
    let stream = device.cuda_stream();
    let held = bias.map(Tensor::storage_and_layout);
    let bias = match &held {
        Some((storage, layout)) => Some(TensorAddress::f32((cuda_storage(storage)?, layout), width, &stream)?),
        None => None,
    };
    let x = TensorAddress::new((&*x.0, x.1), count, &stream)?;
    let kernel = required_kernel(
        &device,
        &cuda::activation(activation),
        match x.dtype {
            DType::F16 => "activate_f16",
            DType::BF16 => "activate_bf16",
            _ => "activate_f32",
        },
    )?;
    let (rows, columns, bias) = ((count / width) as u64, to_u32(width)?, bias.as_ref().map_or(0, |bias| bias.address));
    let mut launch = kernel.launch();
    launch.arg(&x.address).arg(&bias).arg(&rows).arg(&columns);
    // SAFETY: these are the arguments of the kernel; x has `rows` rows of `width` elements, and the bias `width`.
    unsafe { launch.launch(grid(count / width, width)?) }.w()?;
    Ok(())
}

/// `activation(x[.., ..inner]) * x[.., inner..]` of x `[tokens, 2 inner]`.
pub fn gate(x: Operand, activation: Activation) -> Result<CudaStorage> {
    let (rows, width) = x.1.shape().dims2()?;
    if !width.is_multiple_of(2) {
        bail!("gate: {width} columns are not two halves");
    }
    let inner = width / 2;
    let device = x.0.device.clone();
    let stream = device.cuda_stream();
    let x = TensorAddress::new(x, rows * width, &stream)?;
    // SAFETY: the kernel writes every element.
    let result = unsafe { allocate(&device, x.dtype, rows * inner)? };
    if rows * inner == 0 {
        return Ok(result);
    }
    let kernel = required_kernel(
        &device,
        &cuda::activation(Some(activation)),
        match x.dtype {
            DType::F16 => "gate_f16",
            DType::BF16 => "gate_bf16",
            _ => "gate_f32",
        },
    )?;
    let layout = Layout::contiguous(rows * inner);
    let out = TensorAddress::new((&result, &layout), rows * inner, &stream)?;
    let (no_bias, tokens, columns) = (0u64, rows as u64, to_u32(inner)?);
    let mut launch = kernel.launch();
    launch.arg(&x.address).arg(&no_bias).arg(&out.address).arg(&tokens).arg(&columns);
    // SAFETY: these are the arguments of the kernel; x has `rows` rows of twice `inner` elements, and `out` of `inner`.
    unsafe { launch.launch(grid(rows, inner)?) }.w()?;
    drop(out);
    Ok(result)
}

fn grid(rows: usize, width: usize) -> Result<LaunchConfig> {
    let [lanes, per_block, across, down] = row_blocks(rows, width);
    Ok(LaunchConfig {
        grid_dim: (to_u32(across)?, to_u32(down)?, 1),
        block_dim: (to_u32(lanes)?, to_u32(per_block)?, 1),
        shared_mem_bytes: 0,
    })
}
