//! The errors of the driver and of cuBLAS, as candle reports them.

use crate::gpu;
use candle_core::cuda_backend::CudaError;
use candle_core::cuda_backend::cudarc::cublas::result::CublasError;
use candle_core::cuda_backend::cudarc::cublas::sys::cublasStatus_t;
use candle_core::cuda_backend::cudarc::driver::DriverError;
use candle_core::cuda_backend::cudarc::driver::sys::CUresult;
use candle_core::{DType, Error};
use lm::models::ModelError;

#[derive(Debug, PartialEq)]
enum Meaning {
    Lost,
    OutOfMemory,
    Failed,
}

fn meaning(error: CudaError) -> Meaning {
    match ModelError::from(Error::from(error)) {
        ModelError::Device(_) => Meaning::Lost,
        ModelError::OutOfMemory(_) => Meaning::OutOfMemory,
        _ => Meaning::Failed,
    }
}

/// The driver has the words of its codes, so that this needs one.
#[test]
fn every_error_has_its_meaning() {
    if gpu().is_none() {
        return;
    }
    let driver = |code| meaning(CudaError::Cuda(DriverError(code)));
    for code in [
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        CUresult::CUDA_ERROR_LAUNCH_FAILED,
        CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
        CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE,
    ] {
        assert_eq!(driver(code), Meaning::Lost, "{code:?}");
    }
    assert_eq!(driver(CUresult::CUDA_ERROR_OUT_OF_MEMORY), Meaning::OutOfMemory);
    for code in [CUresult::CUDA_ERROR_INVALID_VALUE, CUresult::CUDA_ERROR_NOT_FOUND, CUresult::CUDA_ERROR_INVALID_PTX] {
        assert_eq!(driver(code), Meaning::Failed, "{code:?}");
    }
    let load = CudaError::Load { cuda: DriverError(CUresult::CUDA_ERROR_INVALID_PTX), module_name: "affine".into() };
    assert_eq!(meaning(load), Meaning::Failed);

    let cublas = |status| meaning(CudaError::Cublas(CublasError(status)));
    assert_eq!(cublas(cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED), Meaning::OutOfMemory);
    assert_eq!(cublas(cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED), Meaning::OutOfMemory);
    assert_eq!(cublas(cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED), Meaning::Failed);

    assert_eq!(meaning(CudaError::UnsupportedDtype { dtype: DType::U8, op: "gelu" }), Meaning::Failed);
    assert_eq!(meaning(CudaError::MissingKernel { module_name: "affine".into() }), Meaning::Failed);
}
