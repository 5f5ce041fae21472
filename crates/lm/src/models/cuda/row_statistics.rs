//! The statistics of rows of logits in f32: one pass over the product as cuBLAS wrote it.

use super::compile::{Kernel, kernel};
use super::inputs::{LogitRows, to_u32};
use super::tensor::{elements, tensor, without_gradients};
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaView, LaunchConfig, PushKernelArg};
use candle_core::{Device, Result, Tensor, bail};
use kernels::cuda::{self, ROW_NUMBERS, rows_per_block};

/// The reduction kernel.
pub struct RowStatistics(Kernel);

impl RowStatistics {
    /// `None` if the device is not a GPU, or the kernel cannot be compiled.
    pub fn new(device: &Device) -> Result<Option<Self>> {
        let Device::Cuda(device) = device else { return Ok(None) };
        Ok(kernel(device, &cuda::row_statistics(), "row_statistics")?.map(Self))
    }

    /// Queues the reduction; the result is `[rows, 5]`, f32: the maximum, the sum of weights `e^(x - max)`, the
    /// weighted mean of `x - max`, the weighted squares about that mean, and the target logit, NaN if it is in another
    /// tile.
    pub fn reduce(&self, rows: &LogitRows) -> Result<Tensor> {
        without_gradients([rows.product].into_iter().chain(rows.bias))?;
        let (height, columns) = rows.product.dims2()?;
        if height == 0 || columns == 0 || rows.targets.dims() != [height] {
            bail!("row statistics: product [{height}, {columns}] and targets {:?} do not match", rows.targets.shape());
        }
        if let Some(bias) = rows.bias.filter(|bias| bias.dims() != [columns]) {
            bail!("row statistics: {columns} columns of logits and bias {:?} do not match", bias.shape());
        }
        let (storage, layout) = rows.product.storage_and_layout();
        let product: CudaView<f32> = elements(&storage, layout, 0)?;
        let (storage, layout) = rows.targets.storage_and_layout();
        let targets: CudaView<u32> = elements(&storage, layout, 0)?;
        let held = rows.bias.map(Tensor::storage_and_layout);
        let bias: Option<CudaView<f32>> =
            held.as_ref().map(|(storage, layout)| elements(storage, layout, 0)).transpose()?;

        let device = rows.product.device().as_cuda_device()?;
        // SAFETY: the kernel writes every element.
        let mut out = unsafe { device.alloc::<f32>(height * ROW_NUMBERS)? };
        let (lanes, per_block) = rows_per_block(columns);
        let config = LaunchConfig {
            grid_dim: (to_u32(height.div_ceil(per_block))?, 1, 1),
            block_dim: (to_u32(lanes)?, to_u32(per_block)?, 1),
            shared_mem_bytes: 0,
        };
        let (no_bias, cap) = (0u64, rows.soft_cap.map_or(0.0, |cap| cap as f32));
        let (height, columns, first) = (to_u32(height)?, to_u32(columns)?, to_u32(rows.first)?);
        let mut launch = self.0.launch();
        launch.arg(&product);
        match &bias {
            Some(bias) => launch.arg(bias),
            None => launch.arg(&no_bias),
        };
        launch.arg(&cap).arg(&targets).arg(&mut out).arg(&height).arg(&columns).arg(&first);
        // SAFETY: these are the arguments of the kernel, and the views are as long as what it reads and writes.
        unsafe { launch.launch(config) }.w()?;
        Ok(tensor(out, device, (height as usize, ROW_NUMBERS)))
    }
}
