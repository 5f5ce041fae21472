//! The selective scan of Mamba and the convolution before it, over a packed batch, in f32.

use super::compile::{Kernel, kernel};
use super::inputs::{Columns, Scan, ScanColumns, ScanPlaces, to_u32};
use super::tensor::{elements, tensor, without_gradients};
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{LaunchConfig, PushKernelArg};
use candle_core::{Device, Result, Tensor, bail};
use kernels::cuda::{self, ScanTiling, THREADS};
use kernels::scan::{ScanShape, TimeStep};

/// The scan kernels for one shape.
pub struct Scans {
    conv: Kernel,
    scan: Kernel,
    shape: ScanShape,
    tiling: ScanTiling,
}

impl Scans {
    /// `None` if the device is not a GPU, or the kernels cannot be compiled for the shape.
    pub fn new(device: &Device, shape: ScanShape) -> Result<Option<Self>> {
        let (Device::Cuda(device), Some(tiling)) = (device, ScanTiling::for_shape(&shape)) else { return Ok(None) };
        let conv = kernel(device, &cuda::causal_conv(), "causal_conv")?;
        let scan = kernel(device, &cuda::selective_scan(&shape, &tiling), "selective_scan")?;
        Ok(conv.zip(scan).map(|(conv, scan)| Self { conv, scan, shape, tiling }))
    }

    /// The convolution with its activation, `[tokens, channels]`; taps `[kernel, channels]`, bias `[channels]`.
    pub fn conv(&self, x: Columns, taps: &Tensor, bias: &Tensor, places: &ScanPlaces) -> Result<Tensor> {
        without_gradients([x.tensor, taps, bias])?;
        let ((tokens, stride), (kernel, channels)) = (x.tensor.dims2()?, taps.dims2()?);
        let mismatched = bias.dims() != [channels] || places.positions.dims() != [tokens] || tokens * channels == 0;
        if mismatched || x.first + channels > stride {
            bail!(
                "convolution: input {:?} from column {} and taps {:?} do not match",
                x.tensor.shape(),
                x.first,
                taps.shape()
            );
        }
        let held = [x.tensor, taps, bias].map(Tensor::storage_and_layout);
        let view = |i: usize, first| elements::<f32>(&held[i].0, held[i].1, first);
        let (x, taps, bias) = (view(0, x.first)?, view(1, 0)?, view(2, 0)?);
        let (storage, layout) = places.positions.storage_and_layout();
        let positions = elements::<u32>(&storage, layout, 0)?;

        let device = places.positions.device().as_cuda_device()?;
        // SAFETY: the kernel writes every element; what it reads at earlier positions exists, as `ScanPlaces`
        // guarantees.
        let mut out = unsafe { device.alloc::<f32>(tokens * channels)? };
        let config = LaunchConfig {
            grid_dim: (to_u32(tokens)?, to_u32(channels.div_ceil(THREADS))?, 1),
            block_dim: (to_u32(THREADS)?, 1, 1),
            shared_mem_bytes: 0,
        };
        let (stride, width, kernel) = (stride as u64, to_u32(channels)?, to_u32(kernel)?);
        let mut launch = self.conv.launch();
        launch.arg(&x).arg(&stride).arg(&taps).arg(&bias).arg(&positions).arg(&mut out).arg(&width).arg(&kernel);
        // SAFETY: these are the arguments of the kernel, and the views are as long as what it reads and writes.
        unsafe { launch.launch(config) }.w()?;
        Ok(tensor(out, device, (tokens, channels)))
    }

    /// The gated result of the scan, `[tokens, channels]`.
    pub fn scan(&self, columns: &ScanColumns, scan: &Scan, places: &ScanPlaces) -> Result<Tensor> {
        let ScanColumns { x, gate, time_steps, b, c } = *columns;
        let Scan { a, d, time_bias, time_limit, .. } = scan;
        let (shape, varying) = (self.shape, [x, gate, time_steps, b, c]);
        let (tokens, sequences) = (places.positions.dim(0)?, places.bounds.dim(0)?);
        let channels = shape.channels();
        check_shapes(columns, scan, &shape, tokens)?;
        let held = varying.map(|columns| columns.tensor.storage_and_layout());
        let learned = [a, d, time_bias].map(Tensor::storage_and_layout);
        let (storage, layout) = places.bounds.storage_and_layout();
        let bounds = elements::<u32>(&storage, layout, 0)?;

        let device = places.bounds.device().as_cuda_device()?;
        // SAFETY: the kernel writes every element, since the sequences of `ScanPlaces` cover the whole batch.
        let mut out = unsafe { device.alloc::<f32>(tokens * channels)? };
        let config = LaunchConfig {
            grid_dim: (to_u32(sequences * self.tiling.blocks(&shape))?, 1, 1),
            block_dim: (to_u32(self.tiling.threads)?, 1, 1),
            shared_mem_bytes: 0,
        };
        let view = |i: usize| elements::<f32>(&held[i].0, held[i].1, varying[i].first);
        let views = [view(0)?, view(1)?, view(2)?, view(3)?, view(4)?];
        let strides = varying.map(|columns| columns.tensor.dims()[1] as u64);
        let view = |i: usize| elements::<f32>(&learned[i].0, learned[i].1, 0);
        let learned = [view(0)?, view(1)?, view(2)?];
        let limits = (time_limit.0 as f32, time_limit.1 as f32);
        let (heads, head_dim, groups) = (to_u32(shape.heads)?, to_u32(shape.head_dim)?, to_u32(shape.groups)?);
        let mut launch = self.scan.launch();
        for (view, stride) in views.iter().zip(&strides) {
            launch.arg(view).arg(stride);
        }
        for view in &learned {
            launch.arg(view);
        }
        launch.arg(&limits.0).arg(&limits.1).arg(&bounds).arg(&mut out);
        launch.arg(&heads).arg(&head_dim).arg(&groups);
        // SAFETY: these are the arguments of the kernel, and the views are as long as what it reads and writes.
        unsafe { launch.launch(config) }.w()?;
        Ok(tensor(out, device, (tokens, channels)))
    }
}

/// Refuses tensors that a kernel would read beyond.
fn check_shapes(columns: &ScanColumns, scan: &Scan, shape: &ScanShape, tokens: usize) -> Result<()> {
    let ScanColumns { x, gate, time_steps, b, c } = *columns;
    let Scan { a, d, time_bias, .. } = scan;
    let varying = [x, gate, time_steps, b, c];
    without_gradients(varying.map(|columns| columns.tensor).into_iter().chain([a, d, time_bias]))?;
    let (channels, steps, mixing) = (shape.channels(), shape.time_steps(), shape.mixing_width());
    if tokens * channels == 0 || !shape.heads.is_multiple_of(shape.groups) {
        bail!("scan: {tokens} tokens and {shape:?} do not match");
    }
    for (Columns { tensor, first }, width) in varying.into_iter().zip([channels, channels, steps, mixing, mixing]) {
        let (rows, stride) = tensor.dims2()?;
        if rows != tokens || first + width > stride {
            bail!("scan: {tokens} tokens and {width} columns from column {first} exceed {:?}", tensor.shape());
        }
    }
    let rates = match shape.time_step {
        TimeStep::PerChannel => shape.states * steps,
        TimeStep::PerHead => steps,
    };
    if a.elem_count() != rates || [d, time_bias].iter().any(|learned| learned.dims() != [steps]) {
        bail!("scan: {shape:?} and weights {:?}, {:?}, {:?} do not match", a.shape(), d.shape(), time_bias.shape());
    }
    Ok(())
}
