//! CPU kernels of the forward pass: operations that candle has only in slower forms, over plain slices of f32.
//!
//! Every kernel computes a row (a token) or a sequence from that row or sequence only and in a fixed order, so that a
//! score is the same bit for bit whatever else is in the batch and however many threads run. Vector instructions are
//! selected at run time (see [`simd`]). The selection does not change a bit of element-wise kernels (see [`math`]), nor of
//! packed products but for that of tiles; `gemm`, which is used if nothing is packed, sums in another order.

pub mod activation;
pub mod attention;
pub mod conv;
pub mod cuda;
pub mod gemm;
pub mod gradients;
pub mod math;
pub mod norm;
pub mod packed;
pub mod rms_norm;
pub mod rotation;
pub mod row_statistics;
pub mod scan;
mod shared_mut;
pub mod sigmoid;
pub mod simd;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod tile_registers;
