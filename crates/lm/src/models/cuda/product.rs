//! Products by cuBLAS. Unlike candle's, they never round f32 on the way (candle allows kernels that do), write f32 from
//! half types where that is wanted, and add to what is there.

use super::blas::ProductShape;
use super::tensor::{Operand, TensorAddress, allocate, cuda_storage, without_gradients};
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::cublas::result::gemm_strided_batched_ex;
use candle_core::cuda_backend::cudarc::cublas::sys::{
    cublasComputeType_t, cublasGemmAlgo_t, cublasOperation_t, cudaDataType_t,
};
use candle_core::op::BackpropOp;
use candle_core::{CudaStorage, DType, Layout, Result, Shape, Storage, Tensor, bail};
use std::ffi::c_void;

/// `left right`, or `left right^T`, by matrices of the last two dimensions, in a type: that of the operands, or f32.
pub fn product(left: &Tensor, right: &Tensor, is_transposed: bool, out: DType) -> Result<Tensor> {
    without_gradients([left, right])?;
    let (left, right) = (left.contiguous()?, right.contiguous()?);
    let (shape, dims) = ProductShape::matching(left.dims(), right.dims(), is_transposed)?;
    let (storage, layout) = left.storage_and_layout();
    let result = Storage::Cuda(multiply((cuda_storage(&storage)?, layout), &right, shape, out)?);
    Ok(Tensor::from_storage(result, Shape::from(dims), BackpropOp::none(), false))
}

/// The product in a type: that of the operands, or f32.
pub fn multiply(left: Operand, right: &Tensor, shape: ProductShape, out: DType) -> Result<CudaStorage> {
    let count = shape.elements()[2];
    // SAFETY: without a sum, cuBLAS writes every element and reads none.
    let mut result = unsafe { allocate(&left.0.device, out, count)? };
    run((&mut result, &Layout::contiguous(count)), left, right, shape, 0.0)?;
    Ok(result)
}

/// Adds the product to `out`, which has the type of the operands or f32.
pub fn add_multiplied(
    out: (&mut CudaStorage, &Layout),
    left: Operand,
    right: &Tensor,
    shape: ProductShape,
) -> Result<()> {
    run(out, left, right, shape, 1.0)
}

/// `out = kept out + product`
fn run(out: (&mut CudaStorage, &Layout), left: Operand, right: &Tensor, shape: ProductShape, kept: f32) -> Result<()> {
    without_gradients([right])?;
    let (storage, layout) = right.storage_and_layout();
    let [left_count, right_count, out_count] = shape.elements();
    if out_count == 0 {
        return Ok(());
    }
    if shape.inner == 0 {
        bail!("a product over no elements: {shape:?}");
    }
    let (device, arguments) = (left.0.device.clone(), shape.arguments()?);
    let stream = device.cuda_stream();
    let a = TensorAddress::new((cuda_storage(&storage)?, layout), right_count, &stream)?;
    let b = TensorAddress::new(left, left_count, &stream)?;
    let c = TensorAddress::new((&*out.0, out.1), out_count, &stream)?;
    if a.dtype != b.dtype || (c.dtype != a.dtype && c.dtype != DType::F32) {
        bail!("a product of {:?} and {:?} in {:?}", b.dtype, a.dtype, c.dtype);
    }
    let transpose = match arguments.transposes_a {
        true => cublasOperation_t::CUBLAS_OP_T,
        false => cublasOperation_t::CUBLAS_OP_N,
    };
    let one = 1f32;
    // SAFETY: the operands and the result have as many elements as the shape, as checked above, and the result is
    // borrowed exclusively.
    unsafe {
        gemm_strided_batched_ex(
            *device.cublas_handle().handle(),
            transpose,
            cublasOperation_t::CUBLAS_OP_N,
            arguments.m,
            arguments.n,
            arguments.k,
            (&raw const one).cast(),
            a.address as *const c_void,
            data_type(a.dtype),
            arguments.lda,
            arguments.stride_a,
            b.address as *const c_void,
            data_type(b.dtype),
            arguments.ldb,
            arguments.stride_b,
            (&raw const kept).cast(),
            c.address as *mut c_void,
            data_type(c.dtype),
            arguments.ldc,
            arguments.stride_c,
            arguments.batch,
            // Sums in f32, and f32 is not rounded to TF32 or f16 before.
            cublasComputeType_t::CUBLAS_COMPUTE_32F,
            cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
        )
    }
    .w()
}

/// The name of a type of [`TensorAddress`].
fn data_type(dtype: DType) -> cudaDataType_t {
    match dtype {
        DType::F16 => cudaDataType_t::CUDA_R_16F,
        DType::BF16 => cudaDataType_t::CUDA_R_16BF,
        _ => cudaDataType_t::CUDA_R_32F,
    }
}
