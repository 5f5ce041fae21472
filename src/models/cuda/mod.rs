//! Kernels of this crate for GPUs, compiled through NVRTC when they are first needed.
//!
//! Each has a twin on the CPU in [`super::kernels`] and one in candle's differentiable operations. The latter runs where a
//! kernel cannot be had, and where gradients are wanted: a kernel refuses tensors that are part of a graph, for it would
//! drop their gradients without a word. Without the feature `cuda` there are no kernels, and their types have no values.

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
pub use inputs::{Columns, Rows, ScanInput, ScanPlaces};
#[cfg(feature = "cuda")]
pub use {compile::ptx, row_statistics::RowStatistics, scan::Scans};
