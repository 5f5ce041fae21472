//! This crate's GPU kernels, compiled by NVRTC when they are first needed.
//!
//! Each has a CPU counterpart in [`super::kernels`] and one in candle's differentiable operations. The latter runs if a
//! kernel is not available, and if gradients are needed: a kernel refuses tensors that are part of a graph, since it
//! would drop their gradients silently. Without the feature `cuda` there are no kernels, and their types have no
//! values.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod compile;
mod inputs;
pub mod program;
#[cfg(feature = "cuda")]
mod row_statistics;
#[cfg(feature = "cuda")]
mod scan;
#[cfg(feature = "cuda")]
mod tensor;

#[cfg(not(feature = "cuda"))]
pub use absent::{RowStatistics, Scans};
pub use inputs::{GpuColumns, GpuScanInput, LogitRows, ScanPlaces};
#[cfg(feature = "cuda")]
pub use {compile::ptx, row_statistics::RowStatistics, scan::Scans};
