//! The steps of a mixer with this crate's CPU kernels.

use super::steps::{Conv, RmsNorm};
use crate::models::cuda::{Columns, Scan, ScanColumns};
use candle_core::{Device, Result, Storage, Tensor, bail};
use kernels::gemm::MatrixView;
use kernels::scan::{ScanInput, ScanWeights, selective_scan};
use kernels::{conv as convolution, rms_norm as norm};
use std::ops::Range;

pub fn rms_norm(x: &Tensor, norm: &RmsNorm) -> Result<Tensor> {
    let mut out = vec![0f32; x.elem_count()];
    with_slices([x, &norm.weight], |[x, weight]| norm::rms_norm(&mut out, x, weight, norm.groups, norm.eps as f32))?;
    Tensor::from_vec(out, x.shape(), &Device::Cpu)
}

/// The convolution with its activation, `[tokens, channels]`.
pub fn conv(x: Columns, conv: &Conv, positions: &[usize]) -> Result<Tensor> {
    let shape = (positions.len(), conv.bias.dim(0)?);
    let mut out = vec![0f32; shape.0 * shape.1];
    let stride = x.tensor.dim(1)?;
    with_slices([x.tensor, &conv.taps, &conv.bias], |[data, taps, bias]| {
        convolution::causal_conv(&mut out, MatrixView::rows(&data[x.first..], stride), taps, bias, positions);
    })?;
    Tensor::from_vec(out, shape, &Device::Cpu)
}

/// The gated result of the scan, `[tokens, channels]`.
pub fn scan(columns: &ScanColumns, scan: &Scan, sequences: &[Range<usize>]) -> Result<Tensor> {
    let ScanColumns { x, gate, time_steps, b, c } = *columns;
    let varying = [x, gate, time_steps, b, c];
    let shape = (x.tensor.dim(0)?, scan.shape.channels());
    let mut out = vec![0f32; shape.0 * shape.1];
    with_slices(varying.map(|columns| columns.tensor), |data| {
        let view = |i: usize| MatrixView::rows(&data[i][varying[i].first..], data[i].len() / shape.0);
        let input = ScanInput { x: view(0), gate: view(1), time_steps: view(2), b: view(3), c: view(4) };
        with_slices([&scan.a, &scan.d, &scan.time_bias], |[a, d, time_bias]| {
            let time_limit = (scan.time_limit.0 as f32, scan.time_limit.1 as f32);
            let weights = ScanWeights { a, d, time_bias, time_limit };
            selective_scan(&mut out, &input, &weights, sequences, scan.shape);
        })
    })??;
    Tensor::from_vec(out, shape, &Device::Cpu)
}

/// Calls `read` with the contiguous f32 elements of several CPU tensors.
fn with_slices<const N: usize, T>(tensors: [&Tensor; N], read: impl FnOnce([&[f32]; N]) -> T) -> Result<T> {
    let held = tensors.map(Tensor::storage_and_layout);
    let mut slices = [&[][..]; N];
    for (slice, (storage, layout)) in slices.iter_mut().zip(&held) {
        *slice = match (&**storage, layout.contiguous_offsets()) {
            (Storage::Cpu(storage), Some((start, end))) => &storage.as_slice::<f32>()?[start..end],
            _ => bail!("a CPU kernel needs contiguous tensors on the CPU, got {layout:?}"),
        };
    }
    Ok(read(slices))
}
