//! Access to the elements of tensors, and operations that several others share.

use crate::models::cuda;
use candle_core::{CpuStorage, DType, Device, Layout, Result, Storage, Tensor, bail};

/// Converts a tensor to a type wide enough for sums: f32 for the half types, otherwise unchanged.
pub fn wide(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::F16 | DType::BF16 => x.to_dtype(DType::F32),
        _ => Ok(x.clone()),
    }
}

/// `cap tanh(x / cap)` in differentiable operations.
pub fn soft_cap(x: &Tensor, cap: f64) -> Result<Tensor> {
    (x / cap)?.tanh()? * cap
}

/// Calls `read` with the contiguous f32 elements of a CPU tensor.
pub fn with_slice<T>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => read(elements(storage, layout)?),
        _ => bail!("a CPU kernel was given a tensor on another device"),
    }
}

/// The contiguous f32 elements of a storage.
pub fn elements<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("a CPU kernel needs contiguous f32 elements, got {:?} {layout:?}", dtype_of(storage)),
    }
}

/// The contiguous f32 elements of a storage, for writing.
pub fn elements_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    let dtype = dtype_of(storage);
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("a CPU kernel needs contiguous f32 elements, got {dtype:?} {layout:?}"),
    }
}

fn dtype_of(storage: &CpuStorage) -> DType {
    candle_core::backend::BackendStorage::dtype(storage)
}

/// `left right`, or `left right^T`, by matrices of the last two dimensions; differentiable where gradients are tracked.
/// f32 is not rounded on the way on any device, which candle's product allows on a GPU.
pub fn product(left: &Tensor, right: &Tensor, is_transposed: bool) -> Result<Tensor> {
    match left.device().is_cuda() && !left.track_op() && !right.track_op() {
        true => cuda::product(left, right, is_transposed, left.dtype()),
        false if is_transposed => left.matmul(&right.t()?),
        false => left.matmul(right),
    }
}

/// Returns true if x has a gradient, and the weights have none, in a form that kernels compute gradients in: something
/// else than weights is tuned on the CPU. candle would compute gradients of the weights as well, and its element-wise
/// operations run on one thread.
pub(super) fn is_tuned(x: &Tensor, weights: &[Option<&Tensor>]) -> bool {
    let is_f32 = |tensor: &Tensor| tensor.dtype() == DType::F32 && tensor.device().is_cpu();
    let is_frozen = |weight: &&Tensor| is_f32(weight) && !weight.track_op();
    x.track_op() && is_f32(x) && x.rank() == 2 && weights.iter().flatten().all(is_frozen)
}

/// Calls `write` with room for the gradient of x, the elements of x, and those of the gradient of its result.
pub(super) fn gradient_of(
    x: &Tensor,
    gradient: &Tensor,
    write: impl FnOnce(&mut [f32], &[f32], &[f32]),
) -> Result<Option<Tensor>> {
    let mut out = vec![0f32; x.elem_count()];
    let (x, gradient) = (x.contiguous()?, gradient.contiguous()?);
    with_slice(&x, |x| {
        with_slice(&gradient, |gradient| {
            write(&mut out, x, gradient);
            Ok(())
        })
    })?;
    Tensor::from_vec(out, x.shape(), &Device::Cpu).map(Some)
}
