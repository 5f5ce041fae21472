//! This crate's GPU kernels, compiled by NVRTC when they are first needed.
//!
//! Each has a CPU counterpart in [`kernels`] and one in candle's differentiable operations. The latter runs if a
//! kernel is not available, and if gradients are needed: a kernel refuses tensors that are part of a graph, since it
//! would drop their gradients silently. Without the feature `cuda` there are no kernels, and their types have no
//! values.
//!
//! `sources/` has their code, `program` what of it is fixed when it is compiled; the other files launch one kernel
//! each. Products are cuBLAS's (`product`).

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod activation;
#[cfg(any(feature = "cuda", test))]
mod blas;
#[cfg(feature = "cuda")]
mod compile;
#[cfg(feature = "cuda")]
mod decoder_kernels;
#[cfg(feature = "cuda")]
mod device;
mod fault;
#[cfg(feature = "cuda")]
mod flash_attention;
mod inputs;
#[cfg(feature = "cuda")]
mod norm;
#[cfg(feature = "cuda")]
mod product;
#[cfg(feature = "cuda")]
mod rotation;
#[cfg(feature = "cuda")]
mod row_statistics;
#[cfg(feature = "cuda")]
mod scan;
#[cfg(feature = "cuda")]
mod tensor;
#[cfg(feature = "cuda")]
mod transfer;

#[cfg(not(feature = "cuda"))]
pub use absent::{
    FlashAttention, ReadBack, RowStatistics, Scans, device_name, has_kernels, open, product, trim_memory, upload,
};
#[cfg(feature = "cuda")]
pub use blas::ProductShape;
pub use fault::GpuFault;
pub use inputs::{Columns, LogitRows, QueryBlocks, Scan, ScanColumns, ScanPlaces, attention_tiling};
#[cfg(feature = "cuda")]
pub use {
    activation::{activate, gate},
    compile::ptx,
    decoder_kernels::has_kernels,
    device::{device_name, free_memory, has_compiler, open, trim_memory},
    flash_attention::FlashAttention,
    norm::{normalise, normalise_columns},
    product::{add_multiplied, multiply, product},
    rotation::rotate,
    row_statistics::RowStatistics,
    scan::Scans,
    transfer::{ReadBack, upload},
};
