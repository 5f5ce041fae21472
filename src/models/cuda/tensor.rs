//! Tensors as arguments of a kernel, and its results as tensors.

use candle_core::cuda_backend::CudaDType;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaView};
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, Layout, Result, Shape, Storage, Tensor, bail};

/// The contiguous elements of a tensor on a GPU, from the one at `first` on.
pub fn elements<'a, T: CudaDType>(storage: &'a Storage, layout: &Layout, first: usize) -> Result<CudaView<'a, T>> {
    match (storage, layout.contiguous_offsets()) {
        (Storage::Cuda(storage), Some((start, end))) if start + first <= end => {
            Ok(storage.as_cuda_slice::<T>()?.slice(start + first..end))
        }
        _ => bail!("a kernel of a GPU wants contiguous tensors of the GPU, not {layout:?} from {first} on"),
    }
}

/// What a kernel has written, as a tensor.
pub fn tensor<T: CudaDType>(slice: CudaSlice<T>, device: &CudaDevice, shape: impl Into<Shape>) -> Tensor {
    let storage = CudaStorage::wrap_cuda_slice(slice, device.clone());
    Tensor::from_storage(Storage::Cuda(storage), shape, BackpropOp::none(), false)
}

/// Refuses tensors that gradients are wanted of.
pub fn without_gradients<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
    if tensors.into_iter().any(Tensor::track_op) {
        bail!("a kernel of a GPU has no gradients");
    }
    Ok(())
}
