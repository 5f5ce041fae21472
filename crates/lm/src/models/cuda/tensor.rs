//! Conversions between tensors and the arguments and results of a kernel.

use candle_core::cuda_backend::cudarc::driver::{CudaSlice, CudaStream, CudaView, DevicePtr, SyncOnDrop};
use candle_core::cuda_backend::{CudaDType, CudaStorageSlice};
use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, DType, Layout, Result, Shape, Storage, Tensor, bail};

/// The contiguous elements of a tensor on a GPU, from element `first`.
pub fn elements<'a, T: CudaDType>(storage: &'a Storage, layout: &Layout, first: usize) -> Result<CudaView<'a, T>> {
    match (storage, layout.contiguous_offsets()) {
        (Storage::Cuda(storage), Some((start, end))) if start + first <= end => {
            Ok(storage.as_cuda_slice::<T>()?.slice(start + first..end))
        }
        _ => bail!("a GPU kernel needs a contiguous tensor on the GPU, got {layout:?} from element {first}"),
    }
}

/// A tensor, within an operation on its storage.
pub type Operand<'a> = (&'a CudaStorage, &'a Layout);

/// The address of a tensor's elements, for kernels of several types and for cuBLAS.
pub struct TensorAddress<'a> {
    pub address: u64,
    pub dtype: DType,
    // Orders streams, if there is more than one.
    _order: SyncOnDrop<'a>,
}

impl<'a> TensorAddress<'a> {
    pub fn new((storage, layout): Operand<'a>, count: usize, stream: &'a CudaStream) -> Result<Self> {
        let Some((first, _)) = layout.contiguous_offsets().filter(|(first, end)| end - first == count) else {
            bail!("a GPU kernel needs {count} contiguous elements, got {layout:?}");
        };
        let dtype = candle_core::backend::BackendStorage::dtype(storage);
        let (start, _order) = match &storage.slice {
            CudaStorageSlice::F32(slice) => slice.device_ptr(stream),
            CudaStorageSlice::F16(slice) => slice.device_ptr(stream),
            CudaStorageSlice::BF16(slice) => slice.device_ptr(stream),
            _ => bail!("a GPU kernel needs elements in f32, f16 or bf16, got {dtype:?}"),
        };
        Ok(Self { address: start + (first * dtype.size_in_bytes()) as u64, dtype, _order })
    }

    /// As [`TensorAddress::new`], of a tensor in f32.
    pub fn f32(tensor: Operand<'a>, count: usize, stream: &'a CudaStream) -> Result<Self> {
        let elements = Self::new(tensor, count, stream)?;
        match elements.dtype {
            DType::F32 => Ok(elements),
            other => bail!("a GPU kernel needs parameters in f32, got {other:?}"),
        }
    }
}

/// The storage of a tensor on a GPU.
pub fn cuda_storage(storage: &Storage) -> Result<&CudaStorage> {
    match storage {
        Storage::Cuda(storage) => Ok(storage),
        _ => bail!("a GPU kernel needs a tensor on the GPU"),
    }
}

/// Memory for `count` elements of a type.
///
/// # Safety
/// Every element is written before it is read.
pub unsafe fn allocate(device: &CudaDevice, dtype: DType, count: usize) -> Result<CudaStorage> {
    // SAFETY: as for this function.
    unsafe {
        Ok(match dtype {
            DType::F32 => CudaStorage::wrap_cuda_slice(device.alloc::<f32>(count)?, device.clone()),
            DType::F16 => CudaStorage::wrap_cuda_slice(device.alloc::<half::f16>(count)?, device.clone()),
            DType::BF16 => CudaStorage::wrap_cuda_slice(device.alloc::<half::bf16>(count)?, device.clone()),
            other => bail!("a GPU kernel writes f32, f16 or bf16, not {other:?}"),
        })
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
