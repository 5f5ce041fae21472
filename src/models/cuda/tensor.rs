//! Conversions between tensors and the arguments and results of a kernel.

use candle_core::cuda_backend::CudaDType;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView};
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, Layout, Result, Shape, Storage, Tensor, bail};

/// The contiguous elements of a tensor on a GPU, from element `first`.
pub fn elements<'a, T: CudaDType>(storage: &'a Storage, layout: &Layout, first: usize) -> Result<CudaView<'a, T>> {
    match (storage, layout.contiguous_offsets()) {
        (Storage::Cuda(storage), Some((start, end))) if start + first <= end => {
            Ok(storage.as_cuda_slice::<T>()?.slice(start + first..end))
        }
        _ => bail!("a GPU kernel needs a contiguous tensor on the GPU, got {layout:?} from element {first}"),
    }
}

/// Wraps what a kernel has written as a tensor.
pub fn tensor<T: CudaDType>(slice: CudaSlice<T>, device: &CudaDevice, shape: impl Into<Shape>) -> Tensor {
    let storage = CudaStorage::wrap_cuda_slice(slice, device.clone());
    Tensor::from_storage(Storage::Cuda(storage), shape, BackpropOp::none(), false)
}

/// Refuses tensors that gradients are tracked for.
pub fn without_gradients<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    if tensors.into_iter().any(Tensor::track_op) {
        bail!("GPU kernels do not compute gradients");
    }
    Ok(())
}
